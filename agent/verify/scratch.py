"""What a changelog says of each key, kept on disk in the order of keys, whatever the size of the changelog.

One family has the last committed record of a key at or before its database's offset, under the key; the other one every
later record (all of them where there is no offset), under the key and the offset.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from pathlib import Path
from typing import Any, TypeVar

from agent.verify.kinds import Content
from agent.verify.rule import Logged
from agent.verify.stores import bound_memory, load, once

BUFFER_BYTES = 16 << 20
_LOW, _LATER = "default", "later"
_END = b"\0\0"
_HEAD = struct.Struct(">qqBB")
_DELETED, _VALUE = 0, 1
A = TypeVar("A")
B = TypeVar("B")
Rows = Iterator[tuple[bytes, Iterable[Logged]]]


class Scratch:
    """Records by key; written once from start to end, then read once."""

    def __init__(self, work: Path) -> None:
        """Make an empty one in a private directory."""
        library = load()
        self._library = library
        options = library.Options(raw_mode=True)
        options.create_if_missing(True)
        options.create_missing_column_families(True)
        self._place = work / "scratch"
        self._open: Any = library.Rdict(
            str(self._place), self._tuned(options), column_families={_LATER: self._tuned(options)}
        )
        self._low = self._open
        self._later: Any = self._open.get_column_family(_LATER)
        quick = library.WriteOptions()
        quick.disable_wal = True
        self._low.set_write_options(quick)
        self._later.set_write_options(quick)

    def close(self) -> None:
        """Remove it."""
        self._later.close()
        self._open.close()
        shutil.rmtree(self._place, ignore_errors=True)

    def put_low(self, key: bytes, record: Logged) -> None:
        """Keep the last record of a key up to its database's offset; a later call replaces an earlier one."""
        self._low[key] = _pack(record)

    def put_later(self, key: bytes, record: Logged) -> None:
        """Keep a record behind the offset; the committed reading of an offset goes before the other one."""
        self._later[escape(key) + struct.pack(">qB", record.offset, not record.is_committed)] = _pack(record)

    def keys(self, prefix: bytes) -> Rows:
        """Give every key with this prefix, without it, and its records in the order of offsets.

        Records are read when they are asked for, and gone with the next key.
        """
        for key, low, later in pair(self._lows(prefix), self._laters(prefix)):
            yield key, chain(low or (), later or ())

    def _lows(self, prefix: bytes) -> Rows:
        for key, value in _walk(self._low, once(self._library), prefix):
            yield key[len(prefix) :], (_unpack(value, is_committed=True),)

    def _laters(self, prefix: bytes) -> Rows:
        rows = _walk(self._later, once(self._library), escape(prefix)[: -len(_END)])
        for escaped, group in groupby(rows, key=lambda row: row[0][:-9]):
            yield unescape(escaped)[len(prefix) :], _records(group)

    def _tuned(self, options: Any) -> Any:
        options.set_write_buffer_size(BUFFER_BYTES)
        options.set_max_write_buffer_number(2)
        bound_memory(self._library, options)
        options.set_db_write_buffer_size(2 * BUFFER_BYTES)
        return options


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


def _records(rows: Iterable[tuple[bytes, bytes]]) -> Iterator[Logged]:
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


def _pack(record: Logged) -> bytes:
    content = record.content
    if content is None:
        return _HEAD.pack(record.offset, record.at_ms, _DELETED, 0)
    headers = content.headers or b""
    return _HEAD.pack(record.offset, content.at_ms or 0, _VALUE, len(headers)) + headers + content.value


def _unpack(value: bytes, *, is_committed: bool) -> Logged:
    offset, at_ms, what, length = _HEAD.unpack_from(value)
    at = _HEAD.size
    if what == _DELETED:
        return Logged(offset, None, is_committed, at_ms)
    return Logged(offset, Content(at_ms, value[at : at + length], value[at + length :]), is_committed, at_ms)


def _walk(family: Any, options: Any, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    steps = family.iter(options)
    steps.seek(prefix) if prefix else steps.seek_to_first()
    while steps.valid():
        key = steps.key()
        if not key.startswith(prefix):
            break
        yield key, steps.value()
        steps.next()
    steps.status()
