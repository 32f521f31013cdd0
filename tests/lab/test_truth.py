"""What stores must hold follows from what was sent."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tests.lab import truth
from tests.lab.truth import Batch, Contents, Difference, Spans, compare

SPANS = Spans(10_000, 120_000, 20_000)
FIRST = Batch(0, 0, 3, 100_000, 1)


def differ(store: str, sent: Sequence[Batch], found: Contents) -> list[Difference]:
    return compare(store, truth.STORES[store].expect(sent, SPANS), found)


def test_a_key_counts_as_often_as_it_was_sent():
    sent = [FIRST, Batch(0, 2, 3, 100_000, 0)]
    right = {"p0-0": "1", "p0-1": "1", "p0-2": "2"}
    assert differ("kv", sent, right) == []
    assert differ("kv", sent, {**right, "p0-2": "1"}) == [Difference("kv", 0, 1, 0, 3, ("p0-2=1 of 2",))]
    assert differ("kv", sent, {**right, "p0-0": "2"}) == [Difference("kv", 0, 0, 1, 3, ("p0-0=2 of 1",))]


def test_a_missing_key_belongs_to_the_partition_that_it_was_sent_to():
    sent = [FIRST, Batch(1, 0, 2, 100_000, 1)]
    found = {"p0-0": "1", "p0-1": "1", "p0-2": "1", "p1-0": "1"}
    assert [(x.partition, x.lost, x.expected) for x in differ("kv", sent, found)] == [(1, 1, 2)]


def test_a_window_that_stream_time_has_left_behind_may_be_there_or_not():
    sent = [FIRST, Batch(0, 3, 4, 220_000, 1)]
    old = {"p0-0@100000": "1", "p0-1@100000": "1", "p0-2@100000": "1"}
    new = {"p0-3@220000": "1"}
    assert differ("window", sent, new) == differ("window", sent, {**old, **new}) == []
    assert [x.extra for x in differ("window", sent, {**new, "p0-0@100000": "2"})] == [1]
    assert [x.lost for x in differ("window", sent, old)] == [1]


def test_records_of_a_key_near_each_other_are_one_session():
    sent = [Batch(0, 0, 1, at_ms, 0) for at_ms in (100_000, 110_000, 125_000)]
    assert differ("session", sent, {"p0-0@100000": "2", "p0-0@125000": "1"}) == []
    assert [x.lost for x in differ("session", sent, {"p0-0@100000": "3"})] == [1]


def test_a_table_holds_what_was_not_deleted_last():
    sent = [FIRST, Batch(0, 1, 3, 100_010, 0, True), Batch(0, 2, 3, 100_020, 0)]
    assert differ("table", sent, {"p0-0": "p0-0", "p0-2": "p0-2"}) == []
    assert [x.extra for x in differ("table", sent, {f"p0-{i}": f"p0-{i}" for i in range(3)})] == [1]


def test_a_versioned_store_holds_the_latest_time_even_if_it_came_first():
    sent = [FIRST, Batch(0, 0, 1, 99_000, 0), Batch(0, 1, 2, 101_000, 0)]
    assert differ("versioned", sent, {"p0-0": "100000", "p0-1": "101000", "p0-2": "100002"}) == []
    assert [
        x.lost for x in differ("versioned", sent, {"p0-0": "99000", "p0-1": "101000", "p0-2": "100002"})
    ] == [1]


def test_a_side_of_a_join_keeps_every_record_for_a_while():
    sent = [Batch(0, 6, 9, 100_000, 1), Batch(0, 7, 8, 100_001, 0), Batch(0, 17, 18, 145_000, 1)]
    right = {"p0-17@145000": "1"}
    assert (
        differ("KSTREAM-JOINTHIS", sent[:2], {"p0-6@100000": "1", "p0-7@100001": "2", "p0-8@100002": "1"})
        == []
    )
    assert differ("KSTREAM-JOINOTHER", sent[:2], {"p0-7@100001": "2"}) == []
    assert differ("KSTREAM-JOINOTHER", sent, right) == differ("KSTREAM-JOINTHIS", sent, right) == []
    assert [x.lost for x in differ("KSTREAM-JOINOTHER", sent, {})] == [1]


def test_a_record_that_is_sent_again_may_take_the_place_of_the_first_in_a_join():
    again = [Batch(0, 7, 8, 100_001, 0), Batch(0, 7, 8, 100_001, 0)]
    assert differ("KSTREAM-JOINTHIS", again, {"p0-7@100001": "1"}) == []
    assert [x.extra for x in differ("KSTREAM-JOINTHIS", again, {"p0-7@100001": "3"})] == [1]
    assert [x.lost for x in differ("KSTREAM-JOINTHIS", again, {})] == [1]


def test_a_store_with_a_number_in_its_name_is_known_by_the_beginning():
    assert truth.store_of("KSTREAM-JOINTHIS-0000000007-store") == truth.STORES["KSTREAM-JOINTHIS"]
    assert truth.store_of("kv") == truth.STORES["kv"]
    assert truth.store_of("KSTREAM-TOTABLE-STATE-STORE-0000000001") is None


BATCHES = st.lists(
    st.builds(
        Batch, st.integers(0, 2), st.integers(0, 5), st.integers(5, 20), st.integers(0, 500_000), st.integers(0, 999)
    ),
    min_size=1,
    max_size=6,
)  # fmt: skip


@given(BATCHES, st.sampled_from(sorted(truth.STORES)))
def test_what_must_be_there_is_right_and_nothing_is_an_empty_store(sent, store):
    expected = truth.STORES[store].expect(sent, SPANS)
    assert compare(store, expected, expected.required) == compare(store, expected, expected.possible) == []
    assert sum(x.lost for x in compare(store, expected, {})) == len(expected.required)
