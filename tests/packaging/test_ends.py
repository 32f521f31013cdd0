"""The newest Python and the oldest Spark, beside those of this environment: `make check` has both ends.

`python tests/prove/matrix.py` has all that is between them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.packaging.ends import NEWER_PYTHON, OLDER_SPARK, run_tests
from tests.support import pythons

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

NEWEST_PYTHON, OLDEST_SPARK = "3.14", "4.0"
AGENT_TESTS = (
    "tests/agent/cli",
    "tests/agent/test_config.py",
    "tests/agent/test_interrupt.py",
    "tests/contract",
    "tests/packaging/test_help.py",
)
"""The command line in its processes, everything that it reads and writes, and all that it imports."""
EVERY_MODULE = "tests/architecture/test_process_imports.py::test_every_agent_module_loads_without_spark"
SPARK_TESTS = ("tests/spark_rollup/test_recorded.py",)


def interpreter(minor: str) -> Path:
    """Find it; where it cannot be had there is nothing to test."""
    try:
        return pythons.interpreter(minor)
    except pythons.UnavailableError as error:
        pytest.skip(str(error))


def test_the_agent_on_the_newest_python(repository: Path) -> None:
    """Warnings are errors there, too: what a release deprecates is seen before it goes."""
    python = pythons.environment(interpreter(NEWEST_PYTHON), repository / "deploy" / "locks" / "pythons.txt")
    assert run_tests(python, (*AGENT_TESTS, EVERY_MODULE), repository, *NEWER_PYTHON) == ""


def test_the_audit_with_the_oldest_spark(repository: Path) -> None:
    """Recorded incidents, from file operations to the fleet's verdicts."""
    locks = [repository / "deploy" / "locks" / f"{name}.txt" for name in ("build", "pythons")]
    spark = repository / "tests" / "packaging" / f"spark-{OLDEST_SPARK}.txt"
    python = pythons.environment(Path(sys.executable), *locks, spark)
    assert run_tests(python, SPARK_TESTS, repository, *OLDER_SPARK) == ""
