"""A fleet that lost the event of an open critical: a restarted agent says it again, and no answer is an all-clear."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from deploy.demo.agents import Agent
from tests.delivery.rollups import Rollup
from tests.support.shipped import shipped_records

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.inotify,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
]

POD = "orders-0"
TOLD = {
    "processing_guarantee": "exactly_once_v2", "kafka_streams_version": "4.1.2", "num_standby_replicas": "0",
    "state_cleanup_delay_ms": "600000", "commit_interval_ms": "100",
}  # fmt: skip


def criticals(shipped: Path) -> dict[str, Mapping[str, Any]]:
    """Give the open criticals that were shipped."""
    found = [x for x in shipped_records(shipped) if x["kind"] == "finding" and x["pod"] == POD]
    return {str(x["finding_id"]): x for x in found if (x["severity"], x["status"]) == ("critical", "open")}


def lived(tmp_path: Path, shipped: Path, eventually: Callable[..., object]) -> None:
    """Let an agent live until it shipped a critical."""
    agent = Agent(POD, tmp_path / "state", tmp_path / "own", shipped, TOLD)
    try:
        agent.wait_ready()
        eventually(lambda: criticals(shipped))
        assert agent.stop() == 0
    finally:
        agent.kill()


def test_a_fleet_does_not_forget_what_is_open(
    tmp_path: Path, repository: Path, rollup: Rollup, eventually: Callable[..., object]
) -> None:
    """The segments of the first life are gone; the second life, or what it counts, keeps the answer from being safe."""
    with tarfile.open(repository / "tests/data/snapshots/kafka-20685-4.1.2.tar.gz") as packed:
        packed.extractall(tmp_path / "state", filter="data")
    lived(tmp_path, tmp_path / "first", eventually)
    lived(tmp_path, tmp_path / "second", eventually)
    first, second = criticals(tmp_path / "first"), criticals(tmp_path / "second")
    assert first.keys() == second.keys()
    assert all(x["said_us"] is not None for x in second.values())
    *_, beat, end = shipped_records(tmp_path / "second")
    assert (beat["kind"], beat["open_criticals"], set(beat["open_ids"]) >= first.keys()) == (
        "heartbeat", len(first), True,
    )  # fmt: skip
    assert end["phase"] == "stopping"

    out = tmp_path / "out"
    audit = rollup.run("audit", "--input", str(tmp_path / "second"), "--output", str(out))
    assert audit.code == 1, audit.err
    assert "incident open" in audit.out.splitlines()[0]
    asked = ("safe-to-restart", "--from", str(out), "--max-age", "any", "--pod", POD)
    answer = rollup.run(*asked)
    assert answer.code == 1
    assert f"{POD}: damaged" in answer.out

    # now the segments with the repeated word are lost, too: the agent's count is all that is left
    segments = sorted((tmp_path / "second").rglob("*.jsonl.gz"), key=lambda path: path.stat().st_mtime_ns)
    lost = [x for x in segments if b'"kind":"finding"' in _unpacked(x)]
    left = [x for x in segments if x not in lost]
    assert lost
    if not any(b'"open_criticals"' in _unpacked(x) for x in left):
        pytest.fail(f"no heartbeat is left in {left}")
    shutil.rmtree(out)
    for path in lost:
        path.unlink()
    audit = rollup.run("audit", "--input", str(tmp_path / "second"), "--output", str(out))
    assert audit.code == 1, audit.out
    count = f"agents count {len(first)} critical"
    assert count in audit.out.splitlines()[0]
    assert count in (out / "report.html").read_text().partition("</h1>")[0]
    assert 'statewarden_rollup_missed_findings{severity="critical"} 1.0' in (out / "metrics.prom").read_text()
    answer = rollup.run(*asked)
    assert answer.code == 3
    assert f"{POD}: unknown: " in answer.out


def _unpacked(path: Path) -> bytes:
    import gzip

    return gzip.decompress(path.read_bytes())
