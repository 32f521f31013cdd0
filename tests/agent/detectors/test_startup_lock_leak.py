"""Detector `startup-lock-leak`: a store of the start-up pass not closed by an orderly exit (KAFKA-20663 b)."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.inventory.model import Application, ProcessLife
from tests.support.scenario import Scenario
from tests.support.scenario_case import at, case, database, judge, session, store, task
from tests.support.twins import twin

ID = "startup-lock-leak"


def leaking(
    release: str = "4.3.0", *, leaks: bool = True, flushed: int = 500, others: bool = True, **more
) -> Scenario:
    """Two tasks work; at the orderly end one of them is only let go with the process."""
    run = Scenario(release, **more)
    app = run.start()
    for task_id in ("0_0", "0_1") if others else ("0_0",):
        app.opens(task_id)
        run.wait(0.5)
        app.puts(task_id, 500)
        app.flushes(task_id)
        app.puts(task_id, flushed)
    run.wait(5)
    if leaks:
        if flushed:
            app.flushes("0_0")
        if others:
            app.closes("0_1", 999)
        for database in run.task("0_0").databases.values():
            run.world.play("unlock", f"{database.path}/LOCK")
            database.crash()
        app.held.clear()
        app.ends()
    else:
        app.stops({"0_0": 999, "0_1": 999})
    run.wait(10)
    return run


def test_store_that_was_not_closed():
    """The other store was closed, this one was not, and it had flushed: suspected, told once."""
    finding = leaking().only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status) == (
        Level.EXPOSURE,
        Severity.WARNING,
        Confidence.SUSPECTED,
        Status.RESOLVED,
    )
    assert (finding.task_id, finding.store, finding.affected) == ("0_0", "s", Affected.YES)
    assert finding.upstream == ("KAFKA-20663",)
    times = [step.at_us for step in finding.evidence]
    assert times == sorted(times)


@pytest.mark.twin_of(ID, "closed in order")
def test_quiet_for_an_orderly_stop():
    """Every store closed."""
    assert leaking(leaks=False).findings(ID) == []


@pytest.mark.twin_of(ID, "a kill: another store was not closed either")
def test_quiet_for_a_kill():
    """When no store was closed, the process was killed."""
    run = Scenario("4.3.0")
    app = run.start()
    for task_id in ("0_0", "0_1"):
        app.opens(task_id)
        run.wait(0.5)
        app.puts(task_id, 500)
        app.flushes(task_id)
    run.wait(5)
    app.crash()
    run.wait(10)
    assert run.findings(ID) == []


@pytest.mark.twin_of(ID, "no other store shows how the process ended")
def test_quiet_without_another_store():
    """A single store gives nothing to compare with."""
    assert leaking(others=False).findings(ID) == []


@pytest.mark.parametrize("release", ["4.3.1", "4.2.1"])
def test_quiet_on_other_releases(release):
    """Only 4.3.0 keeps the lock of the start-up pass."""
    assert leaking(release).findings(ID) == []


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_needs_the_release(guarantee):
    """An unknown release, or 4.3 without a patch number, is not enough for something nobody reproduced."""
    assert leaking(hidden=("kafka_streams_version",), guarantee=guarantee).findings(ID) == []
    assert len(judge(ID, dossier(release="4.3.0"))) == 1
    assert judge(ID, dossier(release="4.3")) == []
    assert judge(ID, dossier(release=None)) == []


def dossier(
    *,
    released: float = 50,
    closed: bool | None = False,
    puts: int = 101,
    other_released: float | None = 49.9,
    other_closed: bool | None = True,
    release: str | None = "4.3.0",
    task_id: str = "0_0",
):
    """The process ended at 50 s; 0_0 (opened with 100 puts) was let go without a close, 0_1 was closed."""
    app = Application("app", exists=True)
    app.lives += (ProcessLife(at(-100), at(-50)), ProcessLife(at(0), at(50)))
    mine = session(1, released, puts=puts, puts_at_open=100)
    mine.closed = closed
    other = session(1, other_released, puts=100)
    other.closed = other_closed
    sibling = task(store([database()], [other]), task_id="0_1")
    judged = task(store([database()], [mine]), task_id=task_id)
    return case(judged, sibling, application=app, release=release)


def test_dated_to_the_release():
    """The chain tells the opening and the release."""
    verdict = judge(ID, dossier())[0]
    assert (verdict.opened_at_us, verdict.identity) == (at(50), "identity-1")
    assert [step.at_us for step in verdict.evidence] == [at(1), at(50)]
    # two looks at the same end are one finding
    assert {judge(ID, dossier(released=x))[0].subject for x in (50, 49.5)} == {str(at(50))}


@pytest.mark.parametrize(("released", "said"), [(48.9, 0), (49, 1), (51, 1), (51.1, 0)])
def test_let_go_with_the_process(released, said):
    """Within a second of the process's end, on either side."""
    assert len(judge(ID, dossier(released=released))) == said


@pytest.mark.parametrize(("released", "said"), [(48.9, 0), (49, 1), (51, 1), (51.1, 0), (None, 0)])
def test_others_closed_at_the_same_end(released, said):
    """Only stores that went at the same end tell whether it was orderly."""
    assert len(judge(ID, dossier(other_released=released))) == said


@pytest.mark.parametrize(
    "changed",
    [
        twin(ID, "closed in order", {"closed": True}),
        twin(ID, "held too briefly to tell how it ended", {"closed": None}),
        twin(ID, "nothing was flushed in it", {"puts": 100}),
        twin(ID, "a kill: another store was not closed either", {"other_closed": False}),
        twin(ID, "no other store shows how the process ended", {"other_closed": None}),
    ],
)
def test_what_excludes_it(changed):
    """A close, an unknown end, nothing flushed, or another store that was not closed either."""
    assert judge(ID, dossier(**changed)) == []


def test_global_state_is_opened_by_no_other_process():
    """Start-up opens tasks of stream threads; the global state is let go of last and proves nothing."""
    assert judge(ID, dossier(task_id="global")) == []


@pytest.mark.parametrize(("released", "said"), [(50, 0), (30, 1), (None, 1)])
def test_all_others_must_be_closed(released, said):
    """One of two others without a close makes it a kill; not one that was let go at another time, or that lasts."""
    one = dossier()
    third = session(1, released, puts=100)
    third.closed = False
    one.application.tasks["0_2"] = task(store([database()], [third]), task_id="0_2")
    assert len(judge(ID, one)) == said


def test_process_that_still_lives():
    """A release in a living process is no exit."""
    one = dossier()
    one.application.lives[-1].ended_us = None
    assert judge(ID, one) == []


def test_every_session_is_judged():
    """An earlier good session does not hide the leak; a session that lasts leaks nothing."""
    one = dossier()
    good = session(-90, -50, puts=100)
    good.closed = True
    store = one.task.stores["s"]
    store.sessions = (good, *store.sessions, session(60))
    assert len(judge(ID, one)) == 1
