"""A digest as an event: the line of `buckets`, with the buckets of each database packed into one text.

An event of kind `digest` has one object in `digests`, and its own fields say whose it is:

    line of `buckets`                           event
    cluster, namespace, pod, application_id,    fields of the event, by the same names
      task_id, store, agent_version
    every other field, `databases` among them   fields of `digests[0]`, by the same names
    `buckets` of a database, a list             `packed` of the database, a text

`packed` is Base64 (the plain alphabet, with padding, in one line) of 32 bytes per bucket that is not empty, by its
number; all of them big-endian:

    bytes 0 to 3     bucket      unsigned
    bytes 4 to 7     entries     unsigned
    bytes 8 to 15    keys        signed, two's complement
    bytes 16 to 23   first       the same
    bytes 24 to 31   second      the same

That is 175 kB for 4,096 buckets. An event has room for 16,384 buckets; more databases get fewer each (`buckets_for`).
"""

from __future__ import annotations

import struct
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Iterator
from dataclasses import replace

from agent.contract import buckets
from agent.contract.buckets import FORMAT, Bucket, StoreDigest
from agent.contract.field import Field, FieldType

MAX_ROWS = 16_384
"""Buckets of all databases of one event: 700 kB. Kafka takes messages up to 1 MB by default."""

_ROW = struct.Struct(">IIqqq")

OF_EVENT = ("cluster", "namespace", "pod", "application_id", "task_id", "store", "agent_version")
"""Fields of a line that are the event's own."""

_SINCE = "1.2"

DATABASES = (
    *(replace(row, since=_SINCE) for row in buckets.DATABASE_FIELDS if row.name != "buckets"),
    Field("packed", FieldType.STRING, "Buckets that are not empty, packed.", required=True, since=_SINCE),
)

DIGESTS = tuple(
    replace(row, since=_SINCE, items=DATABASES if row.name == "databases" else ())
    for row in buckets.FIELDS
    if row.name not in OF_EVENT
)
"""Fields of the object in `digests`."""


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


def body_of(digest: StoreDigest) -> dict[str, object]:
    """Make the fields of an event of kind `digest`, without those that every event of this agent carries.

    Raises:
        OverflowError: as for `pack`.
    """
    row = {"format": FORMAT} | {x.name: getattr(digest, x.name) for x in DIGESTS if x.name != "format"}
    row["databases"] = [
        {x.name: getattr(one, x.name) for x in DATABASES if x.name != "packed"}
        | {"packed": pack(one.buckets)}
        for one in digest.databases
    ]
    own = ("application_id", "task_id", "store")
    return {name: getattr(digest, name) for name in own} | {"digests": [row]}


def unpack(packed: str) -> Iterator[Bucket]:
    """Give the buckets of a database."""
    return map(Bucket._make, _ROW.iter_unpack(a2b_base64(packed)))
