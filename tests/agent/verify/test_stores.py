"""What a reading keeps in memory of a database, whatever its size."""

from __future__ import annotations

from pathlib import Path

import pytest

rocksdict = pytest.importorskip("rocksdict", reason="the extra `verify` is not installed")

from agent.verify.stores import INDEX_CACHE_BYTES, bound_memory, once  # noqa: E402 - needs the extra

ENTRIES, VALUE = 20_000, bytes(64)
OPEN_INDEX = "rocksdb.estimate-table-readers-mem"


def test_neither_the_index_of_open_files_nor_a_block_stays_in_memory(tmp_path: Path) -> None:
    """One entry in each block: the index is about as large as the keys."""
    small = rocksdict.BlockBasedOptions()
    small.set_block_size(16)
    options = rocksdict.Options(raw_mode=True)
    options.set_block_based_table_factory(small)
    written = rocksdict.Rdict(str(tmp_path / "store"), options)
    for number in range(ENTRIES):
        written[b"%012d" % number] = VALUE
    written.flush()
    assert written.property_int_value(OPEN_INDEX) > 10 * ENTRIES
    written.close()

    options = rocksdict.Options(raw_mode=True)
    options.set_max_open_files(-1)
    bound_memory(rocksdict, options)
    read = rocksdict.Rdict(
        str(tmp_path / "store"),
        options,
        column_families={"default": options},
        access_type=rocksdict.AccessType.read_only(),
    )
    steps = read.iter(once(rocksdict))
    steps.seek_to_first()
    found = 0
    while steps.valid():
        found += 1
        steps.next()
    steps.status()
    assert found == ENTRIES
    assert read.property_int_value(OPEN_INDEX) < ENTRIES
    assert read.property_int_value("rocksdb.block-cache-usage") < INDEX_CACHE_BYTES
    del steps
    read.close()
