"""Manifests, replayed: how far a store had come when it was opened, and what is remembered of a long one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.observe.rocksdb.manifest import parse_manifest
from agent.observe.rocksdb.replay import GONE_KEPT, ManifestView
from tests.support.rocksdb_writer import added, counters, deleted, family, family_add, frame


def edits(*records: bytes) -> ManifestView:
    return parse_manifest(frame(records), 5)


def test_a_family_whose_files_are_gone_was_in_use():
    """How a store was opened is decided by what was there then; a compaction may take it since."""
    view = edits(
        family_add(1, "new") + counters(5), added(6, 50) + counters(7, 50), deleted(6) + counters(8, 50)
    )
    assert view.live == ()
    assert view.families_in_use == ("default",)


# -- how far a store had come when it was opened ---------------------------------------------------------


def test_opened():
    """What had been given out when a process opened the store is on disk or gone: counting begins there."""
    view = edits(added(3, 0), counters(4, 5000), added(5, 5300) + counters(6, 5310))
    assert (view.opened_sequence, view.has_zeroed) == (5000, True)
    assert (view.snapshot_sequence, view.flushed_sequence) == (0, 5300)


@pytest.mark.parametrize(
    "first",
    [
        added(5, 80) + counters(6, 120),
        deleted(3) + counters(6, 120),
        deleted(3) + added(5, 80) + counters(6, 9),
    ],
)
def test_started_while_it_was_used(first):
    """A manifest that a flush or a compaction begins counts what is still in memory: it says nothing of an open."""
    assert edits(added(3, 40), first, counters(7, 130)).opened_sequence is None


def test_zeroed_offsets_are_no_data():
    """Only data of the application counts."""
    view = edits(family_add(1, "offsets"), added(3, 0) + family(1), added(4, 7), counters(5, 9))
    assert (view.opened_sequence, view.has_zeroed, view.snapshot_sequence) == (9, False, 7)


# -- what is remembered of a long one ----------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 400)), max_size=60))
def test_thinned(steps):
    """Files that are gone are forgotten only where the live ones and the newest say the same about every time."""
    records, live, number, sequence = [counters(2)], [], 2, 0
    everything = []
    for kind, step in steps:
        for _ in range(20):
            number, sequence = number + 1, sequence + step
            records.append(added(number, sequence) + counters(number + 1, sequence))
            live.append((number, sequence))
            everything.append((number, sequence))
        while len(live) > 1 + kind:
            gone = live.pop(step % len(live))
            records.append(deleted(gone[0]) + counters(number + 1, sequence))
    view = edits(*records)
    assert not view.torn
    assert sorted(one.number for one in view.live) == sorted(n for n, _ in live)
    kept = {one.number for one in view.new_files}
    assert kept >= {n for n, _ in live} | {n for n, _ in everything[-GONE_KEPT:]}
    assert len(kept) <= 3 * (len(live) + GONE_KEPT) + 20
    assert view.flushed_sequence == sequence

    def puts_at_each_live(files: list[tuple[int, int]]) -> dict[int, int]:
        """How far puts had come after each file whose time is known."""
        said, known = {}, 0
        for n, s in sorted(files, key=lambda one: one[1]):
            known = n if n in dict(live) else known
            said[known] = s
        return said

    assert puts_at_each_live([x for x in everything if x[0] in kept]) == puts_at_each_live(everything)
