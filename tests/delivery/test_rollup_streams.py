"""Again and again from a real broker, killed in the middle of a run and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import wait_until
from tests.delivery import rollups
from tests.delivery.rollups import Rollup, count, ship
from tests.delivery.servers import ROOT, Broker

pytestmark = [pytest.mark.delivery, pytest.mark.timeout(1500)]
START_S = 600.0


@pytest.mark.heavy
def test_a_killed_run_is_repeated(rollup: Rollup, broker: Broker, segments: Path, tmp_path: Path) -> None:
    """kill -9 when the first events are in bronze and no offset is written down: nothing is lost, nothing is twice."""
    paths = sorted(segments.rglob("*.jsonl.gz"))
    source, bronze = f"kafka://{broker.address}/{broker.make_topic()}", tmp_path / "bronze"
    command = [sys.executable, "-m", "spark_rollup", "ingest", "--input", source, "--bronze", str(bronze)]
    ship(paths[:1], segments, source)
    running = subprocess.Popen(
        [*command, "--jars", str(rollups.JARS / "kafka"), "--trigger", "processing 1 second"],
        cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL,
        env={**os.environ, "XDG_CACHE_HOME": str(rollups.cache(tmp_path))},
    )  # fmt: skip
    try:
        wait_until(lambda: list(bronze.glob("events/**/*.parquet")) or running.poll() is not None, START_S)
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    assert running.returncode == -signal.SIGKILL
    ship(paths[1:], segments, source)
    rollup.ingest(source, bronze)
    total, distinct = count(bronze)
    assert total == distinct == sum(1 for path in paths for _ in rollups.lines(path))
