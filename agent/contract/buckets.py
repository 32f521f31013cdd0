"""The file of `statewarden digest`: what a store holds, as numbers of entries and fingerprints.

The agent writes it; the rollup reads it and makes the same of a changelog. One JSON line per store. An entry counts as
the record of the changelog that made it, by key and value of that record. Its time and headers are left out, since not
every form of a store keeps them; but of a versioned store the latest version of each key counts, and its time (8 bytes,
big-endian) comes before the value.

With `hash(seed, bytes)` = XXH64, which is Spark's `xxhash64`, and seeds as Spark chains them:

    key    = hash(42, record key)
    first  = hash(key, record value)                      xxhash64(key, value)
    second = hash(hash(hash(42, 1), record key), value)   xxhash64(1L, key, value)

An entry goes into bucket `key & (buckets - 1)`; a bucket holds the number of its entries and the XOR of each of the
three, as signed 64-bit numbers: the order of entries does not matter.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from agent.contract.field import Field, FieldType

FORMAT = 1
"""Files of another number are not read."""

SEED, SECOND = 42, 1
"""Spark's seed, and the number that is hashed before the key for the second fingerprint."""

BUCKETS = 4096
"""Buckets of a store, or of each segment; a power of two."""

MAX_BUCKETS = 1 << 20


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
    """One RocksDB: a store, or one segment of it; fields as `DATABASE_FIELDS` has them, no bucket is empty."""

    segment_ms: int | None
    offset: int | None
    is_exact: bool
    written_us: int
    entries: int
    buckets: tuple[Bucket, ...]
    identity: str | None = None


@dataclass(frozen=True, slots=True)
class StoreDigest:
    """One store of one task on one pod; fields as `FIELDS` has them.

    Its own `offset` holds for segments that are not there: what one has behind it was processed for all.
    """

    cluster: str | None
    namespace: str
    pod: str
    application_id: str
    task_id: str
    store: str
    kind: StoreKind
    state: StoreState
    topic: str
    partition: int
    offset: int | None
    made_us: int
    agent_version: str
    buckets: int
    databases: tuple[Database, ...]


_S, _L, _B = FieldType.STRING, FieldType.LONG, FieldType.BOOLEAN

BUCKET_FIELDS = (
    Field("bucket", _L, "Number of the bucket.", required=True),
    Field("entries", _L, "Number of entries.", required=True),
    Field("keys", _L, "XOR of the keys' hashes.", required=True),
    Field("first", _L, "XOR of the first hashes of key and value.", required=True),
    Field("second", _L, "XOR of the second hashes of key and value.", required=True),
)

DATABASE_FIELDS = (
    Field("segment_ms", _L, "Start of the segment; null = not segmented.", unit="milliseconds"),
    Field("identity", _S, "RocksDB's IDENTITY: its incarnation; null = not known."),
    Field("offset", _L, "Last record that it says it has; null = it says nothing."),
    Field("is_exact", _B, "Whether it holds no later record.", required=True),
    Field("written_us", _L, "When its newest file was written.", required=True, unit="microseconds"),
    Field("entries", _L, "Number of entries.", required=True),
    Field("buckets", FieldType.STRUCTS, "Buckets that are not empty.", required=True, items=BUCKET_FIELDS),
)

FIELDS = (
    Field("format", _L, f"{FORMAT}; files of another number are not read.", required=True),
    Field("cluster", _S, "Cluster or region; null = there is one only."),
    Field("namespace", _S, "Kubernetes namespace; empty outside Kubernetes.", required=True),
    Field("pod", _S, "Pod or host.", required=True),
    Field("application_id", _S, "Application.", required=True),
    Field("task_id", _S, "Task.", required=True),
    Field("store", _S, "Store.", required=True),
    Field("kind", _S, "Kind of store.", required=True, values=tuple(kind.value for kind in StoreKind)),
    Field("state", _S, "How it was left.", required=True, values=tuple(x.value for x in StoreState)),
    Field("topic", _S, "Changelog, or the source topic that serves as one.", required=True),
    Field("partition", _L, "Partition of the topic.", required=True),
    Field(
        "offset", _L, "The largest of its databases'; also of segments that are not there. Null = nothing."
    ),
    Field("made_us", _L, "When the digest was made.", required=True, unit="microseconds"),
    Field("agent_version", _S, "Version of the agent that made it.", required=True),
    Field("buckets", _L, "Number of buckets of each database, a power of two.", required=True),
    Field(
        "databases", FieldType.STRUCTS, "The store, or its segments.", required=True, items=DATABASE_FIELDS
    ),
)
"""Fields of one line, in its order."""


def to_line(digest: StoreDigest) -> str:
    """Write a store's digest as one JSON line, without the newline."""
    values = {"format": FORMAT} | {row.name: getattr(digest, row.name) for row in FIELDS[1:]}
    values["databases"] = [
        {row.name: getattr(one, row.name) for row in DATABASE_FIELDS}
        | {"buckets": [bucket._asdict() for bucket in one.buckets]}
        for one in digest.databases
    ]
    return json.dumps(values, ensure_ascii=True, separators=(",", ":"))
