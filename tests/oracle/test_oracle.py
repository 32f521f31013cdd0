"""The RocksDB reader against RocksDB: same files, same counters, same offsets, and calm beside a busy writer."""

from __future__ import annotations

import pytest

from tests.lab.toolbox import MissingToolError
from tests.oracle.beside import read_beside
from tests.oracle.oracle import SHAPES, write_and_compare
from tests.oracle.toolbox import JARS, WITH_OFFSETS, Writer, make_writer

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]  # the first run fetches 350 MB of jars

BUSY_S = 60


def writer_or_skip(version: str) -> Writer:
    try:
        return make_writer(version)
    except MissingToolError as error:
        pytest.skip(f"missing: {error}")


@pytest.mark.parametrize("version", JARS)
def test_reader_agrees_with_rocksdb(version, tmp_path):
    """Files, entries, deletions, sizes, sequence numbers, offsets and status equal what two oracles say."""
    pytest.importorskip("rocksdict", reason="run: make test-services")
    row = write_and_compare(writer_or_skip(version), tmp_path)
    assert row.unequal == []
    assert row.stores == len(SHAPES)
    assert row.files >= 10
    assert row.entries > 10_000
    assert row.deletions > 500
    assert (row.offsets > 50) == (version in WITH_OFFSETS)


@pytest.mark.parametrize("version", ["5.7.3", "10.1.3"])
def test_calm_beside_a_busy_writer(version, tmp_path):
    """A store that is flushed, compacted and reopened all the time is never called torn, corrupt or missing."""
    found = read_beside(writer_or_skip(version), tmp_path, BUSY_S)
    assert found.false_alarms == {}
    assert found.outcomes["read"] > 20
    assert found.seen_changes > 10
    assert found.written["flushes"] > 20
