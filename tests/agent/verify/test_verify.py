"""Stores as RocksDB writes them beside a changelog in memory: what was planted is found, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from agent.verify.changelog import Changelogs, Record
from agent.verify.explain import notes_of
from agent.verify.kinds import DEFAULT, TIMESTAMPED, WITH_HEADERS, Kind, big_endian, headers_bytes, varint
from agent.verify.places import find_stores
from agent.verify.rule import Word
from agent.verify.verify import Given, Result, verify_store
from tests.agent.verify.changelog_double import APP, AT_MS, Cluster, StateDir, Topic, write_database

pytestmark = pytest.mark.delivery

AT = big_endian(AT_MS)
KV = f"{APP}-kv-changelog"
Verify = Callable[..., Result]


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    """Give a state directory."""
    pytest.importorskip("rocksdict", reason="run: make test-services")
    return StateDir(tmp_path / "state")


@pytest.fixture
def verify(state: StateDir, tmp_path: Path) -> Verify:
    """Give `verify(topics, **given)`: the result of the only store; nothing may be touched or left behind."""

    def run(topics: dict[str, Topic], **given: object) -> Result:
        work = tmp_path / "work"
        work.mkdir(exist_ok=True)
        before = state.tree()
        (store,) = find_stores(state.root)
        cluster = cast("Changelogs", Cluster(topics))
        result = verify_store(store, cluster, Given(**given), work, AT_MS / 1000, lambda done, total: None)  # type: ignore[arg-type]
        assert state.tree() == before
        assert list(work.iterdir()) == []
        return result

    return run


def keyed(count: int, topic: Topic | None = None) -> tuple[Topic, dict[bytes, bytes]]:
    """Give a changelog of so many keys, and the entries of a timestamped store that has them all."""
    topic = topic or Topic()
    for number in range(count):
        topic.add(b"k%03d" % number, b"v%d" % number)
    return topic, {x.key: AT + (x.value or b"") for x in topic.records}


def test_a_store_with_everything_is_equal(state: StateDir, verify: Verify) -> None:
    """Records, newer values, tombstones."""
    topic, entries = keyed(100)
    topic.add(b"k001", b"newer")
    topic.add(b"k002", None)
    entries[b"k001"] = AT + b"newer"
    del entries[b"k002"]
    write_database(state.store("kv"), {DEFAULT: [], TIMESTAMPED: list(entries.items())})
    state.checkpoint(kv=101)
    result = verify({KV: topic})
    assert result.word is Word.EQUAL
    assert result.tally.counts == {Word.EQUAL: 100}
    assert result.kind is Kind.KEY_VALUE


def test_one_flipped_byte_one_lost_key_and_one_added_are_found(state: StateDir, verify: Verify) -> None:
    """Each by its word, with its key and the offset of the record that is due."""
    topic, entries = keyed(1000)
    entries[b"k500"] = AT + b"v50x"
    del entries[b"k501"]
    entries[b"added"] = AT + b"v"
    write_database(state.store("kv"), {DEFAULT: [], TIMESTAMPED: list(entries.items())})
    state.checkpoint(kv=999)
    result = verify({KV: topic}, examples=5)
    assert result.word is Word.MISSING
    assert result.tally.counts == {Word.EQUAL: 998, Word.MISSING: 1, Word.EXTRA: 1, Word.DIFFERENT: 1}
    assert {(x.word, x.key, x.offset) for x in result.examples} == {
        (Word.DIFFERENT, b"k500", 500),
        (Word.MISSING, b"k501", 501),
        (Word.EXTRA, b"added", None),
    }


def test_what_was_written_after_the_checkpoint_is_behind(state: StateDir, verify: Verify) -> None:
    """Not there yet, there already: a flush may or may not have taken it along."""
    topic, entries = keyed(100)
    for key in (b"k060", b"k070", b"k080"):
        del entries[key]
    write_database(state.store("kv"), {DEFAULT: [], TIMESTAMPED: list(entries.items())})
    state.checkpoint(kv=49)
    result = verify({KV: topic})
    assert result.word is Word.BEHIND
    assert result.tally.counts == {Word.EQUAL: 97, Word.PENDING: 3}


def test_a_value_of_an_aborted_transaction_is_named(state: StateDir, verify: Verify) -> None:
    """Below the store's offset it should not be there; the explanation says which record wrote it."""
    topic, entries = keyed(10)
    topic.add(b"ghost", b"v", is_aborted=True)
    entries[b"ghost"] = AT + b"v"
    topic.add(b"k001", b"wrong", is_aborted=True)
    entries[b"k001"] = AT + b"wrong"
    topic.add(b"last", b"v")
    entries[b"last"] = AT + b"v"
    write_database(state.store("kv"), {DEFAULT: [], TIMESTAMPED: list(entries.items())})
    state.checkpoint(kv=12)
    result = verify({KV: topic}, examples=5)
    assert result.tally.counts == {Word.EQUAL: 10, Word.EXTRA: 1, Word.DIFFERENT: 1}
    notes = notes_of(result, cast("Changelogs", Cluster({KV: topic})))
    assert {result.examples[number].key: note.split(",")[0] for number, note in notes.items()} == {
        b"ghost": "it holds the value of offset 10",
        b"k001": "it holds the value of offset 11",
    }
    assert all("aborted" in note for note in notes.values())


def test_an_older_value_is_named_with_the_record_that_replaced_it(state: StateDir, verify: Verify) -> None:
    """A store that went back."""
    topic, entries = keyed(10)
    topic.add(b"k001", b"newer")
    write_database(state.store("kv"), {DEFAULT: [], TIMESTAMPED: list(entries.items())})
    state.checkpoint(kv=10)
    result = verify({KV: topic}, examples=1)
    assert result.tally.counts == {Word.EQUAL: 9, Word.DIFFERENT: 1}
    notes = notes_of(result, cast("Changelogs", Cluster({KV: topic})))
    assert list(notes.values()) == ["it holds the value of offset 1, which offset 10 replaced"]


def test_before_a_transaction_ends_its_records_are_ahead(state: StateDir, verify: Verify) -> None:
    """Under exactly-once a running store has no offset, and more than is committed."""
    topic, entries = keyed(10)
    topic.add(b"open", b"v", is_aborted=True)
    entries[b"open"] = AT + b"v"
    write_database(state.store("kv"), {DEFAULT: [], TIMESTAMPED: list(entries.items())})
    result = verify({KV: topic})
    assert result.word is Word.AHEAD
    assert result.tally.counts == {Word.EQUAL: 10, Word.AHEAD: 1}
    assert result.transactions


def test_a_store_of_headers_is_read_with_all_its_families(state: StateDir, verify: Verify) -> None:
    """A store that was switched has old entries in one family and new ones in another; its offset is its own."""
    topic, entries = keyed(10)
    headers = [("who", b"me")]
    topic.add(b"new", b"v", headers=headers)
    packed = headers_bytes(headers)
    write_database(
        state.store("kv"),
        {
            DEFAULT: [],
            TIMESTAMPED: list(entries.items()),
            WITH_HEADERS: [(b"new", varint(len(packed)) + packed + AT + b"v")],
        },
        {f"{KV}-0": 10, "status": 0},
    )
    result = verify({KV: topic})
    assert result.tally.counts == {Word.EQUAL: 11}
    assert result.is_closed is True
    assert result.offsets == {0: 10}


def test_the_store_says_itself_that_a_source_topic_is_its_changelog(state: StateDir, verify: Verify) -> None:
    """From 4.3 on the name is in the store."""
    topic, entries = keyed(10)
    write_database(state.store("kv"), {DEFAULT: [], TIMESTAMPED: list(entries.items())}, {"customers-0": 9})
    result = verify({"customers": topic})
    assert (result.word, result.topic) == (Word.EQUAL, "customers")


def test_a_checkpoint_with_one_source_topic_names_the_changelog(state: StateDir, verify: Verify) -> None:
    """Before 4.3, for the only store that has no entry of its own."""
    topic, entries = keyed(10)
    write_database(state.store("kv"), {DEFAULT: [], TIMESTAMPED: list(entries.items())})
    state.checkpoint_lines(["customers 0 9"])
    result = verify({"customers": topic})
    assert (result.word, result.topic) == (Word.EQUAL, "customers")


def test_values_behind_everything_that_was_logged_are_ahead(state: StateDir, verify: Verify) -> None:
    """A killed application: its flush took along what its producer never sent, deletions among it."""
    topic, entries = keyed(100)
    entries[b"unsent"] = AT + b"v"
    entries[b"k001"] = AT + b"unsent"
    del entries[b"k002"]
    write_database(state.store("kv"), {DEFAULT: [], TIMESTAMPED: list(entries.items())})
    state.checkpoint(kv=49)
    result = verify({KV: topic}, examples=1)
    assert result.word is Word.AHEAD
    assert result.tally.counts == {Word.EQUAL: 98, Word.AHEAD: 3}
    assert {x.word for x in result.examples} == {Word.AHEAD}


def test_unknown_values_of_a_compacted_changelog_are_undecidable(state: StateDir, verify: Verify) -> None:
    """Running under exactly-once: an older value, whose record is gone, is not `ahead`; nor is it said of a marker."""
    topic, entries = keyed(100)
    entries[b"k001"] = AT + b"older"
    write_database(state.store("kv"), {DEFAULT: [], TIMESTAMPED: list(entries.items())})
    del topic.records[50:53]
    for number in range(50, 53):
        del entries[b"k%03d" % number]
    assert verify({KV: topic}).tally.counts[Word.UNDECIDABLE] == 4
    topic.records[50:50] = [Record(51, AT_MS, b"k051", b"v51", ())]
    counts = verify({KV: topic}).tally.counts
    assert (counts[Word.UNDECIDABLE], counts[Word.AHEAD]) == (0, 3)


@pytest.mark.parametrize(("offset", "lacking"), [(99, None), (49, b"k090")])
def test_an_unknown_value_is_extra_where_it_cannot_be_unsent(
    state: StateDir, verify: Verify, offset: int, lacking: bytes | None
) -> None:
    """The store was closed at the changelog's end, or does not have all of it."""
    topic, entries = keyed(100)
    entries[b"odd"] = AT + b"v"
    entries.pop(lacking or b"", None)
    write_database(state.store("kv"), {DEFAULT: [], TIMESTAMPED: list(entries.items())})
    state.checkpoint(kv=offset)
    assert verify({KV: topic}).word is Word.EXTRA


# --------------------------------------------------------------------------------------- cannot be judged


def test_damage_inside_a_file_is_no_difference(state: StateDir, verify: Verify) -> None:
    """RocksDB refuses the block: nothing is said of keys."""
    topic, entries = keyed(2000)
    write_database(state.store("kv"), {DEFAULT: [], TIMESTAMPED: list(entries.items())})
    state.checkpoint(kv=1999)
    (file,) = (x for x in state.store("kv").glob("*.sst"))
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 1
    file.write_bytes(content)
    result = verify({KV: topic})
    assert result.word is Word.UNDECIDABLE
    assert "RocksDB cannot read it: Corruption" in result.reason
    assert not result.tally.counts


@pytest.mark.parametrize(
    ("topic", "offset", "reason"),
    [
        (Topic(), 9, "is behind the end of the changelog, 0"),
        (Topic(start=50), 9, "is before the start of the changelog, 50"),
    ],
)
def test_another_changelog_is_not_compared(
    state: StateDir, verify: Verify, topic: Topic, offset: int, reason: str
) -> None:
    """Recreated, or cut beyond the store's offset."""
    _, entries = keyed(10)
    if topic.start:
        topic.records.append(keyed(1)[0].records[0].__class__(60, AT_MS, b"k", b"v", ()))
    write_database(state.store("kv"), {DEFAULT: [], TIMESTAMPED: list(entries.items())})
    state.checkpoint(kv=offset)
    result = verify({KV: topic})
    assert result.word is Word.UNDECIDABLE
    assert reason in result.reason


def test_an_unknown_family_is_not_guessed(state: StateDir, verify: Verify) -> None:
    """A later release may keep values in a form of its own."""
    topic, entries = keyed(10)
    write_database(state.store("kv"), {DEFAULT: [], "somethingNew": list(entries.items())})
    result = verify({KV: topic})
    assert result.word is Word.UNDECIDABLE
    assert "somethingNew" in result.reason


def test_a_missing_topic_is_said(state: StateDir, verify: Verify) -> None:
    """One line, with the name."""
    write_database(state.store("kv"), {DEFAULT: [], TIMESTAMPED: []})
    result = verify({})
    assert result.word is Word.UNDECIDABLE
    assert result.reason == f"{KV}: no such topic"


def test_an_extra_key_below_the_start_of_the_changelog_is_undecidable(
    state: StateDir, verify: Verify
) -> None:
    """Retention took its record: nothing is known."""
    topic, entries = keyed(10)
    topic.records, topic.start = topic.records[5:], 5
    write_database(state.store("kv"), {DEFAULT: [], TIMESTAMPED: list(entries.items())})
    state.checkpoint(kv=9)
    result = verify({KV: topic})
    assert result.tally.counts == {Word.EQUAL: 5, Word.UNDECIDABLE: 5}
