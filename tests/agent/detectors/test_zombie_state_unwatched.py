"""Detector `zombie-state`: an old volume that no agent watched (KAFKA-19943)."""

from __future__ import annotations

import pytest

from agent.contract.events import Confidence, Severity
from agent.inventory.disk import LockState, ProcessFact
from agent.inventory.model import ProcessLife
from agent.inventory.observations import StoreOffsets
from agent.judging.base import TaskCase
from tests.support.scenario import App, Scenario
from tests.support.scenario_case import (
    at,
    case,
    checkpoint,
    database,
    judge,
    session,
    severities,
    store,
    task,
)

ID = "zombie-state"
RETENTION_S = 100
TOLD = {"delete_retention_ms": RETENTION_S * 1_000}


def lying(
    *, read: float = 121, written: float = 20, offset: int | None = 999, told: bool = True, **settings
) -> TaskCase:
    """A volume that was read once; its task was written last at 20 s."""
    files = database(puts=1000, flushed=[(1000, 10)])
    files.seen_us, files.touched_us = at(read), at(10)
    one = task(store([files]), checkpoints=[checkpoint(written, offset)])
    one.mtime_us = at(written)
    return case(one, release="3.9.2", guarantee="at_least_once", told=TOLD if told else {}, **settings)


@pytest.mark.twin_of(ID, "tombstones of that time still live")
def test_volume_at_rest():
    """Nothing below the application was written for longer than tombstones live: said before the start."""
    (verdict,) = judge(ID, lying())
    assert (verdict.severity, verdict.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    assert "101 s, longer than tombstones live (100 s)" in verdict.summary
    assert verdict.next_action.startswith("Before the next start")
    assert verdict.evidence[0].at_us == at(20)
    assert judge(ID, lying(read=120)) == []


@pytest.mark.parametrize(
    ("days", "said"), [(1, []), (1.01, [(Severity.INFO, Confidence.UNKNOWN, ("delete_retention_ms",))])]
)
def test_retention_that_is_assumed(days, said):
    """By Kafka's default alone it is not known, and the missing fact is named."""
    one = lying(told=False, read=20 + days * 86_400)
    assert [(x.severity, x.confidence, x.missing_facts) for x in judge(ID, one)] == said


@pytest.mark.parametrize(
    "what",
    ["directory", "checkpoint", "sibling", "life", "lock", "held", "other task", "process", "no offset"],
)
def test_anything_newer_bounds_the_pause(what):
    """A process that lived later may have held the task; one that lives has not taken it."""
    one = lying(offset=None) if what == "no offset" else lying()
    kept = one.task.stores["s"].databases[""]
    if what == "directory":
        kept.touched_us = at(30)
    elif what == "checkpoint":
        one.task.mtime_us = at(30)
    elif what == "sibling":
        other = database(puts=5, flushed=[(5, 30)])
        one.application.tasks["0_1"] = task(store([other]), task_id="0_1")
    elif what == "life":
        one.application.lives = (ProcessLife(at(100)),)
    elif what == "lock":
        one.application.lock = LockState.HELD
    elif what == "held":
        kept.lock = LockState.HELD
    elif what == "other task":
        one.application.tasks["0_1"] = task(task_id="0_1")
        one.application.tasks["0_1"].held = True
    elif what == "process":
        one.application.processes = (ProcessFact(1, at(100)),)
    assert judge(ID, one) == []


@pytest.mark.parametrize(
    ("status", "guarantee", "said"),
    [
        (0, "exactly_once_v2", 1),
        pytest.param(
            1,
            "exactly_once_v2",
            0,
            marks=pytest.mark.twin_of(ID, "a start does not trust it: no offset, or it is wiped"),
        ),
        (1, "at_least_once", 1),
    ],
)
def test_store_that_keeps_its_offset(status, guarantee, said):
    """From 4.3 on the store holds it; exactly-once wipes one that was left open."""
    files = database(puts=1000, flushed=[(1000, 10)])
    files.seen_us = at(121)
    files.offsets = StoreOffsets(status=status, offsets=(("app-s-changelog-0", 999, 0),), written_us=at(20))
    one = case(task(store([files])), release="4.3.1", guarantee=guarantee, told=TOLD)
    assert len(judge(ID, one)) == said
    files.offsets = StoreOffsets(status=status, offsets=(("app-s-changelog-0", 999, 0),), written_us=at(22))
    assert judge(ID, one) == []


def test_times_of_a_copy_are_unknown():
    """Data older than the store that it lies in: each file has the time of the copying."""
    one = lying(read=50)
    kept = one.task.stores["s"].databases[""]
    kept.born_us, kept.oldest_data_us = at(20), at(0)
    (verdict,) = judge(ID, one)
    assert (verdict.severity, verdict.confidence) == (Severity.INFO, Confidence.UNKNOWN)
    assert "those of a copy" in verdict.summary
    kept.seen_us = at(121)  # the copy itself has been unused for so long
    assert severities(ID, one) == [Severity.WARNING]


def stopped(release: str = "3.9.2", guarantee: str = "at_least_once", **told: object) -> tuple[Scenario, App]:
    """A process that filled a task, and ended in order; no agent watched."""
    run = Scenario(release, guarantee, told={**TOLD, **told}, watched=False)
    app = run.start()
    app.opens("0_0")
    app.opens("0_1")
    for name in ("0_0", "0_1"):
        app.puts(name, 1000)
        app.commits(name, 999)
    run.wait(2)
    app.stops({"0_0": 999, "0_1": 999})
    return run, app


def taken_again(run: Scenario, *, watch_first: bool) -> list[str]:
    """The volume is taken again, and the agent is as new as the pod: it began before the process, or after it."""
    if watch_first:
        run.world.watch()
        run.wait(5)
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.opens("0_1")
    run.wait(1)
    if not watch_first:
        run.world.watch()
    run.wait(15)
    found = [x for x in run.findings(ID) if x.severity is Severity.WARNING]
    assert {x.confidence for x in found} <= {Confidence.SUSPECTED}
    return sorted(x.task_id or "" for x in found)


@pytest.mark.parametrize("watch_first", [True, False])
def test_old_volume_under_a_new_agent(watch_first):
    """Both tasks are told, though the second one was opened a second after the first."""
    run, _ = stopped()
    run.wait(RETENTION_S + 5)
    assert taken_again(run, watch_first=watch_first) == ["0_0", "0_1"]
    assert all("is used again" in x.summary for x in run.findings(ID))


@pytest.mark.parametrize("release", ["3.9.2", "4.1.2", "4.3.1"])
@pytest.mark.parametrize("watch_first", [True, False])
def test_restart_of_a_quiet_application(release, watch_first):
    """It held its stores for days without a record, was stopped in order, and started at once: it was in use."""
    run = Scenario(release, told=TOLD, watched=False)
    app = run.start()
    for name in ("0_0", "0_1"):
        app.opens(name)
        app.puts(name, 1000)
        app.commits(name, 999)
        app.flushes(name)
    run.wait(10 * RETENTION_S)
    app.stops({"0_0": 999, "0_1": 999})
    run.wait(5)
    assert taken_again(run, watch_first=watch_first) == []


def test_old_volume_from_4_3_on():
    """Seen before the start it is told; once its stores are open, nothing shows when they were closed."""
    run, _ = stopped("4.3.1", "exactly_once_v2")
    run.wait(RETENTION_S + 5)
    assert taken_again(run, watch_first=True) == ["0_0", "0_1"]
    run, _ = stopped("4.3.1", "exactly_once_v2")
    run.wait(RETENTION_S + 5)
    assert taken_again(run, watch_first=False) == []


def test_wiped_at_the_start():
    """Exactly-once without an offset: the start wipes the task, and nothing comes back."""
    run, _ = stopped("3.7.2", "exactly_once_v2")
    run.wait(RETENTION_S + 5)
    run.world.watch()
    run.wait(5)
    assert [x.severity for x in run.findings(ID)] == [Severity.WARNING] * 2
    app = run.start()
    app.opens("0_0")
    app.wipes("0_0")
    run.wait(20)
    assert [x.task_id for x in run.findings(ID) if x.status.value == "open"] == ["0_1"]


def test_session_that_is_not_the_first():
    """Once a release was seen, that is what counts."""
    files = database(puts=1000, flushed=[(1000, 10)])
    files.touched_us = at(10)
    one = case(
        task(store([files], [session(130, offset_at_open=999)]), checkpoints=[checkpoint(20, 999)]),
        release="3.9.2",
        told=TOLD,
        now=200,
    )
    assert len(judge(ID, one)) == 1
    one.task.stores["s"].sessions = (session(60, 125), *one.task.stores["s"].sessions)
    assert judge(ID, one) == []
