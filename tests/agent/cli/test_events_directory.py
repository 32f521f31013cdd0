"""Events of a replay on disk: the agent's segments, without a spool."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from agent.cli.offline import SEGMENT_RECORDS, events_directory
from agent.contract.codec import decode
from agent.contract.events import Kind, Origin, Record

ORIGIN = Origin("uid/../x", "boot", "pod-a")


def record(number: int) -> Record:
    return Record(Kind.LIFECYCLE, number, {"phase": "started", "reason": "test"})


def shipped(directory: Path) -> list[tuple[str, list[dict[str, object]]]]:
    found = []
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            lines = gzip.decompress(path.read_bytes()).splitlines()
            found.append((path.name, [decode(line) for line in lines]))
    return found


def test_long_runs_are_split_into_segments(tmp_path: Path) -> None:
    """Each segment is named by its first and last sequence; together they have no hole."""
    count = SEGMENT_RECORDS * 2 + 3
    with events_directory(tmp_path, ORIGIN) as events:
        for number in range(count):
            events(record(number))
    segments = shipped(tmp_path)
    assert [len(rows) for _, rows in segments] == [SEGMENT_RECORDS, SEGMENT_RECORDS, 3]
    sequences = [row["sequence"] for _, rows in segments for row in rows]
    assert sequences == list(range(1, count + 1))
    for name, rows in segments:
        first, last = rows[0]["sequence"], rows[-1]["sequence"]
        assert name == f"boot-{first:012d}-{last:012d}.jsonl.gz"


def test_everything_stays_below_the_directory(tmp_path: Path) -> None:
    """A pod uid with slashes and dots names one folder below it."""
    with events_directory(tmp_path / "events", ORIGIN) as events:
        events(record(1))
    assert [path.name for path in tmp_path.iterdir()] == ["events"]
    assert len(list((tmp_path / "events").iterdir())) == 1


def test_without_a_directory_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same code runs for a replay that ships nothing."""
    monkeypatch.chdir(tmp_path)
    with events_directory(None, ORIGIN) as events:
        events(record(1))
    assert list(tmp_path.iterdir()) == []


def test_no_records_no_file(tmp_path: Path) -> None:
    """An empty run leaves no empty segment."""
    with events_directory(tmp_path, ORIGIN):
        pass
    assert list(tmp_path.rglob("*")) == []
