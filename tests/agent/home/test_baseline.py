"""The baseline as lines and as rows: whole or not believed, bounded, replaced in one step."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.clock import Boot
from agent.errors import BaselineError
from agent.home.baseline import (
    EVERY_S,
    FORMAT,
    RETRY_S,
    SLICE,
    BaselineKeeper,
    Lost,
    Remembered,
    resume,
    understand,
)
from agent.ship import baseline as rows
from agent.ship.database import DamagedError, Database, NoRoomError
from agent.ship.spool import Spool
from tests.agent.engine.playing import Run, application, checkpoint, opening, second
from tests.agent.home.restarting import STATE, lines_of
from tests.agent.ship.ship_support import HandClock, finding, make_quick, open_spool, transition


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


LINES = lines_of(busy_run().pipeline, second(100))


@dataclass
class Kept:
    """A keeper of a pipeline's baseline, with a clock to turn by hand."""

    directory: Path
    run: Run = field(default_factory=busy_run)
    now_s: float = 100.0
    boot: Boot | None = None

    def __post_init__(self) -> None:
        self.spool = open_spool(self.directory, HandClock())
        self.table = self.spool.baseline
        self.keeper = BaselineKeeper(self.table, self.run.pipeline, STATE, lambda: self.boot)

    def save_if_due(self, later_s: float = 0.0) -> None:
        """Let time pass and give the keeper its turn."""
        self.now_s += later_s
        self.keeper.save_if_due(self.run.now_us + round(self.now_s * 1e6), self.now_s, lambda: self.now_s)

    def again(self) -> Remembered | Lost | None:
        """Load as the next agent would."""
        self.spool.close()
        with open_spool(self.directory, HandClock()) as spool:
            return BaselineKeeper(spool.baseline, self.run.pipeline, STATE).load()


@contextmanager
def restarted(
    directory: Path, at_us: int = second(200), boot: Boot | None = None
) -> Iterator[tuple[Run, Spool]]:
    """Start another agent on what is there."""
    fresh = Run(started_us=at_us)
    with open_spool(directory, HandClock()) as spool:
        keeper = BaselineKeeper(spool.baseline, fresh.pipeline, STATE, lambda: boot)
        resume(keeper, fresh.pipeline, fresh.now_us)
        yield fresh, spool


def test_what_is_written_is_what_was_known(tmp_path: Path) -> None:
    """Dossier and findings are the same after the way through the database, and beside records that wait."""
    kept = Kept(tmp_path)
    kept.spool.append(finding())
    kept.keeper.finish(second(100), "SIGTERM")
    found = kept.again()
    assert isinstance(found, Remembered)
    assert found.inventory.applications == kept.run.pipeline.inventory.applications
    assert found.findings == kept.run.pipeline.ledger.remembered()
    assert (found.until_us, found.reason) == (second(100), "SIGTERM")
    with open_spool(tmp_path, HandClock()) as spool:
        assert spool.stats().records == 1


def test_an_incident_keeps_its_alert_over_a_restart(tmp_path: Path) -> None:
    """Which detector's alert it raises is no property of its findings: the next agent must be told."""
    kept = Kept(tmp_path)
    names = {"i-0123456789ab": {"critical": "skipped-eos-wipe"}}
    kept.run.pipeline.ledger.alert_names.names = names
    kept.keeper.finish(second(100), "SIGTERM")
    kept.spool.close()
    with restarted(tmp_path) as (after, _):
        pass
    assert after.pipeline.ledger.alert_names.names == names


def test_it_is_written_when_something_changed_and_dated_when_not(tmp_path: Path) -> None:
    """Unchanged, only its time is renewed: until then the content was right."""
    kept = Kept(tmp_path)
    kept.save_if_due()
    assert kept.keeper.written == 1
    first = kept.table.written_us()
    kept.save_if_due(EVERY_S / 2)
    assert kept.table.written_us() == first
    kept.save_if_due(EVERY_S)
    assert kept.keeper.written == 1
    assert kept.table.written_us() == (first or 0) + round(EVERY_S * 1.5e6)
    kept.run.play(*checkpoint(200, 9))
    kept.save_if_due(EVERY_S)
    assert kept.keeper.written == 2


def test_many_tasks_are_written_in_slices(tmp_path: Path) -> None:
    """No turn writes more than a slice; until the last one the former baseline stays in its place."""
    kept = Kept(tmp_path, busy_run(tasks=2 * SLICE))
    turns = 0
    while not kept.keeper.written:
        assert kept.table.written_us() is None
        kept.save_if_due()
        turns += 1
    assert turns == 3
    assert isinstance(kept.again(), Remembered)


def test_no_baseline_is_nothing_to_report(tmp_path: Path) -> None:
    """The first start knows nothing and misses nothing."""
    with restarted(tmp_path) as (fresh, _):
        assert not fresh.pipeline.inventory.blind


def test_a_baseline_of_the_future_is_a_clock_that_was_set_back(tmp_path: Path) -> None:
    """What is dated after the start cannot be compared with what comes: nothing within may be confirmed."""
    kept = Kept(tmp_path)
    kept.keeper.finish(second(100), "SIGTERM")
    kept.spool.close()
    with restarted(tmp_path, second(40)) as (fresh, _):
        step = [x for x in fresh.pipeline.inventory.blind if x.cause == "clock-step"]
    assert [(x.started_us, x.ended_us, x.detail) for x in step] == [
        (second(40), second(100), "the clock is 60.0 s behind the baseline")
    ]


BOOT = Boot("a", second(0))

STEPS: dict[str, tuple[Boot | None, int, list[tuple[str, int, int]]]] = {
    "back, not behind the baseline": (Boot("a", second(-20)), 110, [("agent-away", 80, 0), ("clock-step", 110, 130)]),
    "back, behind the baseline": (Boot("a", second(-60)), 50, [("agent-away", 40, 0), ("clock-step", 50, 110)]),
    "forward": (Boot("a", second(50)), 160, [("agent-away", 100, 0), ("clock-step", 110, 160)]),
    "by less than a second": (Boot("a", second(-0.9)), 110, [("agent-away", 100, 0)]),
    "another boot": (Boot("b", second(-20)), 110, [("agent-away", 100, 0)]),
    "another boot, behind the baseline": (Boot("b", 0), 50, [("agent-away", 50, 0), ("clock-step", 50, 100)]),
    "not known": (None, 110, [("agent-away", 100, 0)]),
}  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_a_clock_that_was_set_while_the_agent_was_away_is_known_by_the_boot(
    tmp_path: Path, step: str
) -> None:
    """The time away begins where the baseline ends on the clock of now; older times may lie ahead of it."""
    kept = Kept(tmp_path, boot=BOOT)
    kept.keeper.finish(second(100), "SIGTERM")
    kept.spool.close()
    boot, now_s, expected = STEPS[step]
    with restarted(tmp_path, second(now_s), boot) as (fresh, _):
        blind = [(x.cause, x.started_us, x.ended_us or second(0)) for x in fresh.pipeline.inventory.blind]
    assert blind == [(cause, second(first), second(last)) for cause, first, last in expected]


def test_a_clock_that_was_set_before_the_eyes_of_the_agent_is_no_step_of_its_absence(tmp_path: Path) -> None:
    """It is a change like any other: the next baseline knows the clock as it is, not only a newer date."""
    kept = Kept(tmp_path, boot=BOOT)
    kept.save_if_due()
    kept.boot = Boot("a", second(-20))
    kept.run.pipeline.shift(second(-20) - second(0))
    kept.save_if_due(EVERY_S)
    assert kept.keeper.written == 2
    found = kept.again()
    assert isinstance(found, Remembered)
    assert found.boot == kept.boot


def changed(directory: Path, statement: str, *values: object) -> None:
    """Change the database of an agent that has ended."""
    with sqlite3.connect(directory / "spool.db") as connection:
        assert connection.execute(statement, values).rowcount
    connection.close()


def packed(lines: list) -> bytes:
    return zlib.compress(b"\n".join(json.dumps(line).encode() for line in lines))


DAMAGE: dict[str, tuple[Any, ...]] = {
    "cut": ("UPDATE baseline SET packed = substr(packed, 1, length(packed) / 2)",),
    "flipped": ("UPDATE baseline SET packed = substr(packed, 1, 40) || x'ff' || substr(packed, 42)",),
    "empty": ("UPDATE baseline SET packed = x''",),
    "gone": ("DELETE FROM baseline",),
    "no end": ("UPDATE baseline SET packed = ?", packed(LINES[:-1])),
    "no object": ("UPDATE baseline SET packed = ?", packed([[1]])),
    "not JSON": ("UPDATE baseline SET packed = ?", zlib.compress(b"{")),
    "older": ("UPDATE baseline SET packed = ?", packed([LINES[0] | {"format": FORMAT - 1}, *LINES[1:]])),
    "newer": ("UPDATE baseline SET packed = ?", packed([LINES[0] | {"format": FORMAT + 1}, *LINES[1:]])),
    "boot": ("UPDATE baseline SET packed = ?", packed([LINES[0] | {"boot": {"id": "a"}}, *LINES[1:]])),
    "database": ("PRAGMA user_version=99",),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_one_that_cannot_be_used_is_reported_and_begun_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    """Damage, or another format: not believed in part; the time since it was right is blind."""
    kept = Kept(tmp_path)
    kept.keeper.finish(second(100), "SIGTERM")
    kept.spool.close()
    statement, *values = DAMAGE[damage]
    if damage == "database":  # set aside as a whole: what is known is when it was written last
        with sqlite3.connect(tmp_path / "spool.db") as connection:
            connection.execute(statement)
        connection.close()
        os.utime(tmp_path / "spool.db", ns=(second(100) * 1000,) * 2)
    else:
        changed(tmp_path, statement, *values)
    with restarted(tmp_path) as (fresh, spool):
        (interval,) = fresh.pipeline.inventory.blind
        assert (interval.cause, interval.started_us, interval.ended_us) == (
            "baseline-lost",
            second(100),
            second(200),
        )
        if damage in ("older", "newer"):
            assert f"knows {FORMAT}" in str(interval.detail)
        assert str(interval.detail) in caplog.text
        fresh.rest(60_000_000)
        assert "baseline-lost" in {x.summary.partition("(")[2].partition(")")[0] for x in findings(fresh)}
        assert any("baseline-lost" in str(record.body.get("summary")) for record in fresh.records)
        BaselineKeeper(spool.baseline, fresh.pipeline, STATE).finish(second(300), "SIGTERM")
    with restarted(tmp_path, second(400)) as (after, _):
        assert [x.cause for x in after.pipeline.inventory.blind] == ["baseline-lost", "agent-away"]


def test_damage_of_the_database_under_a_running_agent_costs_one_baseline(tmp_path: Path) -> None:
    """It is set aside with the records; the next turn writes a whole one though nothing has changed."""
    kept = Kept(tmp_path)
    kept.save_if_due()
    kept.spool._writer.start_over(DamagedError("malformed"))
    assert kept.table.lost()
    kept.save_if_due(EVERY_S)
    assert kept.keeper.written == 2
    assert kept.table.lost() is None
    assert isinstance(kept.again(), Remembered)


def findings(run: Run) -> list:
    """Give the findings of a run about the agent itself."""
    return [x for x in run.pipeline.ledger.findings() if x.detector == "auditor-blind"]


def test_another_state_directory_is_not_remembered() -> None:
    """A volume that was given to another application brings no ghosts along."""
    lines = lines_of(busy_run().pipeline, second(100))
    with pytest.raises(BaselineError, match="another state directory"):
        understand(iter(lines), "/elsewhere", 0)


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
    """What cannot be written is counted and given up, and it is tried again later."""
    kept = Kept(tmp_path)
    kept.save_if_due()
    before = list(kept.table.lines())
    kept.run.play(*checkpoint(200, 9))
    real = Database.run

    def full(self: Database, statement: str, values: tuple[object, ...] = ()) -> list:
        if "INTO baseline " in statement:
            raise NoRoomError("database or disk is full")
        return real(self, statement, values)

    with monkeypatch.context() as patch:
        patch.setattr(Database, "run", full)
        kept.save_if_due(EVERY_S)
    assert kept.keeper.failures == 1
    assert list(kept.table.lines()) == before
    kept.save_if_due(RETRY_S / 2)
    assert kept.keeper.written == 1
    kept.save_if_due(RETRY_S)
    assert kept.keeper.written == 2


def test_records_that_fill_the_spool_leave_the_baseline_its_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written again and again, larger and smaller; the directory grows by two baselines at most."""
    make_quick(monkeypatch)
    monkeypatch.setattr(rows, "_LEVEL", 0)
    with open_spool(tmp_path, HandClock(), cap_bytes=1 << 20) as spool:
        table = spool.baseline
        for size in (10, 400, 20, 400, 400):
            for _ in range(400):
                spool.append(transition(1500))
            for _ in range(size):
                table.write({"x": "y" * 1000})
            table.commit(1)
            assert len(list(table.lines())) == size
        assert spool.stats().bytes <= 1 << 20
    assert sum(x.stat().st_size for x in tmp_path.iterdir()) < (1 << 20) + 3 * 400_000


@pytest.mark.parametrize(
    ("name", "limit"), [("MAX_TEXT_BYTES", 100), ("MAX_LINE_BYTES", -rows.ROW_TEXT_BYTES + 20)]
)
def test_reading_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: int) -> None:
    """A row or a text beyond what the agent writes is not unpacked to its end, and such a one is not written."""
    kept = Kept(tmp_path)
    kept.keeper.finish(second(100), "SIGTERM")
    monkeypatch.setattr(rows, name, limit)
    with pytest.raises(BaselineError):
        list(kept.table.lines())
    kept.keeper.finish(second(101), "SIGTERM")
    assert (kept.keeper.written, kept.keeper.failures) == ((1, 1) if name == "MAX_TEXT_BYTES" else (2, 0))
