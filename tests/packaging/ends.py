"""Tests run with another interpreter than this one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

LIGHT = "not heavy and not slow and not packages and not delivery and not charts and not cluster"


PLAIN = ("-p", "no:cacheprovider", "-p", "no:randomly")
NEWER_PYTHON = ("-W", "ignore:It looks like `register_random`:hypothesis.errors.HypothesisWarning")
"""Hypothesis judges its own generator by a count of references, which 3.14 keeps lower: no fault of ours."""

OLDER_SPARK = ("-W", "ignore:unclosed <socket:ResourceWarning")
"""Spark 4.0's own Python library leaves its sockets to the collector; every other warning is an error, as always."""


def run_tests(python: Path, tests: Sequence[str], repository: Path, *options: str) -> str:
    """Run tests; give what was said if one failed, else nothing."""
    # this run's own plugins and workers are none of its business
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))
    }
    done = subprocess.run(
        [str(python), "-m", "pytest", "-q", *PLAIN, "-m", LIGHT, *options, *tests],
        cwd=repository, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return "" if done.returncode == 0 else f"{done.stdout}\n{done.stderr}"


def fetch_delta(python: Path, repository: Path) -> str:
    """Fetch the jars of Delta for an environment's Spark, where the tests search for them; give what went wrong."""
    jars = python.parent.parent / "spark-jars" / "delta"
    command = [str(python), "-m", "spark_rollup", "jars", "delta", "--jars", str(jars)]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""
