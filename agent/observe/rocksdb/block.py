"""The blocks of an SST file: prefix-compressed entries, and the two encodings of index values."""

from __future__ import annotations

from typing import NamedTuple

from agent.observe.rocksdb.coding import Cursor, DamagedError, UnsupportedError

TRAILER_BYTES = 5  # compression type 1, checksum 4
_HASH_INDEX_BIT = 1 << 31  # data_block_footer.cc: a hash index is behind the restart points
_UNIFORM_BIT = 1 << 29  # only a hint for searching
_MAX_RESTARTS = (1 << 28) - 1
_MAX_KEY_BYTES = 320
"""A key of the `offsets` family is a topic name of at most 249 characters and a partition; names of properties
are shorter. Without a bound, prefix compression would let a small hostile block unfold without end."""


class Handle(NamedTuple):
    """Place of a block in its file; `size` without the trailer."""

    offset: int
    size: int


def read_handle(cursor: Cursor) -> Handle:
    """Decode a block handle."""
    return Handle(cursor.varint(), cursor.varint())


def entries(content: bytes, limit: int) -> list[tuple[bytes, bytes]]:
    """List the entries of a data, metaindex or properties block without its trailer, at most `limit`.

    Raises DamagedError where it is no such block, UnsupportedError for an encoding of a later RocksDB.
    """
    end = _entries_end(content)
    at, key = 0, b""
    found: list[tuple[bytes, bytes]] = []
    while at < end:
        if len(found) == limit:
            raise DamagedError(f"more than {limit} entries in a block")
        if at + 3 <= end and (head := content[at : at + 3]).isascii():
            # short numbers, nearly always: every file of a first reading has some forty entries
            shared, unshared, value_size = head
            at += 3
        else:
            cursor = Cursor(content, at, end)
            shared, unshared, value_size = cursor.varint(), cursor.varint(), cursor.varint()
            at = cursor.position
        if shared > len(key):
            raise DamagedError("entry shares more than its predecessor has")
        if shared + unshared > _MAX_KEY_BYTES:
            raise DamagedError(f"key of {shared + unshared} bytes")
        value_at, following = at + unshared, at + unshared + value_size
        if following > end:
            raise DamagedError(f"{following - at} bytes announced, {end - at} are left")
        key = key[:shared] + content[at:value_at]
        found.append((key, content[value_at:following]))
        at = following
    return found


def index_handles(content: bytes, *, delta_encoded: bool, first_keys: bool, limit: int) -> list[Handle]:
    """List the blocks that an index block points to, at most `limit`; its keys are not kept. Raises as `entries`.

    Delta-encoded values after a shared key hold only the difference in size (format version 4+); with `first_keys` each
    value also holds the first key of its block.
    """
    cursor = Cursor(content, 0, _entries_end(content))
    handles: list[Handle] = []
    while not cursor.is_at_end:
        if len(handles) >= limit:
            raise DamagedError(f"more than {limit} blocks in an index")
        shared, unshared = cursor.varint(), cursor.varint()
        if not delta_encoded:
            cursor.varint()  # size of the value, which describes itself
        cursor.skip(unshared)
        if delta_encoded and shared:
            if not handles:
                raise DamagedError("first index value refers to one before it")
            last = handles[-1]
            handle = Handle(last.offset + last.size + TRAILER_BYTES, last.size + cursor.signed_varint())
        else:
            handle = read_handle(cursor)
        if handle.size < 0:
            raise DamagedError("block of negative size in an index")
        if first_keys:
            cursor.skip_string()
        handles.append(handle)
    return handles


def _entries_end(content: bytes) -> int:
    if len(content) < 4:
        raise DamagedError("block is too short")
    packed = int.from_bytes(content[-4:], "little")
    end = len(content) - 4
    restarts = packed & ~(_HASH_INDEX_BIT | _UNIFORM_BIT)
    if restarts > _MAX_RESTARTS:
        raise UnsupportedError("block footer with features of a later RocksDB")
    if packed & _HASH_INDEX_BIT:
        # one byte per bucket, then the number of buckets (data_block_hash_index.h)
        if end < 2:
            raise DamagedError("block is too short for its hash index")
        end -= 2 + int.from_bytes(content[end - 2 : end], "little")
    end -= 4 * restarts
    if end < 0:
        raise DamagedError("block is too short for its restart points")
    return end
