"""Detector `lost-segment`: a store is closed and opened again within milliseconds, and read segment by segment."""

from __future__ import annotations

from typing import Any

import pytest

from agent.contract.events import Severity
from agent.inventory.disk import LockState
from agent.inventory.model import ProcessLife
from agent.inventory.observations import DatabaseReading, StoreOffsets
from tests.support.scenario_case import at, case, judge
from tests.support.scenario_looks import TASK, Reducing, database_look, flush

ID = "lost-segment"
ALOS = "at_least_once"
TOPIC = "app-w-changelog-0"
OLDEST, OLD, NEW = "w.0", "w.60000", "w.120000"
BORN_S = {OLDEST: 0.1, OLD: 1, NEW: 2}


def look(
    seconds: float, name: str, offset: int | None, flushed: float | None, **more: Any
) -> DatabaseReading:
    """A look at a segment; its flush took 500 puts, the offset, and its status."""
    rows = () if offset is None else ((TOPIC, offset, 502),)
    taken: dict[str, Any] = {} if flushed is None else {"puts": 500, "flushes": (flush(8, 500, flushed),)}
    status = None if flushed is None else 0
    return database_look(
        seconds,
        f"id-{name}",
        born=BORN_S[name],
        path=f"{TASK}/w/{name}",
        offsets=StoreOffsets(status, offsets=rows, written_us=at(flushed or 0)),
        deletions=0,
        **taken,
        **more,
    )


def lost_membership() -> Reducing:
    """A process that stood still closes the store at 20 s, the older segment first, and opens it again at 20.1 s."""
    run = Reducing()
    run.application.lives += (ProcessLife(at(0)),)
    run.see(look(3, OLD, None, None), look(3, NEW, None, None))
    run.see(look(20.02, OLD, 1148, 20))
    run.see(look(20.12, OLD, 1148, 20, reopened=(20.1,), manifest=12, opened_puts=500))
    return run


def said(run: Reducing) -> list[Severity]:
    """What is said of the task now."""
    one = case(run.task, application=run.application, release="4.3.1", guarantee=ALOS)
    return [x.severity for x in judge(ID, one) if x.severity is not Severity.INFO]


@pytest.mark.twin_of("lost-segment", "not every segment was read again")
def test_nothing_is_said_before_every_segment_was_read():
    """The newer one was not read since it was closed: that it is empty is what was known before."""
    assert said(lost_membership()) == []


def test_flush_that_is_read_after_the_opening():
    """The newer one was closed 10 ms after the older one, with the same offset: nothing is lost."""
    run = lost_membership()
    run.see(look(20.13, NEW, 1148, 20.01))
    assert said(run) == []
    run.see(look(20.3, NEW, 1148, 20.01, reopened=(20.2,), manifest=12, opened_puts=500))
    assert said(run) == []


@pytest.mark.twin_of("lost-segment", "not every segment was read again")
def test_a_start_up_pass_leaves_no_store_at_rest():
    """It opens and closes one segment after the other, and writes the offset of one into all: so is nothing lost."""
    run = Reducing()
    for name in (OLDEST, OLD, NEW):
        run.see(look(3, name, *((819, 0.5) if name == OLDEST else (None, None)), lock=LockState.FREE))
    assert said(run) == []
    for number, name in enumerate((OLDEST, OLD, NEW)):
        opened_s = 20 + 0.02 * number
        run.see(
            look(opened_s + 0.01, name, 819, opened_s, reopened=(opened_s,), manifest=12, lock=LockState.FREE)
        )
        assert said(run) == []


def test_a_loss_is_told_again_when_the_start_up_pass_was_killed():
    """The pass opened the older segment only, and wrote nothing; read again, the store lacks what it lacked before."""
    run = Reducing()
    run.see(
        look(20.02, OLD, 1148, 20, lock=LockState.FREE), look(20.02, NEW, None, None, lock=LockState.FREE)
    )
    assert said(run) == [Severity.CRITICAL]
    run.see(look(30.12, OLD, 1148, 20, reopened=(30.1,), manifest=12, opened_puts=500, lock=LockState.FREE))
    run.see(look(40, OLD, 1148, 20, reopened=(30.1,), manifest=12, opened_puts=500, lock=LockState.FREE))
    run.see(look(40, NEW, None, None, lock=LockState.FREE))
    assert said(run) == [Severity.CRITICAL]
