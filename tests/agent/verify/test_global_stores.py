"""Global stores beside every partition of their topic."""

from __future__ import annotations

import pytest

from agent.verify.kinds import Kind, big_endian
from agent.verify.report import json_line, paragraph
from agent.verify.rule import Word
from tests.agent.verify.changelog_double import APP, AT_MS, Entries, StateDir, Topic, Verify, write_database

pytestmark = pytest.mark.delivery

AT = big_endian(AT_MS)
PLAIN = {"kinds": {"everywhere": Kind.KEY_VALUE}}


@pytest.fixture
def state(state: StateDir) -> StateDir:
    """Give a state directory with a global store's place in it."""
    state.task.rmdir()
    state.task = state.root / APP / "global"
    state.task.mkdir()
    return state


def two_partitions() -> tuple[list[Topic], Entries]:
    """Give a topic of two partitions with ten keys each, and the entries of a store that has them all."""
    topics, entries = [Topic(), Topic()], {}
    for number in range(20):
        topics[number % 2].add(b"k%02d" % number, b"v%d" % number)
        entries[b"k%02d" % number] = AT + b"v%d" % number
    return topics, entries


def hold(state: StateDir, entries: Entries, *lines: str, own: dict[str, int] | None = None) -> None:
    """Write the store, and its checkpoint, whose offsets are the next to be read."""
    write_database(
        state.store("everywhere"), {"default": [], "keyValueWithTimestamp": list(entries.items())}, own
    )
    if lines:
        state.checkpoint_lines(lines)


@pytest.mark.parametrize("other", [(), ("rates 0 3",)], ids=["told by the checkpoint", "given"])
def test_every_partition_is_compared(state: StateDir, verify: Verify, other: tuple[str, ...]) -> None:
    """Of the topic that the checkpoint names, or that is given where it names two."""
    topics, entries = two_partitions()
    hold(state, entries, "prices 0 10", "prices 1 10", *other)
    result = verify({"prices": topics}, topics={"everywhere": "prices"} if other else {})
    assert (result.word, result.topic, result.tally.counts) == (Word.EQUAL, "prices", {Word.EQUAL: 20})
    assert result.partitions == {0: (9, 0, 10), 1: (9, 0, 10)}


def test_the_stores_own_offsets_name_the_topic(state: StateDir, verify: Verify) -> None:
    """4.3; each partition has its own offset: what comes later is pending."""
    topics, entries = two_partitions()
    del entries[b"k19"]
    hold(state, entries, own={"prices-0": 10, "prices-1": 9, "status": 1})
    result = verify({"prices": topics})
    assert (result.word, result.tally.counts) == (Word.BEHIND, {Word.EQUAL: 19, Word.PENDING: 1})
    assert result.is_closed is False


def test_an_offset_is_the_next_one(state: StateDir, verify: Verify) -> None:
    """A record at the checkpoint's offset is not claimed, the one before it is."""
    topics, entries = two_partitions()
    del entries[b"k18"], entries[b"k16"]
    hold(state, entries, "prices 0 9", "prices 1 10")
    assert verify({"prices": topics}, **PLAIN).tally.counts == {
        Word.EQUAL: 18,
        Word.PENDING: 1,
        Word.MISSING: 1,
    }


def test_damage_is_named_where_the_store_is_said_to_be_plain(state: StateDir, verify: Verify) -> None:
    """One key lost, one altered, one added."""
    topics, entries = two_partitions()
    del entries[b"k03"]
    entries |= {b"k04": AT + b"odd", b"ghost": AT + b"v"}
    hold(state, entries, "prices 0 10", "prices 1 10")
    result = verify({"prices": topics}, examples=1, **PLAIN)
    assert result.tally.counts == {Word.EQUAL: 18, Word.MISSING: 1, Word.DIFFERENT: 1, Word.EXTRA: 1}
    assert {(x.word, x.key, x.offset) for x in result.examples} == {
        (Word.MISSING, b"k03", 1),
        (Word.DIFFERENT, b"k04", 2),
        (Word.EXTRA, b"ghost", None),
    }


def test_a_store_that_differs_is_undecidable_unless_its_kind_is_given(
    state: StateDir, verify: Verify
) -> None:
    """Its own processor may have put other values, or left records out."""
    topics, entries = two_partitions()
    del entries[b"k03"]
    hold(state, entries, "prices 0 10", "prices 1 10")
    result = verify({"prices": topics}, examples=1)
    assert (result.word, result.tally.counts) == (Word.UNDECIDABLE, {Word.EQUAL: 19, Word.UNDECIDABLE: 1})
    text = paragraph(result, {}, show_keys=False)
    assert "UNDECIDABLE   orders/global/everywhere  (key-value; prices, 2 partitions)" in text
    assert "(1 missing)" in text
    assert "--kind everywhere=key-value" in text
    assert '"offset": 9' in json_line(result, {}, show_keys=False)


def test_a_key_in_two_partitions_may_have_either_value(state: StateDir, verify: Verify) -> None:
    """Which came last is not known; a value of neither is undecidable."""
    topics, entries = two_partitions()
    topics[0].add(b"both", b"one")
    topics[1].add(b"both", b"two")
    topics[1].add(b"neither", b"one")
    topics[0].add(b"neither", b"two")
    entries |= {b"both": AT + b"one", b"neither": AT + b"three"}
    hold(state, entries, "prices 0 12", "prices 1 12")
    assert verify({"prices": topics}, **PLAIN).tally.counts == {Word.EQUAL: 21, Word.UNDECIDABLE: 1}


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ((), "0 topics could be its own: give --topic"),
        (("prices 0 10", "rates 0 3"), "2 topics could be its own: give --topic"),
        (("prices 0 30",), "its offset 29 is behind the end of the changelog, 10"),
    ],
)
def test_what_cannot_be_compared_has_a_reason(
    state: StateDir, verify: Verify, lines: tuple[str, ...], reason: str
) -> None:
    """Before 4.3 one checkpoint is that of all global stores."""
    topics, entries = two_partitions()
    hold(state, entries, *lines)
    result = verify({"prices": topics})
    assert result.word is Word.UNDECIDABLE
    assert reason in result.reason


def test_a_store_of_segments_is_undecidable(state: StateDir, verify: Verify) -> None:
    """Only stores of one database are compared."""
    (state.task / "everywhere").mkdir()
    result = verify({"prices": two_partitions()[0]})
    assert (result.word, result.reason) == (Word.UNDECIDABLE, "a global store of segments is not compared")
