"""The timeline of flushes: however many there are, what was on disk at a checkpoint stays known."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.contract.events import Source
from agent.inventory.flushes import apply_flushes
from agent.inventory.observations import DatabaseReading, Flush
from agent.inventory.stores import FLUSHES_KEPT
from agent.layout.paths import classify
from agent.quantities.flushed import first_flush_beyond, flushed_beyond
from tests.support.scenario_case import at, database, mark, session, store

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
