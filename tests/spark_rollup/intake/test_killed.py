"""kill -9 in the middle of intake, OPTIMIZE and VACUUM: the next run reads what is there and goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_rollup.bronze import table
from spark_rollup.bronze.store import EVENTS, read_events
from spark_rollup.cli import main
from spark_rollup.intake import ingest
from tests.conftest import wait_until
from tests.spark_rollup.conftest import DELTA_JARS
from tests.spark_rollup.intake.conftest import fleet, ids

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.usefixtures("delta")]

START_S = 300.0
ORPHANS = 2_000


@pytest.fixture
def work(work) -> Path:
    """Give a copy for which one more segment waits."""
    fleet("four", 1).write(work / "in")
    return work


def kill(words: list[str], is_time: Callable[[], bool]) -> None:
    """Start a command and kill it with all that it started as soon as it has come so far."""
    process = subprocess.Popen(
        [sys.executable, "-m", "spark_rollup", *words, "--jars", str(DELTA_JARS)],
        start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_until(lambda: is_time() or process.poll() is not None, START_S)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL


def data(bronze: Path) -> set[Path]:
    return set((bronze / EVENTS).rglob("part-*.parquet"))


def test_killed_in_an_intake(spark, work, capsys):
    """When the first file of the new events is there; repeated, each event is there once."""
    bronze, before = work / "bronze", data(work / "bronze")
    asked = ["ingest", "--input", str(work / "in"), "--bronze", str(bronze)]
    kill(asked, lambda: data(bronze) > before)
    assert len(ids(spark, bronze)) in (12, 16)
    assert main(asked) == 0
    found = ids(spark, bronze)
    assert len(found) == len(set(found)) == 16
    assert ingest.run(spark, work / "in", bronze) == ingest.Ingested(0, 0, 0)


def test_killed_in_optimize(spark, work, capsys):
    """When the first joined file is there; repeated, the day is joined and nothing is lost."""
    bronze, before = work / "bronze", data(work / "bronze")
    there = ids(spark, bronze)
    kill(["compact", "--bronze", str(bronze)], lambda: data(bronze) > before)
    assert ids(spark, bronze) == there
    assert main(["compact", "--bronze", str(bronze)]) == 0
    assert ids(spark, bronze) == there
    assert len(read_events(spark, bronze).inputFiles()) == 4


def test_killed_in_vacuum(spark, work, capsys):
    """When the first of many old files is gone; repeated, all of them are, and none of the table's."""
    bronze, there = work / "bronze", ids(spark, work / "bronze")
    assert main(["compact", "--bronze", str(bronze)]) == 0
    long_ago_s = time.time() - 3 * (table.KEPT_HOURS + 1) * 3600
    old = [bronze / EVENTS / "day=2026-11-18" / f"part-{number}.parquet" for number in range(ORPHANS)]
    for path in old:
        path.touch()
        os.utime(path, (long_ago_s, long_ago_s))
    kill(
        ["compact", "--bronze", str(bronze)],
        lambda: sum(path.exists() for path in old[:: ORPHANS // 50]) < 50,
    )
    assert ids(spark, bronze) == there
    assert main(["compact", "--bronze", str(bronze)]) == 0
    assert not any(path.exists() for path in old)
    assert ids(spark, bronze) == there
