"""A digest: what a store holds, as numbers of entries and fingerprints, in the fields of an event of kind `digest`.

An agent ships the event at a close, `statewarden digest` writes its fields into a file, one line per store; the
rollup makes the same of a changelog. An entry counts as the record of the changelog that made it, by key and value of
that record. Its time and headers are left out, since not every form of a store keeps them; but of a versioned store
the latest version of each key counts, and its time (8 bytes, big-endian) comes before the value.

With `hash(seed, bytes)` = XXH64, which is Spark's `xxhash64`, and seeds as Spark chains them:

    key    = hash(42, record key)
    first  = hash(key, record value)                      xxhash64(key, value)
    second = hash(hash(hash(42, 1), record key), value)   xxhash64(1L, key, value)

An entry goes into bucket `key & (buckets - 1)`; a bucket holds the number of its entries and the XOR of each of the
three, as signed 64-bit numbers: the order of entries does not matter.

`packed` is Base64 (the plain alphabet, with padding, in one line) of 32 bytes per bucket that is not empty, by its
number; all of them big-endian:

    bytes 0 to 3     bucket      unsigned
    bytes 4 to 7     entries     unsigned
    bytes 8 to 15    keys        signed, two's complement
    bytes 16 to 23   first       the same
    bytes 24 to 31   second      the same

That is 175 kB for 4,096 buckets. An agent ships up to 16,384 buckets in an event; more databases get fewer each.
"""

from __future__ import annotations

import struct
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from agent.contract.field import Field, FieldType

FORMAT = 1
"""Digests of another number are not read."""

SEED, SECOND = 42, 1
"""Spark's seed, and the number that is hashed before the key for the second fingerprint."""

BUCKETS = 4096
"""Buckets of a store, or of each segment; a power of two."""

MAX_BUCKETS = 1 << 20

MAX_ROWS = 16_384
"""Buckets of all databases of one shipped event: 700 kB. Kafka takes messages up to 1 MB by default."""

_ROW = struct.Struct(">IIqqq")


class StoreKind(StrEnum):
    """Kinds of stores, as far as their records' keys differ."""

    KEY_VALUE = "key-value"
    VERSIONED = "versioned"
    WINDOW = "window"
    SESSION = "session"

    @property
    def is_segmented(self) -> bool:
        """Whether entries are spread over segments by their time."""
        return self in (StoreKind.WINDOW, StoreKind.SESSION)


class StoreState(StrEnum):
    """How a store was left, as far as its files show."""

    CLOSED = "closed"
    OPEN = "open"
    KILLED = "killed"


class Bucket(NamedTuple):
    """One bucket that is not empty."""

    bucket: int
    entries: int
    keys: int
    first: int
    second: int


@dataclass(frozen=True, slots=True)
class Database:
    """One RocksDB: a store, or one segment of it; fields as `DATABASES` has them."""

    segment_ms: int | None
    offset: int | None
    is_exact: bool
    written_us: int
    entries: int
    packed: str = ""
    identity: str | None = None

    @property
    def segment(self) -> int:
        """Where the segment begins, milliseconds; 0 for a store that has none."""
        return self.segment_ms or 0


@dataclass(frozen=True, slots=True)
class StoreDigest:
    """One store of one task; fields as `DIGESTS` has them.

    Its own `offset` holds for segments that are not there: what one has behind it was processed for all.
    """

    application_id: str
    task_id: str
    store: str
    kind: StoreKind
    state: StoreState
    topic: str
    partition: int
    offset: int | None
    made_us: int
    buckets: int
    databases: tuple[Database, ...]


_field = partial(Field, since="1.2")
_S, _L, _B = FieldType.STRING, FieldType.LONG, FieldType.BOOLEAN

DATABASES = (
    _field("segment_ms", _L, "Start of the segment; null = not segmented.", unit="milliseconds"),
    _field("identity", _S, "RocksDB's IDENTITY: its incarnation; null = not known."),
    _field("offset", _L, "Last record that it says it has; null = it says nothing."),
    _field("is_exact", _B, "Whether it holds no later record.", required=True),
    _field("written_us", _L, "When its newest file was written.", required=True, unit="microseconds"),
    _field("entries", _L, "Number of entries.", required=True),
    _field("packed", _S, "Buckets that are not empty, packed.", required=True),
)

DIGESTS = (
    _field("format", _L, f"{FORMAT}; files of another number are not read.", required=True),
    _field("kind", _S, "Kind of store.", required=True, values=tuple(kind.value for kind in StoreKind)),
    _field("state", _S, "How it was left.", required=True, values=tuple(x.value for x in StoreState)),
    _field("topic", _S, "Changelog, or the source topic that serves as one.", required=True),
    _field("partition", _L, "Partition of the topic.", required=True),
    _field(
        "offset", _L, "The largest of its databases'; also of segments that are not there. Null = nothing."
    ),
    _field("made_us", _L, "When the digest was made.", required=True, unit="microseconds"),
    _field("buckets", _L, "Number of buckets of each database, a power of two.", required=True),
    _field("databases", FieldType.STRUCTS, "The store, or its segments.", required=True, items=DATABASES),
)
"""Fields of the one object in `digests`; whose it is say the event's own fields."""


def buckets_for(wanted: int, databases: int) -> int:
    """Choose the number of buckets of each database, so that an event has room for all of them.

    It depends on nothing else: copies with the same segments can be compared.

    Gives the largest power of two that is at most `wanted` and fits; at least 1.
    """
    room = max(1, MAX_ROWS // max(1, databases))
    return min(wanted, 1 << (room.bit_length() - 1))


def pack(rows: Iterable[Bucket]) -> str:
    """Pack the buckets of a database. Raises `OverflowError`: a bucket has more than 2^32 - 1 entries."""
    try:
        return b2a_base64(b"".join(_ROW.pack(*row) for row in rows), newline=False).decode("ascii")
    except struct.error as error:
        raise OverflowError(f"a bucket has too many entries to be packed: {error}") from error


def unpack(packed: str) -> Iterator[Bucket]:
    """Give the buckets of a database."""
    return map(Bucket._make, _ROW.iter_unpack(a2b_base64(packed)))


def body_of(digest: StoreDigest) -> dict[str, object]:
    """Make the fields of an event of kind `digest`, without those that every event of its agent carries."""
    row = {"format": FORMAT} | {x.name: getattr(digest, x.name) for x in DIGESTS[1:]}
    row["databases"] = [{x.name: getattr(one, x.name) for x in DATABASES} for one in digest.databases]
    return {name: getattr(digest, name) for name in ("application_id", "task_id", "store")} | {
        "digests": [row]
    }
