"""Stores as RocksDB writes them beside a changelog in memory: what was planted is found, and nothing else."""

from __future__ import annotations

from typing import cast

import pytest

from agent.verify.changelog import Changelogs, Record
from agent.verify.kinds import DEFAULT, TIMESTAMPED, WITH_HEADERS, big_endian, headers_bytes, varint
from agent.verify.rule import Word
from agent.verify.verify import notes_of
from tests.agent.verify.changelog_double import (
    APP,
    AT_MS,
    Cluster,
    Entries,
    StateDir,
    Topic,
    Verify,
    write_database,
)

pytestmark = pytest.mark.delivery

AT = big_endian(AT_MS)
KV = f"{APP}-kv-changelog"
UNFINISHED = "of a transaction that was aborted or has not ended"


def keyed(count: int) -> tuple[Topic, Entries]:
    """Give a changelog of so many keys, and the entries of a timestamped store that has them all."""
    topic = Topic()
    for number in range(count):
        topic.add(b"k%03d" % number, b"v%d" % number)
    return topic, {x.key: AT + (x.value or b"") for x in topic.records}


@pytest.mark.parametrize(
    ("lost", "put", "offset", "word", "counts"),
    [
        ([], {}, 99, Word.EQUAL, {Word.EQUAL: 100}),
        # one flipped byte, one lost key and one added: each by its word
        (
            [b"k051"],
            {b"k050": b"v5x", b"added": b"v"},
            99,
            Word.MISSING,
            {Word.EQUAL: 98, Word.MISSING: 1, Word.EXTRA: 1, Word.DIFFERENT: 1},
        ),
        # written after the checkpoint: a flush may or may not have taken it along
        ([b"k060", b"k070", b"k080"], {}, 49, Word.BEHIND, {Word.EQUAL: 97, Word.PENDING: 3}),
        # behind all that was logged: a killed application's flush took what its producer never sent, deletions too
        (
            [b"k002"],
            {b"unsent": b"v", b"k001": b"unsent"},
            49,
            Word.AHEAD,
            {Word.EQUAL: 98, Word.AHEAD: 3},
        ),
        # not unsent: the store was closed at the changelog's end, or does not have all of it
        ([], {b"odd": b"v"}, 99, Word.EXTRA, {Word.EQUAL: 100, Word.EXTRA: 1}),
        ([b"k090"], {b"odd": b"v"}, 49, Word.EXTRA, {Word.EQUAL: 99, Word.PENDING: 1, Word.EXTRA: 1}),
        # -4 says that there is no offset
        ([b"k090"], {b"odd": b"v"}, -4, Word.EXTRA, {Word.EQUAL: 99, Word.PENDING: 1, Word.EXTRA: 1}),
    ],
    ids=["whole", "damaged", "behind", "unsent", "closed", "not all of it", "no offset"],
)
def test_each_key_has_its_word(
    state: StateDir,
    verify: Verify,
    lost: list[bytes],
    put: Entries,
    offset: int,
    word: Word,
    counts: dict[Word, int],
) -> None:
    """By what is lost, altered and added, and by the store's offset; examples name key and record that is due."""
    topic, entries = keyed(100)
    state.hold(
        {k: v for k, v in entries.items() if k not in lost} | {k: AT + v for k, v in put.items()}, at=offset
    )
    result = verify({KV: topic}, examples=5)
    assert (result.word, result.tally.counts) == (word, counts)
    if word is Word.MISSING:
        assert {(x.word, x.key, x.offset) for x in result.examples} == {
            (Word.DIFFERENT, b"k050", 50),
            (Word.MISSING, b"k051", 51),
            (Word.EXTRA, b"added", None),
        }
    if word is Word.AHEAD:
        assert {x.word for x in result.examples} == {Word.AHEAD}


@pytest.mark.parametrize(
    ("later", "held", "offset", "counts", "notes"),
    [
        # below the store's offset a value of an aborted transaction should not be there
        (
            [(b"ghost", b"v", True), (b"k001", b"wrong", True), (b"last", b"v", False)],
            {b"ghost": AT + b"v", b"k001": AT + b"wrong", b"last": AT + b"v"},
            12,
            {Word.EQUAL: 10, Word.EXTRA: 1, Word.DIFFERENT: 1},
            {
                b"ghost": f"it holds the value of offset 10, {UNFINISHED}",
                b"k001": f"it holds the value of offset 11, {UNFINISHED}",
            },
        ),
        # a store that went back, and one that kept what was deleted
        (
            [(b"k001", b"newer", False), (b"k002", None, False), (b"k003", b"newer", False)],
            {b"k003": AT + b"newer"},
            12,
            {Word.EQUAL: 8, Word.DIFFERENT: 1, Word.EXTRA: 1},
            {
                b"k001": "it holds the value of offset 1, which offset 10 replaced",
                b"k002": "it holds the value of offset 2, which offset 11 replaced",
            },
        ),
        (
            [(b"k001", None, False)],
            {b"k001": AT + b"odd", b"k002": AT + b"odd", b"ghost": AT + b"v"},
            10,
            {Word.EQUAL: 8, Word.DIFFERENT: 1, Word.EXTRA: 2},
            {
                b"k001": "deleted by offset 10; no record that is still there has the value",
                b"k002": "no record that is still there has the value",
                b"ghost": "no record of the key is there",
            },
        ),
    ],
    ids=["aborted", "older", "unknown"],
)
def test_where_a_value_comes_from_is_named(
    state: StateDir, verify: Verify, later: list[tuple[bytes, bytes | None, bool]], held: Entries, offset: int,
    counts: dict[Word, int], notes: dict[bytes, str],
) -> None:  # fmt: skip
    """The explanation says which record wrote it, and what came of that one."""
    topic, entries = keyed(10)
    for key, value, is_aborted in later:
        topic.add(key, value, is_aborted=is_aborted)
    state.hold(entries | held, at=offset)
    result = verify({KV: topic}, examples=5)
    assert result.tally.counts == counts
    said = notes_of(result, cast("Changelogs", Cluster({KV: topic})))
    assert {result.examples[number].key: note for number, note in said.items()} == notes


def test_before_a_transaction_ends_its_records_are_ahead(state: StateDir, verify: Verify) -> None:
    """Under exactly-once a running store has no offset, and more than is committed."""
    topic, entries = keyed(10)
    topic.add(b"open", b"v", is_aborted=True)
    state.hold(entries | {b"open": AT + b"v"})
    result = verify({KV: topic})
    assert (result.word, result.tally.counts) == (Word.AHEAD, {Word.EQUAL: 10, Word.AHEAD: 1})
    assert result.transactions


def test_a_store_of_headers_is_read_with_all_its_families(state: StateDir, verify: Verify) -> None:
    """A store that was switched has old entries in one family and new ones in another; its offset is its own."""
    topic, entries = keyed(10)
    headers = [("who", b"me")]
    topic.add(b"new", b"v", headers=headers)
    packed = headers_bytes(headers)
    new = [(b"new", varint(len(packed)) + packed + AT + b"v")]
    families = {DEFAULT: [], TIMESTAMPED: list(entries.items()), WITH_HEADERS: new}
    write_database(state.store("kv"), families, {f"{KV}-0": 10, "status": 0})
    result = verify({KV: topic})
    assert result.tally.counts == {Word.EQUAL: 11}
    assert (result.is_closed, result.offsets) == (True, {0: 10})


@pytest.mark.parametrize("says_itself", [True, False])
def test_a_source_topic_is_the_changelog(state: StateDir, verify: Verify, says_itself: bool) -> None:
    """From 4.3 on the store names it; before, a checkpoint with one of them, for the only store without an entry."""
    topic, entries = keyed(10)
    rows = {DEFAULT: [], TIMESTAMPED: list(entries.items())}
    write_database(state.store("kv"), rows, {"customers-0": 9} if says_itself else None)
    if not says_itself:
        state.checkpoint_lines(["customers 0 9"])
    result = verify({"customers": topic})
    assert (result.word, result.topic) == (Word.EQUAL, "customers")


def test_unknown_values_of_a_compacted_changelog_are_undecidable(state: StateDir, verify: Verify) -> None:
    """Running under exactly-once: an older value, whose record is gone, is not `ahead`; nor is it said of a marker."""
    topic, entries = keyed(100)
    entries[b"k001"] = AT + b"older"
    state.hold(entries)
    del topic.records[50:53]
    assert verify({KV: topic}).tally.counts[Word.UNDECIDABLE] == 4
    topic.records[50:50] = [Record(51, AT_MS, b"k051", b"v51", ())]
    counts = verify({KV: topic}).tally.counts
    assert (counts[Word.UNDECIDABLE], counts[Word.AHEAD]) == (0, 3)


# --------------------------------------------------------------------------------------- cannot be judged


def test_damage_inside_a_file_is_no_difference(state: StateDir, verify: Verify) -> None:
    """RocksDB refuses the block: nothing is said of keys."""
    topic, entries = keyed(2000)
    state.hold(entries, at=1999)
    (file,) = (x for x in state.store("kv").glob("*.sst"))
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 1
    file.write_bytes(content)
    result = verify({KV: topic})
    assert (result.word, result.tally.counts) == (Word.UNDECIDABLE, {})
    assert "RocksDB cannot read it: Corruption" in result.reason


@pytest.mark.parametrize(
    ("topics", "family", "offset", "reason"),
    [
        ({KV: Topic()}, TIMESTAMPED, 9, "is behind the end of the changelog, 0"),
        (
            {KV: Topic([Record(60, AT_MS, b"k", b"v", ())], start=50)},
            TIMESTAMPED,
            9,
            "is before the start of the changelog, 50",
        ),
        ({KV: keyed(10)[0]}, "somethingNew", None, "somethingNew"),
        ({}, TIMESTAMPED, None, f"{KV}: no such topic"),
    ],
    ids=["recreated", "cut beyond the offset", "a form of a later release", "no topic"],
)
def test_what_cannot_be_compared_has_a_reason(
    state: StateDir, verify: Verify, topics: dict[str, Topic], family: str, offset: int | None, reason: str
) -> None:
    """One line; nothing is guessed."""
    write_database(state.store("kv"), {DEFAULT: [], family: list(keyed(10)[1].items())})
    if offset is not None:
        state.checkpoint(kv=offset)
    result = verify(topics)
    assert result.word is Word.UNDECIDABLE
    assert reason in result.reason


def test_an_extra_key_below_the_start_of_the_changelog_is_undecidable(
    state: StateDir, verify: Verify
) -> None:
    """Retention took its record: nothing is known."""
    topic, entries = keyed(10)
    topic.records, topic.start = topic.records[5:], 5
    state.hold(entries, at=9)
    assert verify({KV: topic}).tally.counts == {Word.EQUAL: 5, Word.UNDECIDABLE: 5}
