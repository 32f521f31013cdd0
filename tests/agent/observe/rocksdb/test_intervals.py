"""Bounds of live entries, against a model that knows every key."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from agent.observe.rocksdb.properties import Properties
from agent.observe.rocksdb.store import EntryInterval, live_entries, newest_first
from agent.observe.rocksdb.version_edit import LiveFile

RUN = st.dictionaries(st.integers(0, 20), st.booleans(), min_size=1, max_size=15)  # key -> is a put


def properties(puts: int, deletions: int) -> Properties:
    return Properties(puts + deletions, deletions, 0)


def file(number: int, level: int, sequence: int) -> LiveFile:
    return LiveFile(number, level, 0, 100, max(0, sequence - 1), sequence)


def counted(run: dict[int, bool]) -> Properties:
    puts = sum(run.values())
    return properties(puts, len(run) - puts)


@given(st.lists(RUN, max_size=5), st.lists(RUN, max_size=2), st.randoms())
def test_bounds_hold(level_0, deeper, random):
    """The true number of live keys lies within the bounds, whatever the order in which files are given."""
    runs = level_0 + deeper  # newest first
    files = [(file(90 - n, 0, 1000 - 10 * n), counted(run)) for n, run in enumerate(level_0)]
    for level, run in enumerate(deeper, start=1):
        half = len(run) // 2
        parts = [dict(list(run.items())[:half]), dict(list(run.items())[half:])]
        files += [(file(10 * level + n, level, 0), counted(part)) for n, part in enumerate(parts)]
    newest: dict[int, bool] = {}
    for run in runs:
        for key, is_put in run.items():
            newest.setdefault(key, is_put)
    random.shuffle(files)
    bounds = live_entries(files)
    assert bounds is not None
    assert 0 <= bounds.low <= sum(newest.values()) <= bounds.high


def test_exact_without_overlap():
    """One run without deletions is exact."""
    assert live_entries([(file(5, 0, 9), properties(70, 0))]) == EntryInterval(70, 70)
    assert live_entries([]) == EntryInterval(0, 0)


def test_deletions_of_newer_runs_count():
    """Deletions in a newer run lower the bound of an older one, those in an older run do not."""
    newer, older = file(9, 0, 900), file(5, 0, 500)
    assert live_entries([(older, properties(100, 0)), (newer, properties(10, 30))]) == EntryInterval(70, 110)
    assert live_entries([(newer, properties(100, 0)), (older, properties(10, 30))]) == EntryInterval(100, 110)


def test_range_deletions():
    """Nothing bounds what a deletion of a key range removed."""
    assert live_entries([(file(5, 0, 9), replace(properties(5, 0), range_deletions=1))]) is None


def test_order():
    """Level 0 comes first, newest sequence first; deeper levels follow."""
    files = [file(3, 6, 0), file(5, 0, 100), file(9, 1, 300), file(7, 0, 200)]
    assert [one.number for one in newest_first(files)] == [7, 5, 9, 3]
