"""Buckets of entries: in whatever order, and so that one change is seen."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("xxhash", reason="the extra `verify` is not installed")

from agent.contract.buckets import Bucket
from agent.verify.buckets import Buckets

ENTRIES = st.dictionaries(st.binary(max_size=12), st.binary(max_size=12), max_size=60)


def rows_of(entries: Iterable[tuple[bytes, bytes]], number: int = 8) -> tuple[Bucket, ...]:
    """Add entries in the order in which they are given."""
    buckets = Buckets(number)
    for key, value in entries:
        buckets.add(key, value)
    return buckets.rows()


@given(ENTRIES, st.randoms(use_true_random=False))
def test_the_order_of_entries_does_not_matter(entries, random):
    """The same entries give the same buckets."""
    shuffled = list(entries.items())
    random.shuffle(shuffled)
    assert rows_of(shuffled) == rows_of(entries.items())


@given(ENTRIES.filter(bool), st.data())
def test_one_change_changes_one_bucket(entries, data):
    """A removed entry and another value are seen in the entry's bucket, and only there."""
    key = data.draw(st.sampled_from(sorted(entries)))
    whole = {row.bucket: row for row in rows_of(entries.items())}
    less = {row.bucket: row for row in rows_of((k, v) for k, v in entries.items() if k != key)}
    other = {row.bucket: row for row in rows_of({**entries, key: entries[key] + b"!"}.items())}
    (lost,) = {n for n in whole if whole[n] != less.get(n)}
    (changed,) = {n for n in whole if whole[n] != other[n]}
    assert lost == changed
    assert (whole[lost].entries, whole[lost].keys) == (other[lost].entries, other[lost].keys)
    assert whole[lost].entries - (less[lost].entries if lost in less else 0) == 1


@given(ENTRIES)
def test_entries_are_counted(entries):
    """The number of entries is the sum over the buckets."""
    buckets = Buckets(8)
    for key, value in entries.items():
        buckets.add(key, value)
    assert buckets.entries == len(entries) == sum(row.entries for row in buckets.rows())


@pytest.mark.parametrize("number", [0, 3, 1 << 21])
def test_a_number_of_buckets_that_is_no_power_of_two_is_refused(number):
    """The bucket of a key is some of its hash's bits."""
    with pytest.raises(ValueError, match="power of two"):
        Buckets(number)
