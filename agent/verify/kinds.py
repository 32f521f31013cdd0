"""How a record of a changelog becomes an entry of a store, by kind of store. Pure.

Source:
    WindowKeySchema, SessionKeySchema, PrefixedWindowKeySchemas, PrefixedSessionKeySchemas, ValueAndTimestampSerializer,
    HeadersSerializer (4.3), AbstractSegments (2.6.0 to 4.3.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from hashlib import blake2b
from typing import NamedTuple

from agent.contract.buckets import StoreKind
from agent.contract.changelog import tail_bytes, window_ms
from agent.errors import LayoutError

Headers = Sequence[tuple[str, bytes | None]]

DEFAULT = "default"
TIMESTAMPED = "keyValueWithTimestamp"
WITH_HEADERS = "keyValueWithTimestampAndHeaders"
SESSION_WITH_HEADERS = "sessionKeyValueWithHeaders"
WINDOW_WITH_HEADERS = "windowKeyValueWithHeaders"
HEADER_FAMILIES = frozenset({WITH_HEADERS, SESSION_WITH_HEADERS, WINDOW_WITH_HEADERS})
DATA_FAMILIES = HEADER_FAMILIES | {DEFAULT, TIMESTAMPED}
"""Column families with entries of records; one that is not here has a form that is not known."""

SHORT_BYTES = 16
"""Values shorter than this are kept as they are, longer ones as a fingerprint of so many bytes."""

_LONG = 8
_LARGEST_MS = 1 << 46  # the year 4199


class Kind(StrEnum):
    """Kinds of stores, as far as their entries differ."""

    KEY_VALUE = "key-value"
    VERSIONED = "versioned"
    WINDOW = "window"
    SESSION = "session"
    TIME_FIRST_WINDOW = "time-first-window"
    TIME_FIRST_SESSION = "time-first-session"

    @property
    def is_segmented(self) -> bool:
        """Whether entries are spread over segments by their time."""
        return self not in (Kind.KEY_VALUE, Kind.VERSIONED)


STORE_KINDS = {
    Kind.KEY_VALUE: StoreKind.KEY_VALUE,
    Kind.VERSIONED: StoreKind.VERSIONED,
    Kind.WINDOW: StoreKind.WINDOW,
    Kind.TIME_FIRST_WINDOW: StoreKind.WINDOW,
    Kind.SESSION: StoreKind.SESSION,
    Kind.TIME_FIRST_SESSION: StoreKind.SESSION,
}
"""What the records of a store look like: those of a kind and of its time-first form do not differ."""

_TIME_FIRST = {Kind.TIME_FIRST_WINDOW: Kind.WINDOW, Kind.TIME_FIRST_SESSION: Kind.SESSION}
_BASE, _INDEX = b"\0", b"\1"


class Content(NamedTuple):
    """What an entry says, as far as its form keeps it."""

    at_ms: int | None  # time of the record, milliseconds since the epoch; None = this form does not keep it
    headers: bytes | None  # headers as bytes; None = this form does not keep them
    value: bytes  # the value, or its fingerprint (`shorten`)

    def is_of(self, record: Content) -> bool:
        """Return whether a record, which has everything, makes this entry."""
        return (
            self.value == record.value
            and self.at_ms in (None, record.at_ms)
            and (self.headers is None or self.headers == record.headers)
        )


def shorten(value: bytes) -> bytes:
    """Return a short value as it is, a long one as a fingerprint; they differ in length."""
    return value if len(value) < SHORT_BYTES else blake2b(value, digest_size=SHORT_BYTES).digest()


def big_endian(number: int) -> bytes:
    """Write a Java long."""
    return number.to_bytes(_LONG, "big", signed=True)


def read_long(data: bytes, at: int = 0) -> int:
    """Read a Java long. Raises `LayoutError`: the data end before it does."""
    piece = data[at : at + _LONG]
    if len(piece) != _LONG:
        raise LayoutError(f"{len(data)} bytes, a number of 8 is expected at {at}")
    return int.from_bytes(piece, "big", signed=True)


# --------------------------------------------------------------------------------------------------- keys


def time_of(kind: Kind, key: bytes) -> int:
    """Return the time that decides the segment of a record: a window's start, a session's end, in ms.

    Raises `LayoutError`: the key is too short.
    """
    found = window_ms(STORE_KINDS[kind], key)
    if found is None:
        after = tail_bytes(STORE_KINDS[kind])
        raise LayoutError(f"key of {len(key)} bytes, a {kind} store has {after} behind the key of a record")
    return found


def store_key(kind: Kind, key: bytes) -> bytes:
    """Return the key under which a store of a kind keeps a record; an index that leads there is not its entry."""
    plain = _TIME_FIRST.get(kind)
    if plain is None:
        return key
    if plain is Kind.WINDOW:
        return _BASE + key[-12:-4] + key[:-12] + key[-4:]
    return _BASE + key[-16:] + key[:-16]


def record_key(kind: Kind, key: bytes) -> bytes:
    """Return the record's key of a store's key; the reverse of `store_key`, and of an index's key.

    Raises `LayoutError`: not a key of this kind.
    """
    plain = _TIME_FIRST.get(kind)
    if plain is None:
        return key
    if key[:1] == _INDEX:
        return key[1:]
    if key[:1] != _BASE:
        raise LayoutError(f"key of a {kind} store begins with {key[:1].hex() or 'nothing'}")
    if plain is Kind.WINDOW:
        return key[9:-4] + key[1:9] + key[-4:]
    return key[17:] + key[1:17]


def is_index(kind: Kind, key: bytes) -> bool:
    """Return whether an entry only leads to another one."""
    return kind in _TIME_FIRST and key[:1] == _INDEX


# ------------------------------------------------------------------------------------------------- values


def content_of(kind: Kind, family: str, value: bytes) -> Content:
    """Read an entry's value; not of a versioned store, whose entries hold several records.

    Raises `LayoutError`: not of the form that the family has.
    """
    at_ms, headers, rest = _parts(kind, family, value)
    return Content(at_ms, headers, shorten(rest))


def record_value(kind: Kind, family: str, value: bytes) -> bytes:
    """Return the record's value of an entry's, without time and headers; not of a versioned store.

    Raises `LayoutError`: not of the form that the family has.
    """
    return _parts(kind, family, value)[2]


def _parts(kind: Kind, family: str, value: bytes) -> tuple[int | None, bytes | None, bytes]:
    """Split an entry's value: time and headers, as far as its form keeps them, and the record's value."""
    headers = None
    if family in HEADER_FAMILIES:
        headers, value = _split_headers(value)
    elif family not in (DEFAULT, TIMESTAMPED):
        raise LayoutError(f"column family {family}")
    if family in (TIMESTAMPED, WITH_HEADERS, WINDOW_WITH_HEADERS) or (
        family == DEFAULT and kind is Kind.TIME_FIRST_WINDOW
    ):
        return read_long(value), headers, value[_LONG:]
    return None, headers, value


def record_content(at_ms: int, headers: Headers, value: bytes) -> Content:
    """Return what a record says, all of it."""
    return Content(at_ms, shorten(headers_bytes(headers)), shorten(value))


def headers_bytes(headers: Headers) -> bytes:
    """Write headers as a store of 4.3 keeps them, without the length in front; no headers: nothing."""
    if not headers:
        return b""
    found = [varint(len(headers))]
    for name, value in headers:
        key = name.encode("utf-8", "surrogateescape")
        found += [varint(len(key)), key]
        found += [varint(-1)] if value is None else [varint(len(value)), value]
    return b"".join(found)


def _split_headers(value: bytes) -> tuple[bytes, bytes]:
    length, at = _read_varint(value)
    if length < 0 or at + length > len(value):
        raise LayoutError(f"headers of {length} bytes in an entry of {len(value)}")
    return shorten(value[at : at + length]), value[at + length :]


def varint(number: int) -> bytes:
    """Write a number as Kafka's ByteUtils.writeVarint does: zig-zag, seven bits a byte."""
    rest = (number << 1) ^ (number >> 31)
    rest &= 0xFFFFFFFF
    found = bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def _read_varint(data: bytes) -> tuple[int, int]:
    found = shift = 0
    for at, byte in enumerate(data[:5]):
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1), at + 1
        shift += 7
    raise LayoutError("a number that does not end")


# -------------------------------------------------------------------------------------------- recognising


def could_be(kind: Kind, key: bytes) -> bool:
    """Return whether a record's key can be one of a window or session store.

    Nothing says it for sure; a key of the other kind shows a time or a number that none has.
    """
    try:
        if kind is Kind.WINDOW:
            return 0 <= time_of(kind, key) < _LARGEST_MS and key[-4] < 0x80
        end_ms = time_of(Kind.SESSION, key)
        return 0 <= read_long(key, len(key) - _LONG) <= end_ms < _LARGEST_MS
    except LayoutError:
        return False
