"""What the memory of SST files keeps, and what goes first."""

from __future__ import annotations

from agent.observe.rocksdb.cache import FileContent, SstCache
from agent.observe.rocksdb.offsets import OffsetsRecord


def key(number: int) -> tuple[str, int, int, int]:
    return (f"s/{number:06d}.sst", number, 100, 0)


def content(size: int) -> FileContent:
    return FileContent(records=(OffsetsRecord(b"position", bytes(size), 1, 1),))


def test_least_used_goes_first():
    """Beyond the number of files, the one that was not used for longest is forgotten."""
    cache = SstCache(limit=2)
    cache.put(key(1), FileContent())
    cache.put(key(2), FileContent())
    assert cache.get(key(1)) is not None
    cache.put(key(3), FileContent())
    assert [cache.get(key(n)) is not None for n in (1, 2, 3)] == [True, False, True]


def test_records_are_weighed():
    """Large records make room by the same rule; one that is larger than all room is not kept."""
    cache = SstCache(limit_bytes=10_000)
    for number in range(5):
        cache.put(key(number), content(4_000))
    assert [cache.get(key(n)) is not None for n in range(5)] == [False, False, False, True, True]
    cache.put(key(9), content(20_000))
    assert cache.get(key(9)) is None


def test_replaced_content_is_weighed_once():
    """Putting a file again does not count it twice."""
    cache = SstCache(limit_bytes=10_000)
    for _ in range(10):
        cache.put(key(1), content(4_000))
    cache.put(key(2), content(4_000))
    assert len(cache) == 2
