"""Hostile databases: never an error, never more reads, memory or work than stated (`tests/oracle/hostile.py`)."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.observe.rocksdb import replay, store
from agent.observe.rocksdb.coding import DamagedError
from agent.observe.rocksdb.manifest import parse_manifest
from agent.observe.rocksdb.store import StoreFacts
from agent.observe.rocksdb.version_edit import parse_edit
from tests.oracle import hostile
from tests.support.rocksdb_writer import added, counters, deleted, family, family_add, frame, varint
from tests.support.table_writer import TableWriter, entry
from tests.support.tree_disk import FilesDisk

SEEDS = sorted((Path(__file__).parents[3] / "data" / "rocksdb" / "fuzz").iterdir())
RANDOM = st.randoms(use_true_random=False)
EXTREMES = st.sampled_from(
    [0, 1, 5, 2**14, 2**31, 2**32, 2**48, 2**56 - 1, 2**56, 2**62, 2**63, 2**64 - 1, 2**69]
)


@pytest.fixture
def traced():
    """Follow memory."""
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.fixture(scope="session")
def originals(recorded, encodings):
    return hostile.sources([recorded.root, encodings.root])


@pytest.mark.parametrize("seed", SEEDS, ids=lambda path: path.name)
def test_seeds(seed):
    """Inputs that once led somewhere new stay within the bounds."""
    content = seed.read_bytes()
    is_table = seed.suffix == ".sst"
    hostile.look(hostile.database_of(content) if is_table else hostile.with_manifest(content))


@settings(max_examples=100)
@given(data=st.data(), random=RANDOM)
def test_damaged_tables(originals, data, random):
    """SST files with flipped bits, lying lengths, overlapping blocks or a lost end, checksums checked or not."""
    table = data.draw(st.sampled_from(originals[0]))
    assert isinstance(hostile.look(hostile.database_of(hostile.mutate(table, random))), StoreFacts)


@settings(max_examples=50)
@given(data=st.data(), random=RANDOM)
def test_damaged_manifests(originals, data, random):
    """Manifests whose records are damaged behind good checksums."""
    original = data.draw(st.sampled_from(originals[1]))
    hostile.look(hostile.with_manifest(hostile.mutate_manifest(original, random)))


@pytest.mark.heavy
@pytest.mark.timeout(900)
@settings(max_examples=2_000)
@given(data=st.data(), random=RANDOM)
def test_damaged_files_for_long(originals, data, random):
    """Far more of both."""
    table, manifest = (data.draw(st.sampled_from(x)) for x in originals)
    hostile.look(hostile.database_of(hostile.mutate(table, random)))
    hostile.look(hostile.with_manifest(hostile.mutate_manifest(manifest, random)))


PARTS = st.one_of(
    st.builds(added, EXTREMES, EXTREMES, size=EXTREMES, level=EXTREMES, low=EXTREMES),
    st.builds(deleted, EXTREMES, EXTREMES),
    st.builds(counters, EXTREMES, EXTREMES),
    st.builds(family, EXTREMES),
    st.builds(family_add, EXTREMES, st.sampled_from(["offsets", "default", ""])),
    st.builds(lambda tag, number: varint(tag) + varint(number), EXTREMES | st.integers(0, 500), EXTREMES),
    st.binary(max_size=20),
)


@given(st.lists(st.lists(PARTS, max_size=4).map(b"".join), max_size=8))
def test_senseless_manifests(records):
    """Version edits with numbers that no RocksDB writes."""
    hostile.look(hostile.with_manifest(frame(records)))


def read(files: dict[str, bytes]) -> StoreFacts:
    facts = store.read_store(FilesDisk(files), "s")
    assert isinstance(facts, StoreFacts)
    return facts


def test_unfolding_keys():
    """Few bytes that unfold to many long keys, in many files: what is kept is bounded and the rest is told."""
    table = TableWriter()
    key = b"k" * 300 + (9 << 8 | 1).to_bytes(8, "little")
    block = table.add(entry(0, key, bytes(8)) + entry(len(key), b"", b"") * 9_999)
    content = table.finish(index=[block])
    edits = [added(n, 9, size=len(content)) + family(1) + counters(n + 1) for n in range(10, 16)]
    files = hostile.with_manifest(frame([counters(2), family_add(1, "offsets"), *edits]))
    facts = read(files | {f"s/{n:06d}.sst": content for n in range(10, 16)})
    assert facts.offsets is not None
    assert sum("too many entries" in problem for problem in facts.offsets.problems) == 2


def test_overlapping_blocks():
    """An index of two levels that leads to the same bytes again and again is refused before they are read."""
    table = TableWriter()
    data = table.add(entry(0, b"k" * 8 + bytes(8), bytes(20_000)))
    lower = table.add_index([data])
    content = table.finish(index=[lower] * 50, index_type=2)
    facts = hostile.look(hostile.database_of(content))
    assert isinstance(facts, StoreFacts)
    assert any("larger than their file" in problem for problem in facts.problems)


@pytest.mark.usefixtures("traced")
def test_flood_of_deletions():
    """One edit that deletes 300,000 files is refused before they are collected."""
    record = deleted(6) * 300_000
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    with pytest.raises(DamagedError):
        parse_edit(record)
    assert tracemalloc.get_traced_memory()[1] - before < 4 << 20


@pytest.mark.usefixtures("traced")
def test_flood_in_a_group(monkeypatch):
    """An atomic group without end is not collected without end."""
    monkeypatch.setattr(replay, "_MAX_LIVE_FILES", 1_000)
    edit = b"".join(deleted(n) for n in range(500)) + varint(300) + varint(7)
    files = hostile.with_manifest(frame([counters(5), *[edit] * 20]))
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    assert read(files).manifest.torn
    assert tracemalloc.get_traced_memory()[1] - before < 600_000


@pytest.mark.timeout(100)
def test_flood_of_drops():
    """Dropping a family that is not there costs nothing, however many files are live: 60,000 times 40,000."""
    edits = [
        b"".join(added(n, n) for n in range(start, start + 10_000)) for start in range(10, 40_010, 10_000)
    ]
    drop = family(7) + varint(202)
    view = parse_manifest(frame([*edits, *[drop] * 60_000]), 5)
    assert len(view.live) == 40_000


def test_budget(monkeypatch):
    """Large files end the look at the budget; what was not read is told as too large, never as damaged."""
    monkeypatch.setattr(store, "MAX_READ_BYTES", 1 << 20)
    table = TableWriter()
    content = table.finish(extra=entry(0, b"other", bytes(200_000)))
    edits = [added(n, 9, size=len(content)) + counters(n + 1) for n in range(10, 30)]
    files = hostile.with_manifest(frame([counters(2), *edits]))
    disk = FilesDisk(files | {f"s/{n:06d}.sst": content for n in range(10, 30)})
    facts = store.read_store(disk, "s")
    assert isinstance(facts, StoreFacts)
    assert sum(len(piece) for _, _, piece in disk.reads) <= (1 << 20) + len(content)
    problems = {one.problem for one in facts.files}
    assert problems == {None, "too-large"}
    assert facts.deletions is None
