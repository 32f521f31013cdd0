"""What a changelog says of each key, kept on disk in the order of keys, whatever the size of the changelog.

Of each key it has the last committed record at or before its database's offset, and every later one (all of them where
there is no offset), under the key and the offset.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from agent.contract.changelog import Logged
from agent.verify.kinds import Content
from agent.verify.stores import bound_memory, load, once

BUFFER_BYTES = 16 << 20
_END = b"\0\0"
_PLACE = struct.Struct(">qB")
_FIRST = bytes(_PLACE.size)
_HEAD = struct.Struct(">qqBB")
_DELETED, _VALUE = 0, 1
A = TypeVar("A")
B = TypeVar("B")
Rows = Iterator[tuple[bytes, Iterable[Logged[Content]]]]


class Scratch:
    """Records by key; written once from start to end, then read once."""

    def __init__(self, work: Path) -> None:
        """Make an empty one in a private directory."""
        library = load()
        self._library = library
        options = library.Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_write_buffer_size(BUFFER_BYTES)
        options.set_max_write_buffer_number(2)
        bound_memory(library, options)
        self._place = work / "scratch"
        self._open: Any = library.Rdict(str(self._place), options)
        quick = library.WriteOptions()
        quick.disable_wal = True
        self._open.set_write_options(quick)

    def close(self) -> None:
        """Remove it."""
        self._open.close()
        shutil.rmtree(self._place, ignore_errors=True)

    def put(self, key: bytes, record: Logged[Content], *, is_later: bool) -> None:
        """Keep a later record, or the last one of a key up to its database's offset, which replaces an earlier call's.

        The committed reading of an offset goes before the other one.
        """
        place = _PLACE.pack(record.offset, not record.is_committed) if is_later else _FIRST
        self._open[escape(key) + place] = _pack(record)

    def keys(self, prefix: bytes) -> Rows:
        """Give every key with this prefix, without it, and its records in the order of offsets.

        Records are read when they are asked for, and gone with the next key.
        """
        for escaped, group in groupby(self._walk(prefix), key=lambda row: row[0][: -_PLACE.size]):
            yield unescape(escaped)[len(prefix) :], _records(group)

    def _walk(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        beginning = escape(prefix)[: -len(_END)]
        steps = self._open.iter(once(self._library))
        steps.seek(beginning) if beginning else steps.seek_to_first()
        while steps.valid():
            key = steps.key()
            if not key.startswith(beginning):
                break
            yield key, steps.value()
            steps.next()
        steps.status()


def pair(
    left: Iterator[tuple[bytes, A]], right: Iterator[tuple[bytes, B]]
) -> Iterator[tuple[bytes, A | None, B | None]]:
    """Join two sequences in the order of their keys; None where one has nothing."""
    one, other = next(left, None), next(right, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one[0] < other[0]):
            assert one is not None
            yield one[0], one[1], None
            one = next(left, None)
        elif one is None or other[0] < one[0]:
            yield other[0], None, other[1]
            other = next(right, None)
        else:
            yield one[0], one[1], other[1]
            one, other = next(left, None), next(right, None)


def _records(rows: Iterable[tuple[bytes, bytes]]) -> Iterator[Logged[Content]]:
    last = -1
    for key, value in rows:
        record = _unpack(value, is_committed=not key[-1])
        if record.offset != last:
            yield record
        last = record.offset


def escape(key: bytes) -> bytes:
    """Write a key so that something can follow it and the order stays: a zero byte gets a companion, two end it."""
    return key.replace(b"\0", b"\0\xff") + _END


def unescape(escaped: bytes) -> bytes:
    """Reverse `escape`."""
    return escaped[: -len(_END)].replace(b"\0\xff", b"\0")


def _pack(record: Logged[Content]) -> bytes:
    content = record.content
    if content is None:
        return _HEAD.pack(record.offset, record.at_ms, _DELETED, 0)
    headers = content.headers or b""
    return _HEAD.pack(record.offset, content.at_ms or 0, _VALUE, len(headers)) + headers + content.value


def _unpack(value: bytes, *, is_committed: bool) -> Logged[Content]:
    offset, at_ms, what, length = _HEAD.unpack_from(value)
    at = _HEAD.size
    if what == _DELETED:
        return Logged(offset, None, is_committed, at_ms)
    return Logged(offset, Content(at_ms, value[at : at + length], value[at + length :]), is_committed, at_ms)
