"""Detector `unclean-store`: 4.3+, the status says open and nobody holds the store (KIP-1035)."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.inventory.disk import LockState
from agent.inventory.observations import StoreOffsets
from tests.support.scenario import WINDOWED, Scenario
from tests.support.scenario_case import case, database, judge, store, task

ID = "unclean-store"


def crashed(
    release: str = "4.3.1", guarantee: str = "exactly_once_v2", *, flush: bool = True, **more
) -> Scenario:
    """A store is closed clean once, opened again, flushed (or not) and killed."""
    run = Scenario(release, guarantee, **more)
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 100)
    run.wait(1)
    app.stops({"0_0": 99})
    run.wait(5)
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 500)
    if flush:
        app.flushes("0_0")
    run.wait(2)
    assert run.findings(ID) == []
    app.crash()
    run.wait(5)
    return run


@pytest.mark.parametrize(
    ("guarantee", "then"), [("exactly_once_v2", "wipes the task"), ("at_least_once", "goes on with it")]
)
def test_says_what_the_next_assignment_does(guarantee, then):
    """Under exactly-once the next assignment wipes, under at-least-once it goes on."""
    finding = crashed(guarantee=guarantee).only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status) == (
        Level.EXPOSURE,
        Severity.INFO,
        Confidence.CONFIRMED,
        Status.OPEN,
    )
    assert (finding.store, finding.affected) == ("s", Affected.YES)
    assert then in finding.summary


def test_quiet_without_a_flush():
    """N23: without a flush since the open the disk shows the last clean close."""
    assert crashed(flush=False).findings(ID) == []


def test_clears_when_it_is_opened_again():
    """A holder ends the condition."""
    run = crashed(guarantee="at_least_once")
    app = run.start()
    app.opens("0_0")
    run.wait(2)
    assert run.only(ID).status is Status.RESOLVED


def test_quiet_before_4_3():
    """Earlier stores have no status."""
    assert crashed("4.2.1").findings(ID) == []


def test_segment():
    """A segment of a windowed store is named by its store."""
    run = Scenario("4.3.1", "exactly_once_v2", stores={"w": WINDOWED})
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 100)
    app.flushes("0_0")
    run.wait(1)
    app.crash()
    run.wait(5)
    assert run.only(ID).store == "w"


@pytest.mark.parametrize(
    ("status", "lock", "said"),
    [
        (1, LockState.FREE, 1),
        (0, LockState.FREE, 0),
        (None, LockState.FREE, 0),
        (1, LockState.HELD, 0),
        (1, LockState.UNKNOWN, 0),
        (1, None, 0),
    ],
)
def test_open_and_free(status, lock, said):
    """Both must be known: the status, and that nobody holds it."""
    files = database(lock=lock)
    files.offsets = StoreOffsets(status=status, status_sequence=7)
    one = case(task(store([files])), release="4.3.1", guarantee=None)
    found = judge(ID, one)
    assert len(found) == said
    if found:
        assert "under exactly-once" in found[0].summary


@pytest.mark.parametrize(
    ("guarantee", "then"),
    [
        ("exactly_once_v2", "the application fails at every start"),
        ("at_least_once", "goes on with it"),
        (None, "under exactly-once the application fails"),
    ],
)
def test_a_global_store_is_never_wiped(guarantee, then):
    """KAFKA-21034: under exactly-once its directory must be removed by hand; nothing is to be done otherwise."""
    files = database(lock=LockState.FREE)
    files.offsets = StoreOffsets(status=1, status_sequence=7)
    one = case(task(store([files]), task_id="global"), release="4.3.1", guarantee=guarantee)
    (found,) = judge(ID, one)
    assert then in found.summary
    assert "wipes" not in found.summary
    assert found.affected is Affected.YES
    assert ("remove that directory only" in found.next_action) == (guarantee != "at_least_once")
