"""The timeline of flushes: however many there are, what was on disk at a checkpoint stays known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.events import Source
from agent.inventory.flushes import apply_flushes
from agent.inventory.observations import DatabaseReading, Flush
from agent.inventory.stores import FLUSHES_KEPT
from agent.layout.paths import classify
from agent.quantities.flushed import first_flush_beyond, flushed_beyond
from tests.support.scenario_case import at, database, mark, session, store
from tests.support.scenario_looks import Reducing, checkpoint_look, database_look, flush, known, task_look

PLACE = classify("app/0_0/rocksdb/s")


def look(*flushes: tuple[int, float], now: float) -> DatabaseReading:
    """A look that finds these flushes: (puts, seconds)."""
    found = tuple(Flush(number, puts, at(seconds)) for number, (puts, seconds) in enumerate(flushes))
    return DatabaseReading(PLACE, at(now), Source.INOTIFY, puts=max(x for x, _ in flushes), flushes=found)


@given(
    before=st.integers(0, 2 * FLUSHES_KEPT),
    beyond=st.integers(1, 3 * FLUSHES_KEPT),
    at_once=st.integers(1, 7),
)
def test_what_was_flushed_beyond_a_checkpoint_stays_known(before, beyond, at_once):
    """Sixty flushes of a hundred puts beyond a checkpoint are 6,000 puts, not those of the last 48."""
    last = mark(1000, 100 * before, 100 * before)
    one = store([database()], [session(0, first=last)])
    files = one.databases[""]
    files.seen_us = at(0)
    flushes = [(100 * (i + 1), float(i + 1)) for i in range(before)]
    flushes += [(100 * (before + i + 1), 1000.0 + i + 1) for i in range(beyond)]
    for i in range(0, len(flushes), at_once):
        apply_flushes(one, files, look(*flushes[: i + at_once], now=3000))
    one.sessions[-1].puts_at_release = one.puts
    assert len(files.flushed) <= FLUSHES_KEPT
    assert one.puts_at(at(1000)) == 100 * before
    assert flushed_beyond(one.sessions[-1]) == 100 * beyond
    assert first_flush_beyond(one, last) == at(1001)


def test_a_flush_that_is_seen_late_still_came_before_its_checkpoint():
    """Its file's time decides, not the look's."""
    last = mark(10, 500, 0)
    one = store([database()], [session(0, first=last)])
    apply_flushes(one, one.databases[""], look((500, 9), (600, 11), now=20))
    assert last.puts == 500


@pytest.mark.parametrize(
    ("files", "at_10", "unsure"),
    [
        # the first is gone, and was not announced: it was written in the 20 seconds since the last reading
        ([(500, None), (600, None)], 600, True),
        ([(500, None), (600, 9)], 600, False),  # the second was written after it, and before the checkpoint
        ([(500, None), (600, 11)], 500, True),
        ([(500, 9), (600, 11)], 500, False),
        ([(500, 9), (600, None)], 600, True),
    ],
)
@pytest.mark.parametrize("is_read_first", [True, False])
def test_what_no_file_dates_may_be_younger_than_a_checkpoint(files, at_10, unsure, is_read_first):
    """It is taken for as old as it can be, and the checkpoint is marked so, whichever of the two is read first."""
    flushes = tuple(flush(number, *each) for number, each in enumerate(files))
    one = Reducing()
    one.see(task_look(0), database_look(0.1))
    looks = (database_look(20, puts=600, flushes=flushes), checkpoint_look(20, {"s": 500}, written=10))
    one.see(*looks if is_read_first else looks[::-1])
    last = known(one.store.sessions[-1].last)
    assert (last.puts, last.unsure) == (at_10, unsure)
    one.see(database_look(30, puts=700, flushes=(*flushes, Flush(9, 700, None))))
    assert known(one.store.sessions[-1].last).unsure is unsure
