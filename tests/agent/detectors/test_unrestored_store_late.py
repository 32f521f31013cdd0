"""Detector `unrestored-store`: checkpoints that are read before their flushes, and those that a standby writes."""

from __future__ import annotations

import pytest

from agent.contract.events import Severity
from tests.agent.detectors.test_unrestored_store import ID, jump
from tests.support.scenario_case import at, checkpoint, mark, severities


def test_a_flush_that_is_read_after_its_checkpoint_counts():
    """Found by the hunt: on a busy machine the checkpoint was read first, and the store seemed to lack its records."""
    late = jump(puts=3000)
    assert severities(ID, late) == [Severity.CRITICAL]
    late.task.stores["s"].databases[""].flushed += ((12_200, at(4.9)),)
    assert severities(ID, late) == []


def test_a_fresh_checkpoint_waits_for_its_flushes():
    """Two seconds after it, what was flushed before has been read; until then the first one of the session counts."""
    assert severities(ID, jump(now=6.9)) == []
    assert severities(ID, jump(now=7)) == [Severity.CRITICAL]
    two = jump(now=6.9)
    two.task.stores["s"].sessions[0].first = mark(1, 12_000, 3000)
    assert severities(ID, two) == [Severity.CRITICAL]


def standby(
    *marks: float,
    released: float | None = None,
    guarantee: str | None = "exactly_once",
    standbys: int | None = 1,
):
    """Opened at 3000 with 3000 puts, no restoration; the checkpoints at these seconds say 12,200 with 4200 puts."""
    one = jump(guarantee=guarantee, standbys=standbys, seconds=marks[-1])
    of = one.task.stores["s"].sessions[0]
    of.first = mark(marks[0], 12_200, 4200)
    of.released_us = None if released is None else at(released)
    return one


@pytest.mark.twin_of(ID, "an exactly-once standby passes over what was aborted")
def test_an_exactly_once_standby_passes_over_what_was_aborted():
    """Found by the hunt: a kill aborts thousands of records; only a standby writes checkpoints while it goes on."""
    assert severities(ID, standby(5)) == []
    assert severities(ID, standby(5, released=10)) == []
    assert severities(ID, standby(5, 5.1, released=5.2)) == []
    assert severities(ID, standby(5, standbys=None)) == []
    assert severities(ID, standby(5, released=9.9)) == [Severity.WARNING]  # the close of either
    assert severities(ID, standby(5, guarantee="at_least_once")) == [Severity.WARNING]
    assert severities(ID, standby(5, standbys=0)) == [Severity.CRITICAL]


def test_a_checkpoint_that_is_deleted_alone_shows_the_guarantee():
    """At-least-once deletes none but with the whole directory."""
    for deleted, in_walk, said in ((True, False, 0), (True, True, 1), (False, False, 1)):
        one = standby(5, guarantee=None)
        one.task.checkpoints += (checkpoint(-1, 3000, ended=0, deleted=deleted, in_walk=in_walk),)
        assert severities(ID, one) == [Severity.WARNING] * said
