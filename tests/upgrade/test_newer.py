"""What a later release wrote is left as it is, by every command that meets it, with one sentence that says what to do.

A spool of another format is in `tests/agent/ship/test_storage.py`, a baseline in `tests/agent/home/test_baseline.py`;
lines of a later contract are in `test_contract.py`.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from agent.contract import buckets
from agent.engine.pipeline import Pipeline
from agent.home import baseline
from agent.home.baseline import BaselineKeeper, resume
from agent.home.baseline_file import NAME, NEWER_NAME, BaselineFile
from agent.inventory.settings import SettingsBook
from agent.replay.memory_disk import MemoryDisk
from spark_rollup.bronze import snapshots, store
from spark_rollup.cli import main as rollup_main
from spark_rollup.config import MARKER
from spark_rollup.errors import DamagedError, UsageError
from spark_rollup.verify import kept


def content(folder: Path) -> dict[str, bytes]:
    """Read every file."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_baseline_of_a_later_format(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The agent starts without it and says so: in the log, as a time without knowledge, and where the file is now."""
    head = {
        "format": baseline.FORMAT + 1,
        "agent": "9.8.7",
        "state_dir": "/state",
        "at_us": 1,
        "reason": "running",
    }
    written = gzip.compress(json.dumps(head).encode() + b"\n")
    (tmp_path / NAME).write_bytes(written)
    now_us = 1_900_000_000_000_000
    fresh = Pipeline(MemoryDisk(), SettingsBook({}, {}), now_us, lambda _: None)
    resume(BaselineKeeper(BaselineFile(tmp_path), fresh, "/state"), fresh, now_us)
    (interval,) = fresh.inventory.blind
    assert interval.cause == "baseline-lost"
    for said in (caplog.text, str(interval.detail)):
        assert f"statewarden 9.8.7 wrote it in format {baseline.FORMAT + 1}" in said
        assert f"kept as {NEWER_NAME} and may be deleted" in said
    assert content(tmp_path) == {NEWER_NAME: written}


@pytest.fixture
def later(tmp_path: Path) -> Path:
    """Lay out bronze of a later format."""
    (tmp_path / "bronze" / "events" / "day=2026-11-20").mkdir(parents=True)
    marker = {"format": store.FORMAT + 1, "contract_major": 1, "judged_by": "9.8.7, contract 1.9"}
    (tmp_path / "bronze" / MARKER).write_text(json.dumps(marker))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text("{}\n")
    return tmp_path / "bronze"


@pytest.mark.parametrize(
    "words",
    [
        "ingest --input IN --bronze BRONZE",
        "compact --bronze BRONZE",
        "migrate --bronze BRONZE",
        "forget --bronze BRONZE --pod pod-a",
        "audit --input BRONZE --output OUT",
        "safe-to-restart --input BRONZE",
        "why 0_0 --input BRONZE",
        "coverage --input BRONZE",
    ],
)
def test_bronze_of_a_later_format(later: Path, capsys: pytest.CaptureFixture[str], words: str) -> None:
    """Every command refuses it before Spark is started."""
    before = content(later)
    places = {"IN": later.parent / "in", "BRONZE": later, "OUT": later.parent / "out"}
    assert rollup_main([str(places.get(word, word)) for word in words.split()]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert (
        f"{later} was written by a later statewarden-rollup (9.8.7, contract 1.9; format {store.FORMAT + 1}"
        in said
    )
    assert "use that version on it" in said
    assert content(later) == before


@pytest.mark.parametrize(
    "marker", ["", "[]", "{", '{"format": "x"}', '{"contract_major": 1}', f'{{"format": {store.FORMAT}}}']
)
def test_other_markers_are_no_later_format(tmp_path: Path, marker: str) -> None:
    """Torn, without a number as the first ones, or of this format."""
    (tmp_path / MARKER).write_text(marker)
    store.refuse_newer(tmp_path)


def test_a_snapshot_that_replaces_removed_days(tmp_path: Path) -> None:
    """It cannot be made again, so the version that made it is named; one that is gone is another matter."""
    (tmp_path / "events" / "day=2026-11-20").mkdir(parents=True)
    snapshots.set_base_day(tmp_path, "2026-11-14")
    with pytest.raises(DamagedError, match="is gone"):
        snapshots.reading(tmp_path, 0)
    place = snapshots.folder(tmp_path, "2026-11-14")
    place.mkdir(parents=True)
    (place / snapshots.MADE).write_text(json.dumps({"format": snapshots.FORMAT + 1, "versions": {}}))
    with pytest.raises(
        UsageError, match=rf"format {snapshots.FORMAT + 1}, this one knows .*use that version"
    ):
        snapshots.reading(tmp_path, 0)


@pytest.mark.parametrize("step", [(1, 0), (0, 1)])
def test_what_verify_kept(tmp_path: Path, step: tuple[int, int]) -> None:
    """A later version's work is not overwritten."""
    written = [kept.FORMAT + step[0], buckets.FORMAT + step[1]]
    note = {"format": written, "table": "buckets-1", "questions": []}
    (tmp_path / kept.NOTE).write_text(json.dumps(note))
    with pytest.raises(UsageError, match=re.escape(f"later statewarden-rollup (format {written}")):
        kept.load(tmp_path)
