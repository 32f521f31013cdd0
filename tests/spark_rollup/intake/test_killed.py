"""kill -9 in the middle of an intake: the next run goes on. `tests/prove/killed_rollup.py` kills all commands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spark_rollup.bronze.store import EVENTS
from spark_rollup.cli import main
from spark_rollup.intake import ingest
from tests.conftest import wait_until
from tests.spark_rollup.conftest import DELTA_JARS
from tests.spark_rollup.intake.conftest import fleet, ids

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.usefixtures("delta")]

START_S = 300.0


def data(bronze: Path) -> set[Path]:
    return set((bronze / EVENTS).rglob("part-*.parquet"))


def test_killed_in_an_intake(spark, work, capsys):
    """When the first file of the new events is there; repeated, each event is there once."""
    fleet("four", 1).write(work / "in")
    bronze, before = work / "bronze", data(work / "bronze")
    asked = ["ingest", "--input", str(work / "in"), "--bronze", str(bronze)]
    process = subprocess.Popen(
        [sys.executable, "-m", "spark_rollup", *asked, "--jars", str(DELTA_JARS)],
        start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_until(lambda: data(bronze) > before or process.poll() is not None, START_S)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL
    assert len(ids(spark, bronze)) in (12, 16)
    assert main(asked) == 0
    found = ids(spark, bronze)
    assert len(found) == len(set(found)) == 16
    assert ingest.run(spark, work / "in", bronze) == ingest.Ingested(0, 0, 0)
