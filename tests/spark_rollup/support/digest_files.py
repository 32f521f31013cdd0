"""Stores and changelogs of tests as what `verify` reads: digest files, and records in frames."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from agent.contract.buckets import Database, StoreDigest, StoreKind, StoreState, body_of, pack
from agent.contract.codec import Encoder
from agent.contract.events import Kind, Origin, Record
from agent.verify.buckets import Buckets
from spark_rollup.verify.digests import Copy

HOUR_MS = 3_600_000
NOW_US = 1_800_000_000 * 1_000_000


@dataclass(frozen=True)
class Logged:
    """One record of a changelog."""

    offset: int
    key: bytes
    value: bytes | None
    at_ms: int = 0


def folded(records: Iterable[Logged], until: int) -> dict[bytes, bytes]:
    """Give what a store holds that has applied all records up to an offset."""
    found: dict[bytes, bytes] = {}
    for record in records:
        if record.offset > until:
            break
        found.pop(record.key, None)
        if record.value is not None:
            found[record.key] = record.value
    return found


def frame(spark: SparkSession, logs: Mapping[str, Sequence[Logged]]) -> DataFrame:
    """Give records as the Kafka source does."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    rows = [
        (topic, 0, one.offset, one.key, one.value, epoch + timedelta(milliseconds=one.at_ms))
        for topic, records in logs.items()
        for one in records
    ]
    return spark.createDataFrame(
        rows, "topic string, partition int, offset long, key binary, value binary, timestamp timestamp"
    )


def window_key(key: bytes, start_ms: int) -> bytes:
    """Write the key of a window."""
    return key + struct.pack(">qi", start_ms, 0)


def database(
    entries: Mapping[bytes, bytes],
    offset: int | None,
    *,
    segment_ms: int | None = None,
    is_exact: bool = True,
    number: int = 16,
) -> Database:
    """Digest some entries."""
    buckets = Buckets(number)
    for key, value in entries.items():
        buckets.add(key, value)
    return Database(segment_ms, offset, is_exact, NOW_US - 1, buckets.entries, pack(buckets.rows()))


@dataclass(frozen=True, slots=True)
class Told(StoreDigest):
    """A digest, and whose it is."""

    pod: str = "pod-0"
    namespace: str = "shop"
    cluster: str = ""


BASE = Told(
    application_id="orders", task_id="0_0", store="counts", kind=StoreKind.KEY_VALUE, state=StoreState.CLOSED,
    topic="orders-counts-changelog", partition=0, offset=None, made_us=NOW_US, buckets=16, databases=(),
)  # fmt: skip

PLACE = Database(None, 99, True, NOW_US - 1, 5, identity="life-1")
COPY = Copy(
    application_id="orders", task_id="0_0", store="counts", kind=StoreKind.KEY_VALUE, state=StoreState.CLOSED,
    topic="orders-counts-changelog", partition=0, offset=99, made_us=NOW_US, buckets=4096, databases=(PLACE,),
    copy=1, namespace="shop", pod="pod-0",
)  # fmt: skip
"""A copy of a store as it was read, for tests without Spark."""


def digest(*databases: Database, **fields: object) -> Told:
    """Make a digest that differs from `BASE` in some fields."""
    return replace(BASE, databases=databases, **fields)  # type: ignore[arg-type]


def write(folder: Path, digests: Sequence[Told]) -> Path:
    """Write digests into a file."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for number, one in enumerate(digests, 1):
        encoder = Encoder(Origin(one.pod, "boot", one.pod, one.namespace, cluster=one.cluster))
        record = Record(Kind.DIGEST, 1_700_000_000_000_000, body_of(one))
        event = json.loads(encoder.encode(record, number))
        lines.append(json.dumps(event["data"], separators=(",", ":")))
    (folder / "digests.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return folder
