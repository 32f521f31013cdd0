"""Which offsets are taken; that messages really come is proved beside a real broker (tests/delivery)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spark_rollup.sources.kafka import Range, Span, ranges_to_read

OFFSETS = st.integers(0, 1_000)
SPANS = st.dictionaries(
    st.integers(0, 5), st.tuples(OFFSETS, OFFSETS).map(lambda pair: Span(min(pair), max(pair)))
)


def test_a_new_partition_is_taken_from_its_first_message():
    """What was never taken begins where the partition begins."""
    assert ranges_to_read({0: Span(5, 9)}, {}) == {0: Range(5, 9, 0)}


def test_a_known_partition_goes_on():
    """What was taken is not read again."""
    assert ranges_to_read({0: Span(0, 9)}, {0: 7}) == {0: Range(7, 9, 0)}


def test_expired_messages_are_counted():
    """What was deleted before it was taken is told, not passed over."""
    assert ranges_to_read({0: Span(10, 20)}, {0: 4}) == {0: Range(10, 20, 6)}


def test_offsets_that_went_back_start_again():
    """After an unclean election a partition may be shorter than what was taken: ids drop the repeats."""
    assert ranges_to_read({0: Span(2, 5)}, {0: 90}) == {0: Range(2, 5, 0)}


@given(SPANS, st.dictionaries(st.integers(0, 5), OFFSETS))
def test_taken_again_there_is_nothing(spans, taken):
    """Ranges lie in their spans, and after them nothing is left."""
    first = ranges_to_read(spans, taken)
    assert all(spans[number].earliest <= found.first <= found.until for number, found in first.items())
    again = ranges_to_read(spans, {number: found.until for number, found in first.items()})
    assert all(found.first == found.until and not found.expired for found in again.values())
