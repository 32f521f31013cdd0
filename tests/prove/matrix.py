"""Every Python and every Spark that is promised: the agent's tests and a recorded audit on each Python, the rollup's
tests with each Spark.

A Python that cannot be had on this machine is named, and is a failure: nothing was proved of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.packaging.ends import NEWER_PYTHON, OLDER_SPARK, fetch_delta, run_tests  # noqa: E402
from tests.support import pythons  # noqa: E402

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SPARKS = ("4.0", "4.1")
"""Beside the one of this environment, the newest, with which `make test` runs."""
OF_THE_AGENT = ("tests/agent", "tests/contract", "tests/benign", "tests/e2e")
OF_THE_ROLLUP = ("tests/spark_rollup",)
RECORDED = ("tests/spark_rollup/test_recorded.py",)
LOCKS = ROOT / "deploy" / "locks"


def agent_on(minor: str) -> str:
    """Test the agent on a Python; empty = all passed, else why not."""
    try:
        python = pythons.environment(pythons.interpreter(minor), LOCKS / "pythons.txt")
    except pythons.UnavailableError as error:
        return str(error)
    return run_tests(python, OF_THE_AGENT, ROOT, *NEWER_PYTHON)


def audit_on(minor: str) -> str:
    """Audit recorded incidents on a Python, with the newest Spark."""
    locks = [LOCKS / f"{name}.txt" for name in ("build", "pythons", "rollup")]
    try:
        python = pythons.environment(pythons.interpreter(minor), *locks)
    except pythons.UnavailableError as error:
        return str(error)
    return run_tests(python, RECORDED, ROOT, *NEWER_PYTHON)


def rollup_with(release: str) -> str:
    """Test the rollup with a Spark, on this Python, Delta's tables included."""
    spark = ROOT / "tests" / "packaging" / f"spark-{release}.txt"
    try:
        python = pythons.environment(Path(sys.executable), LOCKS / "build.txt", LOCKS / "pythons.txt", spark)
    except pythons.UnavailableError as error:
        return str(error)
    return fetch_delta(python, ROOT) or run_tests(python, OF_THE_ROLLUP, ROOT, *OLDER_SPARK)


def main(words: Sequence[str]) -> int:
    """Run all of it, or what is named: `3.14`, `4.0`."""
    wanted: list[tuple[Callable[[str], str], str]] = [
        *((test, x) for x in PYTHONS for test in (agent_on, audit_on)),
        *((rollup_with, x) for x in SPARKS),
    ]
    failed = []
    for test, release in wanted:
        if words and release not in words:
            continue
        what = f"{test.__name__.replace('_', ' ')} {release}"
        sys.stdout.write(f"-- {what}\n")
        sys.stdout.flush()
        if trouble := test(release):
            sys.stdout.write(f"{trouble[-4000:]}\n")
            failed.append(what)
    sys.stdout.write(f"failed: {', '.join(failed) or 'nothing'}\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
