"""Detector `zombie-state`: state reused after its tombstones expired (KAFKA-19943)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agent.contract.events import Affected, Level, Severity, Status
from agent.inventory.disk import LockState, ProcessFact
from agent.inventory.model import ProcessLife
from agent.inventory.observations import StoreOffsets
from agent.judging.base import TaskCase
from tests.support.scenario import Scenario
from tests.support.scenario_case import at, case, checkpoint, database, judge, session, store, task
from tests.support.scenario_script import play
from tests.support.tables import QUIET, SUSPECTED, UNKNOWN, heard, said, table

ID = "zombie-state"
EOS = "exactly_once_v2"
LIVES = "tombstones of that time still live"


FILLED = "start, opens, 1 s, puts 1000"
STOPPED = f"{FILLED}, 2 s, stops 999"
IDLE = f"{STOPPED}, 43 s, start, opens, 15 s"
"""A task is closed clean, lies for 43 s, and is opened again."""
KEPT_IN_STORE = IDLE.replace("puts 1000", "puts 1000, commits 999")


@table(ID, "release, retention, script, expected", {
    **{f"43 s with a retention of 10 s, {x}": (x, 10_000, IDLE, SUSPECTED)
       for x in ("2.0.1", "2.3.1", "2.8.2", "3.9.2", "4.1.2")},
    "43 s with a retention of 10 s, 4.3": ("4.3.1", 10_000, KEPT_IN_STORE, SUSPECTED),
    "N6: a restart of seconds": ("3.9.2", 10_000, f"{STOPPED}, 5 s, start, opens, 15 s", LIVES),
    "held all the time, without a write": (
        "3.9.2", 10_000, f"{FILLED}, 300 s, stops 999, 3 s, start, opens, 15 s", QUIET),
    "the retention is not known": ("3.9.2", None, IDLE, QUIET),
    "the opening ends in a wipe": ("3.9.2", 10_000, f"{STOPPED}, 43 s, start, opens, wipes, 15 s", QUIET),
})  # fmt: skip
def test_idle_for_longer_than_tombstones_live(release, retention, script, expected):
    guarantee = EOS if "wipes" in script else "at_least_once"
    run = play(Scenario(release, guarantee, told={"delete_retention_ms": retention}), script)
    assert heard(ID, run) == expected
    for x in run.findings(ID):
        assert (x.level, x.task_id, x.affected) == (Level.EXPOSURE, "0_0", Affected.YES)


def dossier(
    gap: float = 10.1,
    offset: int | None = 999,
    *,
    stored: int | None = None,
    release: str = "3.9.2",
    changes: dict[str, Any] | None = None,
    replaced: bool = False,
    windowed: bool = False,
    names: tuple[str, ...] = ("s",),
    gaps: tuple[float, ...] = (),
) -> TaskCase:
    """Released at 20 s, opened `gap` seconds later; tombstones live ten seconds; perhaps several stores."""
    stores = [store([database(segment="w.0")], name="w", segmented=True)] if windowed else []
    for name, seconds in zip(names, gaps or (gap,), strict=True):
        after = session(20 + seconds, offset_at_open=offset)
        after.stored_offset_at_open = stored
        for key, value in (changes or {}).items():
            setattr(after, key, value)
        kept = database(identity="identity-2") if replaced else database()
        stores.append(store([kept], [session(0, 20), after], name=name))
    return case(task(*stores), release=release, told={"delete_retention_ms": 10_000})


NONE_TRUSTED = "no offset was trusted"


@table(ID, "one, expected", {
    "longer than the retention": (dossier(), SUSPECTED),
    "as long as the retention": (dossier(10), LIVES),
    "no offset": (dossier(offset=None), NONE_TRUSTED),
    "offset 0": (dossier(offset=0), NONE_TRUSTED),
    "a store without a changelog has no tombstones": (dossier(offset=None, release="4.3.1"), NONE_TRUSTED),
    "the offset is in the store": (dossier(offset=None, stored=999, release="4.3.1"), SUSPECTED),
    "up to 4.2 it is not asked": (dossier(offset=None, stored=999), NONE_TRUSTED),
    "the file that 4.2 left": (dossier(release="4.3.1"), SUSPECTED),
    "made anew": (dossier(changes={"created": True}), "its session made it anew"),
    "wiped": (dossier(changes={"wiped": True}), QUIET),
    "another store was there": (dossier(changes={"identities": frozenset({"identity-2"})}), QUIET),
    "another store is there now": (dossier(replaced=True), QUIET),
})  # fmt: skip
def test_watched(one, expected):
    assert said(ID, one) == expected


# -- where no agent watched -------------------------------------------------------------------------------------------

RETENTION_S = 100
TOLD = {"delete_retention_ms": RETENTION_S * 1_000}


def lying(
    read: float = 121,
    *,
    written: float = 20,
    offset: int | None = 999,
    told: bool = True,
    files: dict[str, Any] | None = None,
    change: Callable[[TaskCase], None] | None = None,
    **settings,
) -> TaskCase:
    """A volume that was read once; its task was written last at 20 s; `change`: what else is there."""
    made = database(puts=1000, flushed=[(1000, 10)])
    made.seen_us, made.touched_us = at(read), at(10)
    for name, value in (files or {}).items():
        setattr(made, name, value)
    one = task(store([made]), checkpoints=[] if offset is None else [checkpoint(written, offset)])
    one.mtime_us = at(written)
    chosen = {"release": "3.9.2", "guarantee": "at_least_once", "told": TOLD if told else {}, **settings}
    judged = case(one, **chosen)
    if change is not None:
        change(judged)
    return judged


def sibling(*, flushed: float | None = None, held: bool = False) -> Callable[[TaskCase], None]:
    """Another task has flushed then, or is held."""

    def change(one: TaskCase) -> None:
        stores = [] if flushed is None else [store([database(puts=5, flushed=[(5, flushed)])])]
        other = task(*stores, task_id="0_1")
        other.held = held
        one.application.tasks["0_1"] = other

    return change


def of_application(**values: Any) -> Callable[[TaskCase], None]:
    """The application shows this."""

    def change(one: TaskCase) -> None:
        for name, value in values.items():
            setattr(one.application, name, value)

    return change


def keeping(status: int, guarantee: str, written: float = 20) -> TaskCase:
    """From 4.3 on the store holds its offset, as it was written then."""
    offsets = StoreOffsets(status=status, offsets=(("app-s-changelog-0", 999, 0),), written_us=at(written))
    files = {"offsets": offsets, "touched_us": 0}
    return lying(offset=None, written=0, files=files, release="4.3.1", guarantee=guarantee)


COPIED = {"born_us": at(20), "oldest_data_us": at(0)}
DAY_S = 86_400
NOT_TRUSTED = "a start does not trust it: no offset, or it is wiped"


@table(ID, "one, expected", {
    "nothing was written for longer than tombstones live": (lying(), SUSPECTED),
    "as long as they live": (lying(120), LIVES),
    "by Kafka's default alone, a day": (lying(20 + DAY_S, told=False), LIVES),
    "by Kafka's default alone, longer": (lying(20 + 1.01 * DAY_S, told=False), UNKNOWN),
    # a process that lived later may have held the task; one that lives has not taken it
    "its directory was touched later": (lying(files={"touched_us": at(30)}), LIVES),
    "its directory was changed later": (lying(change=lambda one: setattr(one.task, "mtime_us", at(30))), LIVES),
    "another task was written later": (lying(change=sibling(flushed=30)), LIVES),
    "another task is held": (lying(change=sibling(held=True)), QUIET),
    "a process lives": (lying(change=of_application(lives=(ProcessLife(at(100)),))), QUIET),
    "a process is in sight": (lying(change=of_application(processes=(ProcessFact(1, at(100)),))), QUIET),
    "the application's lock is held": (lying(change=of_application(lock=LockState.HELD)), QUIET),
    "it is held": (lying(files={"lock": LockState.HELD}), QUIET),
    "no offset": (lying(offset=None), NOT_TRUSTED),
    # from 4.3 on; exactly-once wipes a store that was left open
    "its own offset": (keeping(0, EOS), SUSPECTED),
    "its own offset, left open": (keeping(1, EOS), NOT_TRUSTED),
    "left open under at-least-once": (keeping(1, "at_least_once"), SUSPECTED),
    "its own offset, written later": (keeping(0, EOS, written=22), LIVES),
    # data older than the store that it lies in: each file has the time of the copying
    "times of a copy": (lying(50, files=COPIED), UNKNOWN),
    "the copy itself has been unused for so long": (lying(files=COPIED), SUSPECTED),
})  # fmt: skip
def test_at_rest(one, expected):
    assert said(ID, one) == expected


def test_what_a_verdict_at_rest_carries():
    """It says how long, asks for the retention where that is assumed, and tells the step before the start."""
    (verdict,) = judge(ID, lying())
    assert "101 s, longer than tombstones live (100 s)" in verdict.summary
    assert verdict.next_action.startswith("Before the next start")
    assert verdict.evidence[0].at_us == at(20)
    assert judge(ID, lying(20 + 1.01 * DAY_S, told=False))[0].missing_facts == ("delete_retention_ms",)
    (copy,) = judge(ID, lying(50, files=COPIED))
    assert "those of a copy" in copy.summary


def test_session_that_is_not_the_first():
    """Once a release was seen, that is what counts."""
    one = lying(now=200, change=lambda one: None)
    one.task.stores["s"].sessions = (session(130, offset_at_open=999),)
    assert len(judge(ID, one)) == 1
    one.task.stores["s"].sessions = (session(60, 125), *one.task.stores["s"].sessions)
    assert judge(ID, one) == []


def stopped(
    release: str = "3.9.2", guarantee: str = "at_least_once", *, held: float = 2, pause: float
) -> Scenario:
    """A process that filled two tasks, held them for a while, and ended in order; no agent watched."""
    run = play(Scenario(release, guarantee, told=TOLD, watched=False), "start")
    for name in ("0_0", "0_1"):
        play(run, f"opens {name}, puts {name} 1000, commits {name} 999, flushes {name}")
    return play(run, f"{held} s, closes 999, closes 0_1 999, ends, {pause} s")


def taken_again(run: Scenario, *, watch_first: bool) -> list[str]:
    """The volume is taken again, and the agent is as new as the pod: it began before the process, or after it."""
    if watch_first:
        run.world.watch()
        run.wait(5)
    play(run, "start, opens, 1 s, opens 0_1, 1 s")
    if not watch_first:
        run.world.watch()
    run.wait(15)
    found = [x for x in run.findings(ID) if x.severity is Severity.WARNING]
    assert [(x.severity, x.confidence) for x in found] == SUSPECTED * len(found)
    return sorted(x.task_id or "" for x in found)


BOTH = ["0_0", "0_1"]


@pytest.mark.parametrize(
    ("release", "guarantee", "held", "pause", "watch_first", "told"),
    [
        ("3.9.2", "at_least_once", 2, RETENTION_S + 5, True, BOTH),
        ("3.9.2", "at_least_once", 2, RETENTION_S + 5, False, BOTH),
        ("4.3.1", EOS, 2, RETENTION_S + 5, True, BOTH),
        ("4.3.1", EOS, 2, RETENTION_S + 5, False, []),  # nothing shows any more when they were closed
        *((x, "at_least_once", 10 * RETENTION_S, 5, y, []) for x in ("3.9.2", "4.1.2", "4.3.1") for y in (True, False)),
    ],
)  # fmt: skip
def test_old_volume_under_a_new_agent(release, guarantee, held, pause, watch_first, told):
    """An old one is told of both tasks; one that was held for days without a record, and restarted, was in use."""
    run = stopped(release, guarantee, held=held, pause=pause)
    assert taken_again(run, watch_first=watch_first) == told
    assert all("is used again" in x.summary for x in run.findings(ID) if x.status is Status.OPEN)
