"""The baseline as lines and as a file: whole or not believed, bounded, replaced in one step."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.errors import BaselineError
from agent.home import baseline_file
from agent.home.baseline import (
    EVERY_S,
    FORMAT,
    RETRY_S,
    SLICE,
    BaselineKeeper,
    Lost,
    OtherFormatError,
    Remembered,
    resume,
    understand,
)
from agent.home.baseline_file import CORRUPT_NAME, NAME, OTHER_FORMAT_NAME, BaselineFile
from tests.agent.engine.playing import Run, application, checkpoint, opening, second
from tests.agent.home.restarting import STATE, lines_of


def busy_run(tasks: int = 3) -> Run:
    """Give a pipeline that knows some tasks and has a finding."""
    run = Run(sets=["processing_guarantee=exactly_once_v2", "num_standby_replicas=0"])
    run.play(*application(1))
    for number in range(tasks):
        task = f"app/0_{number}"
        run.play(*opening(2 + number / 1000, task=task, identity=f"id-{number}"))
    run.play(*checkpoint(5, 7))
    run.rest(60_000_000)
    return run


@dataclass
class Kept:
    """A keeper of a pipeline's baseline, with a clock to turn by hand."""

    directory: Path
    run: Run = field(default_factory=busy_run)
    now_s: float = 100.0

    def __post_init__(self) -> None:
        self.file = BaselineFile(self.directory)
        self.keeper = BaselineKeeper(self.file, self.run.pipeline, STATE)

    def save_if_due(self, later_s: float = 0.0) -> None:
        """Let time pass and give the keeper its turn."""
        self.now_s += later_s
        self.keeper.save_if_due(self.run.now_us + round(self.now_s * 1e6), self.now_s, lambda: self.now_s)

    def again(self) -> Remembered | Lost | None:
        """Load as the next agent would."""
        return BaselineKeeper(BaselineFile(self.directory), self.run.pipeline, STATE).load()


def test_what_is_written_is_what_was_known(tmp_path: Path) -> None:
    """Dossier and findings are the same after the way through the file."""
    kept = Kept(tmp_path)
    kept.keeper.finish(second(100), "SIGTERM")
    found = kept.again()
    assert isinstance(found, Remembered)
    assert found.inventory.applications == kept.run.pipeline.inventory.applications
    assert found.findings == kept.run.pipeline.ledger.remembered()
    assert (found.until_us, found.reason) == (second(100), "SIGTERM")
    assert sorted(os.listdir(tmp_path)) == [NAME]


def test_an_incident_keeps_its_alert_over_a_restart(tmp_path: Path) -> None:
    """Which detector's alert it raises is no property of its findings: the next agent must be told."""
    kept = Kept(tmp_path)
    names = {"i-0123456789ab": {"critical": "skipped-eos-wipe"}}
    kept.run.pipeline.ledger.alert_names.names = names
    kept.keeper.finish(second(100), "SIGTERM")
    after = Run()
    resume(BaselineKeeper(BaselineFile(tmp_path), after.pipeline, STATE), after.pipeline, second(101))
    assert after.pipeline.ledger.alert_names.names == names


def test_it_is_written_when_something_changed_and_dated_when_not(tmp_path: Path) -> None:
    """Unchanged, only its time is renewed: until then the content was right."""
    kept = Kept(tmp_path)
    kept.save_if_due()
    assert kept.keeper.written == 1
    first = kept.file.written_us()
    kept.save_if_due(EVERY_S / 2)
    assert kept.file.written_us() == first
    kept.save_if_due(EVERY_S)
    assert kept.keeper.written == 1
    assert kept.file.written_us() == (first or 0) + round(EVERY_S * 1.5e6)
    kept.run.play(*checkpoint(200, 9))
    kept.save_if_due(EVERY_S)
    assert kept.keeper.written == 2


def test_many_tasks_are_written_in_slices(tmp_path: Path) -> None:
    """No turn writes more than a slice; until the last one the former baseline stays in its place."""
    kept = Kept(tmp_path, busy_run(tasks=2 * SLICE))
    turns = 0
    while not kept.keeper.written:
        assert kept.file.written_us() is None
        kept.save_if_due()
        turns += 1
    assert turns == 3
    assert isinstance(kept.again(), Remembered)


def test_no_baseline_is_nothing_to_report(tmp_path: Path) -> None:
    """The first start knows nothing and misses nothing."""
    kept = Kept(tmp_path)
    assert kept.again() is None
    fresh = Run()
    resume(BaselineKeeper(kept.file, fresh.pipeline, STATE), fresh.pipeline, fresh.now_us)
    assert not fresh.pipeline.inventory.blind


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "not gzip", "no end", "other text"])
def test_a_damaged_baseline_is_set_aside_and_reported(tmp_path: Path, damage: str) -> None:
    """It is not believed in part; the time since it was right is blind, and the file is kept for people."""
    kept = Kept(tmp_path)
    kept.keeper.finish(second(100), "SIGTERM")
    path = tmp_path / NAME
    content = path.read_bytes()
    text = gzip.decompress(content).splitlines(keepends=True)
    path.write_bytes(
        {
            "cut": content[: len(content) // 2],
            "flipped": content[:40] + bytes([content[40] ^ 0xFF]) + content[41:],
            "empty": b"",
            "not gzip": b"{}\n",
            "no end": gzip.compress(b"".join(text[:-1])),
            "other text": gzip.compress(b"[1]\n"),
        }[damage]
    )
    os.utime(path, ns=(second(100) * 1000,) * 2)
    fresh = Run(second(200))
    resume(BaselineKeeper(BaselineFile(tmp_path), fresh.pipeline, STATE), fresh.pipeline, fresh.now_us)
    (interval,) = fresh.pipeline.inventory.blind
    assert (interval.cause, interval.started_us, interval.ended_us) == (
        "baseline-lost",
        second(100),
        second(200),
    )
    assert os.listdir(tmp_path) == [CORRUPT_NAME]
    fresh.rest(60_000_000)
    assert "baseline-lost" in {x.summary.partition("(")[2].partition(",")[0] for x in findings(fresh)}


def findings(run: Run) -> list:
    """Give the findings of a run about the agent itself."""
    return [x for x in run.pipeline.ledger.findings() if x.detector == "auditor-blind"]


@pytest.mark.parametrize("step", [-1, 1])
def test_a_baseline_of_another_format_is_set_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, step: int
) -> None:
    """An older or a newer one: neither understood nor overwritten, said in log and finding; a new one begins."""
    kept = Kept(tmp_path)
    lines = lines_of(kept.run.pipeline, second(100))
    lines[0] |= {"format": FORMAT + step, "agent": "9.8.7"}
    with pytest.raises(OtherFormatError, match=f"this one .* knows {FORMAT}"):
        understand(iter(lines), STATE, 0)
    written = gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode())
    (tmp_path / NAME).write_bytes(written)
    os.utime(tmp_path / NAME, ns=(second(100) * 1000, second(100) * 1000))
    fresh = Run(started_us=second(200))
    keeper = BaselineKeeper(BaselineFile(tmp_path), fresh.pipeline, STATE)
    resume(keeper, fresh.pipeline, fresh.now_us)
    assert os.listdir(tmp_path) == [OTHER_FORMAT_NAME]
    fresh.rest(60_000_000)
    (interval,) = fresh.pipeline.inventory.blind
    for said in (caplog.text, str(interval.detail)):
        assert f"statewarden 9.8.7 wrote it in format {FORMAT + step}" in said
        assert f"kept as {OTHER_FORMAT_NAME} and may be deleted" in said
    assert any("baseline-lost" in str(record.body.get("summary")) for record in fresh.records)
    keeper.finish(second(300), "SIGTERM")
    assert (tmp_path / OTHER_FORMAT_NAME).read_bytes() == written
    assert isinstance(kept.again(), Remembered)


def test_another_state_directory_is_not_remembered() -> None:
    """A volume that was given to another application brings no ghosts along."""
    lines = lines_of(busy_run().pipeline, second(100))
    with pytest.raises(BaselineError, match="another state directory"):
        understand(iter(lines), "/elsewhere", 0)


LINES = lines_of(busy_run().pipeline, second(100))


@settings(max_examples=30)
@given(data=st.data())
def test_no_lines_are_more_than_refused(data: st.DataObject) -> None:
    """Lines lost, doubled, swapped or changed are refused or understood; nothing else happens."""
    lines = json.loads(json.dumps(LINES))
    kind = data.draw(st.sampled_from(["drop", "double", "swap", "change"]))
    place = data.draw(st.integers(0, len(lines) - 1))
    if kind == "drop":
        del lines[place]
    elif kind == "double":
        lines.insert(place, lines[place])
    elif kind == "swap":
        other = data.draw(st.integers(0, len(lines) - 1))
        lines[place], lines[other] = lines[other], lines[place]
    else:
        key = data.draw(st.sampled_from(sorted(lines[place])))
        lines[place][key] = data.draw(st.none() | st.integers() | st.text() | st.lists(st.integers()))
    try:
        understand(iter(lines), STATE, 0)
    except BaselineError:
        return


def test_a_full_disk_keeps_the_former_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be written is counted and given up; nothing half-written stays, and it is tried again later."""
    kept = Kept(tmp_path)
    kept.save_if_due()
    before = (tmp_path / NAME).read_bytes()
    kept.run.play(*checkpoint(200, 9))

    def full(*args: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(gzip, "open", full)
        kept.save_if_due(EVERY_S)
    assert kept.keeper.failures == 1
    assert (tmp_path / NAME).read_bytes() == before
    assert os.listdir(tmp_path) == [NAME]
    kept.save_if_due(RETRY_S / 2)
    assert kept.keeper.written == 1
    kept.save_if_due(RETRY_S)
    assert kept.keeper.written == 2


@pytest.mark.parametrize(
    ("name", "limit"), [("MAX_FILE_BYTES", 10), ("MAX_TEXT_BYTES", 100), ("MAX_LINE_BYTES", 20)]
)
def test_reading_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: int) -> None:
    """A file, its text or a line beyond what the agent writes is not read to its end."""
    kept = Kept(tmp_path)
    kept.keeper.finish(second(100), "SIGTERM")
    monkeypatch.setattr(baseline_file, name, limit)
    with pytest.raises(BaselineError):
        list(BaselineFile(tmp_path).lines())
