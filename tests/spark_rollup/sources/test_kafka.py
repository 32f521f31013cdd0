"""Which offsets are taken; that messages really come is proved beside a real broker (tests/delivery)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rollup.sources.kafka import Range, ranges_to_read

OFFSETS = st.integers(0, 1_000)
SPANS = st.dictionaries(
    st.integers(0, 5), st.tuples(OFFSETS, OFFSETS).map(lambda pair: (min(pair), max(pair)))
)


@pytest.mark.parametrize(
    ("span", "known", "expected"),
    [
        ((5, 9), {}, Range(5, 9, 0)),
        ((0, 9), {0: 7}, Range(7, 9, 0)),
        ((10, 20), {0: 4}, Range(10, 20, 6)),
        ((2, 5), {0: 90}, Range(2, 5, 0)),
    ],
    ids=["new", "known", "expired messages are counted", "shorter than what was taken: unclean election"],
)
def test_what_is_read_of_a_partition(span, known, expected):
    """From its first message, or from where the last run stopped; what was deleted before it was taken is told."""
    assert ranges_to_read({0: span}, known) == {0: expected}


@given(SPANS, st.dictionaries(st.integers(0, 5), OFFSETS))
def test_taken_again_there_is_nothing(spans, taken):
    """Ranges lie in their spans, and after them nothing is left."""
    first = ranges_to_read(spans, taken)
    assert all(spans[number][0] <= found.first <= found.until for number, found in first.items())
    again = ranges_to_read(spans, {number: found.until for number, found in first.items()})
    assert all(found.first == found.until and not found.expired for found in again.values())
