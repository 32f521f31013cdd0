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


AT_10 = ("prices 0 10", "prices 1 10")
DAMAGE = {b"k04": AT + b"odd", b"ghost": AT + b"v"}


@pytest.mark.parametrize(
    ("lost", "put", "lines", "own", "given", "counts"),
    [
        ((), {}, AT_10, None, {}, {Word.EQUAL: 20}),
        ((), {}, (*AT_10, "rates 0 3"), None, {"topics": {"everywhere": "prices"}}, {Word.EQUAL: 20}),
        # from 4.3 on the store's own offsets name the topic; each partition has its own: what comes later is pending
        (
            [b"k19"], {}, (), {"prices-0": 10, "prices-1": 9, "status": 1}, {},
            {Word.EQUAL: 19, Word.PENDING: 1},
        ),
        # an offset is the next one: a record at it is not claimed, the one before it is
        (
            [b"k18", b"k16"], {}, ("prices 0 9", "prices 1 10"), None, PLAIN,
            {Word.EQUAL: 18, Word.PENDING: 1, Word.MISSING: 1},
        ),
        (
            [b"k03"], DAMAGE, AT_10, None, PLAIN,
            {Word.EQUAL: 18, Word.MISSING: 1, Word.DIFFERENT: 1, Word.EXTRA: 1},
        ),
        # its own processor may have put other values, or left records out
        ([b"k03"], {}, AT_10, None, {}, {Word.EQUAL: 19, Word.UNDECIDABLE: 1}),
    ],
    ids=["whole", "topic given", "own offsets", "next offset", "damaged", "kind not given"],
)  # fmt: skip
def test_every_partition_is_compared(
    state: StateDir, verify: Verify, lost: list[bytes], put: Entries, lines: tuple[str, ...],
    own: dict[str, int] | None, given: dict[str, object], counts: dict[Word, int],
) -> None:  # fmt: skip
    """By the topic that checkpoint or store names, or that is given; damage is certain only for a plain store."""
    topics, entries = two_partitions()
    hold(state, {k: v for k, v in entries.items() if k not in lost} | put, *lines, own=own)
    result = verify({"prices": topics}, examples=1, **given)
    assert (result.topic, result.tally.counts) == ("prices", counts)
    assert result.is_closed is (False if own else None)
    if not lost:
        assert (result.word, result.partitions) == (Word.EQUAL, {0: (9, 0, 10), 1: (9, 0, 10)})
    if put:
        assert {(x.word, x.key, x.offset) for x in result.examples} == {
            (Word.MISSING, b"k03", 1),
            (Word.DIFFERENT, b"k04", 2),
            (Word.EXTRA, b"ghost", None),
        }
    if Word.UNDECIDABLE in counts:
        assert result.word is Word.UNDECIDABLE
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
