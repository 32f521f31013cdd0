"""Detector `lost-segment`: a store is closed and opened again within milliseconds, and read segment by segment."""

from __future__ import annotations

from typing import Any

import pytest

from agent.contract.events import Severity
from agent.inventory.model import ProcessLife
from agent.inventory.observations import DatabaseReading, StoreOffsets
from tests.support.scenario_case import at, case, judge
from tests.support.scenario_looks import TASK, Reducing, database_look, flush

ID = "lost-segment"
ALOS = "at_least_once"
TOPIC = "app-w-changelog-0"
OLD, NEW = "w.60000", "w.120000"


def look(
    seconds: float, name: str, offset: int | None, flushed: float | None, **more: Any
) -> DatabaseReading:
    """A look at a segment, made at 1 (the older one) or 2 s; its flush took 500 puts, the offset, and its status."""
    rows = () if offset is None else ((TOPIC, offset, 502),)
    taken: dict[str, Any] = {} if flushed is None else {"puts": 500, "flushes": (flush(8, 500, flushed),)}
    status = None if flushed is None else 0
    return database_look(
        seconds,
        f"id-{name}",
        born=1 if name == OLD else 2,
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


@pytest.mark.parametrize("at_s", [20.13, 20.3])
def test_segment_that_was_not_flushed(at_s):
    """Read again it is still empty: the close was cut between the two."""
    run = lost_membership()
    again: dict[str, Any] = {"reopened": (20.2,), "manifest": 12} if at_s > 20.2 else {}
    run.see(look(at_s, NEW, None, None, **again))
    assert said(run) == [Severity.CRITICAL]
