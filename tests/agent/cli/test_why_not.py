"""`explain --why-not`: which look-alike a story is, of a directory and of a trace."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from tests.agent.cli.commands import Said, plant

TOLD = ("--set", "kafka_streams_version=4.1.2", "--set", "processing_guarantee=exactly_once_v2")


def test_a_trace_with_an_orderly_restart(statewarden: Callable[..., Said], traces: Path) -> None:
    """The reopening is named, with the innocent that it is."""
    trace = traces / "benign-restart-eos-4.1.2/trace-pod-a.jsonl.gz"
    said = statewarden("explain", "--why-not", "0_0", trace, *TOLD)
    assert said.code == 0
    assert "rocksdb/s: harmless: closed in order" in said.out
    assert (
        "not judged (ruled out by settings or release, or a setting is missing): carried-checkpoint"
        in said.out
    )


def test_a_finding_is_shown_as_such(statewarden: Callable[..., Said], traces: Path) -> None:
    """What speaks stands beside what is silent."""
    trace = traces / "kafka-20685-4.1.2/trace-pod-a.jsonl.gz"
    said = statewarden("explain", "--why-not", "0_0", trace, *TOLD)
    assert "critical, suspected: Task 0_0: store s very likely holds uncommitted data" in said.out
    assert said.out.endswith("`statewarden verify` compares a store with its changelog.\n")


def test_a_directory(statewarden: Callable[..., Said], tmp_path: Path) -> None:
    """One reading has no reopening: the rule says that it does not apply; a task that is not there is named."""
    plant(tmp_path)
    said = statewarden("explain", "--why-not", "app/0_0", tmp_path, *TOLD)
    assert said.code == 0
    assert "opened again, not wiped\n    does not apply" in said.out
    assert (
        "0_9: no such task; there are app/0_0"
        in statewarden("explain", "--why-not", "0_9", tmp_path).complaint
    )


def test_no_time_is_in_the_future(statewarden: Callable[..., Said], tmp_path: Path) -> None:
    """A directory at rest is judged as if an hour had passed; what is shown is when it was read."""
    with tarfile.open(Path(__file__).parents[2] / "data/snapshots/benign-restart-eos-4.1.2.tar.gz") as packed:
        packed.extractall(tmp_path, filter="fully_trusted")
    task = "benign-restart-eos-4-1-2-015450/0_0"
    said = statewarden("explain", "--why-not", task, tmp_path, *TOLD, "--set", "num_standby_replicas=0")
    times = re.findall(r"^    (\S+ \S+) UTC", said.out, re.MULTILINE)
    assert len(times) > 1
    assert max(times) <= datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
