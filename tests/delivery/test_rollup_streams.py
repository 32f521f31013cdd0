"""A stream from a real broker, killed in the middle of a turn and started again from its checkpoint."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from tests.conftest import wait_until
from tests.delivery import rollups
from tests.delivery.rollups import count, ship
from tests.delivery.servers import ROOT, Broker
from tests.support.recorded_fleet import replayed

pytestmark = [pytest.mark.delivery, pytest.mark.timeout(1500)]
START_S = 600.0


@pytest.mark.heavy
def test_a_killed_stream_goes_on_from_its_checkpoint(
    broker: Broker, repository: Path, tmp_path: Path
) -> None:
    """kill -9 when the first events are in bronze and the turn is not committed; nothing is lost, nothing is twice."""
    if not rollups.JARS.is_dir():
        pytest.skip("Spark's jars are fetched by tools/setup_delivery.sh: make test-services")
    replayed([repository / "tests/data/traces/kafka-7672-gap"], tmp_path / "segments")
    segments = sorted((tmp_path / "segments").rglob("*.jsonl.gz"))
    topic, bronze = f"stream-{uuid.uuid4().hex[:8]}", tmp_path / "bronze"
    broker.make_topic(topic)
    source = f"kafka://{broker.address}/{topic}"
    command = [sys.executable, "-m", "spark_rollup", "ingest", "--input", source, "--bronze", str(bronze)]
    command += ["--jars", str(rollups.JARS / "kafka"), "--checkpoint", str(tmp_path / "place")]
    environment = {**os.environ, "XDG_CACHE_HOME": str(rollups.cache(tmp_path))}
    ship(segments[:1], tmp_path / "segments", source)
    streaming = subprocess.Popen(
        [*command, "--trigger", "processing 1 second"],
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        env=environment,
    )
    try:
        wait_until(lambda: list(bronze.glob("events/**/*.parquet")) or streaming.poll() is not None, START_S)
    finally:
        os.killpg(streaming.pid, signal.SIGKILL)
        streaming.wait()
    assert streaming.returncode == -signal.SIGKILL
    assert list((tmp_path / "place" / "offsets").glob("0"))
    ship(segments[1:], tmp_path / "segments", source)
    again = subprocess.run(
        [*command, "--trigger", "availableNow"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=START_S,
        check=False,
        env=environment,
    )
    assert again.returncode == 0, again.stderr
    total, distinct = count(bronze)
    assert total == distinct == sum(1 for path in segments for _ in rollups.lines(path))
