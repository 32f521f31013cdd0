"""What was read from SST files, kept: they never change once written."""

from __future__ import annotations

from dataclasses import dataclass

from agent.observe.rocksdb.offsets import OffsetsRecord
from agent.observe.rocksdb.properties import Properties

CACHED_FILES = 2048
"""Default bound of their number; an entry without records takes about 1 KB."""
CACHED_RECORD_BYTES = 16 << 20
"""Default bound of the records kept: 1,000 stores of Kafka Streams have 4 MB."""

_RECORD_OVERHEAD_BYTES = 250


@dataclass(frozen=True, slots=True)
class FileContent:
    """What one SST file says."""

    properties: Properties | None = None  # its counters; None = not read
    records: tuple[OffsetsRecord, ...] = ()  # its entries; only for the `offsets` family
    # why it could not be read, `unsupported: ...` or `corrupt: ...`; None = it could
    problem: str | None = None


FileKey = tuple[str, int, int, int]
"""Path, inode, size in bytes, modification time in microseconds: a new file under an old name differs."""


class SstCache:
    """A bounded memory of file contents; what was not used for longest goes first."""

    def __init__(self, limit: int = CACHED_FILES, limit_bytes: int = CACHED_RECORD_BYTES) -> None:
        """Keep at most `limit` files, and records of at most `limit_bytes`."""
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._bytes = 0
        self._known: dict[FileKey, FileContent] = {}

    def __len__(self) -> int:
        """Count the files it knows."""
        return len(self._known)

    def get(self, key: FileKey) -> FileContent | None:
        """Find a file."""
        content = self._known.pop(key, None)
        if content is not None:
            self._known[key] = content  # used last
        return content

    def put(self, key: FileKey, content: FileContent) -> None:
        """Remember a file."""
        self._forget(key)
        self._known[key] = content
        self._bytes += _weight(content)
        while len(self._known) > self._limit or self._bytes > self._limit_bytes:
            self._forget(next(iter(self._known)))

    def _forget(self, key: FileKey) -> None:
        content = self._known.pop(key, None)
        if content is not None:
            self._bytes -= _weight(content)


def _weight(content: FileContent) -> int:
    return sum(_RECORD_OVERHEAD_BYTES + len(one.key) + len(one.value or b"") for one in content.records)
