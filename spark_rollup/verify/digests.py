"""Digests as agents wrote them: one header per copy of a store, and their buckets as a frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from agent.contract.buckets import FIELDS, FORMAT, Bucket, StoreKind, StoreState
from agent.contract.events import Kind
from agent.contract.packed import OF_EVENT, unpack
from spark_rollup.bronze import load as bronze_load
from spark_rollup.bronze.place import Place as Source
from spark_rollup.columns import is_notable, scoped
from spark_rollup.config import is_bronze
from spark_rollup.errors import UsageError
from spark_rollup.schemas import struct_of
from spark_rollup.sources.brokers import Part

COPY = ("namespace", "application_id", "task_id", "store", "pod")
"""Key of a copy of a store."""

UNSEGMENTED = 0
"""Column `segment` of stores that have none."""


@dataclass(frozen=True, slots=True)
class Place:
    """One database of a copy: `agent.contract.buckets.Database` without its buckets."""

    segment: int
    offset: int | None
    is_exact: bool
    written_us: int
    entries: int
    identity: str | None = None


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy of a store: `agent.contract.buckets.StoreDigest` without buckets.

    Args of the dataclass:
        copy: Number of the copy in frames.
        namespace: Namespace, with the cluster before it if there is one.
    """

    copy: int
    namespace: str
    pod: str
    application_id: str
    task_id: str
    store: str
    kind: StoreKind
    state: StoreState
    part: Part
    offset: int | None
    made_us: int
    buckets: int
    places: tuple[Place, ...]

    @property
    def is_settled(self) -> bool:
        """Whether all of it holds exactly the records up to its offsets."""
        if not self.places:
            return self.state is StoreState.CLOSED
        return all(place.is_exact for place in self.places)

    @property
    def doubt(self) -> str | None:
        """Why a difference from the changelog, or from another copy, is no proof of damage; None = it is one."""
        if not self.part[0].endswith(f"-{self.store}-changelog"):
            return f"{self.part[0]} is not the store's own changelog: the application may have written the values again"
        if self.state is StoreState.KILLED:
            return "the application was killed: what it wrote last may never have reached the changelog"
        return None

    @property
    def last_offset(self) -> int | None:
        """The largest offset that it says anywhere."""
        return max(
            (one for one in (self.offset, *(place.offset for place in self.places)) if one is not None),
            default=None,
        )


@dataclass(frozen=True, slots=True)
class Digests:
    """All that was read.

    Args of the dataclass:
        copies: The newest digest of each copy.
        stored: The same with their buckets: columns copy, topic, partition, kind, databases. Grain: one row per copy.
        unread: Number of lines that are not digests of this format.
    """

    copies: Sequence[Copy]
    stored: DataFrame
    unread: int


def load(spark: SparkSession, where: Source) -> Digests:
    """Read digests: those that agents shipped into bronze, or every `*.jsonl` and `*.jsonl.gz` below a directory.

    Of several digests of a copy the newest counts.

    Raises:
        UsageError: there is no digest.
    """
    is_shipped = is_bronze(where)
    lines = _shipped(spark, where) if is_shipped else _written(spark, str(where))
    usable = F.coalesce(
        (F.col("format") == FORMAT)
        & F.col("kind").isin([kind.value for kind in StoreKind])
        & F.col("state").isin([state.value for state in StoreState]),
        F.lit(False),
    )
    read = lines.where(usable).withColumn("copy", F.xxhash64(*COPY))
    by_age = W.partitionBy("copy").orderBy(F.desc("made_us"))
    newest = read.withColumn("age", F.row_number().over(by_age)).where(F.col("age") == 1)
    content = "packed" if is_shipped else "buckets"
    heads = newest.withColumn("databases", F.transform("databases", lambda one: one.dropFields(content)))
    copies = sorted(
        map(_copy, heads.collect()), key=lambda one: (one.part, one.store, one.namespace, one.pod)
    )
    unread = lines.where(~usable).count()
    if not copies:
        later = lines.where(F.col("format") > FORMAT).count()
        upgrade = f", {later} of them of a later version: upgrade statewarden" if later else ""
        raise UsageError(
            f"--digests {where} holds no digest that can be used ({unread} lines are something else{upgrade}): "
            f"`statewarden digest` makes them"
        )
    return Digests(copies, newest.select("copy", "topic", "partition", "kind", "databases"), unread)


def _written(spark: SparkSession, where: str) -> DataFrame:
    """Read what `statewarden digest` wrote.

    Output columns: those of `agent.contract.buckets.FIELDS`, `namespace` with the cluster before it.
    """
    reader = spark.read.schema(struct_of(FIELDS)).option("recursiveFileLookup", "true")
    return scoped(reader.option("pathGlobFilter", "*.jsonl{,.gz}").json(where))


def _shipped(spark: SparkSession, bronze: Source) -> DataFrame:
    """Read what agents shipped; the buckets of each database are still `packed`.

    Output columns: as `_written`.
    """
    events = bronze_load.load(spark, bronze).events.where(is_notable() & (F.col("kind") == Kind.DIGEST.value))
    return events.select(*OF_EVENT, F.get("digests", F.lit(0)).alias("digest")).select(*OF_EVENT, "digest.*")


def buckets_of(databases: Iterable[Any]) -> Iterator[tuple[int, Bucket]]:
    """Give segment and bucket of all databases of a row of `Digests.stored`."""
    for one in databases:
        buckets = unpack(one["packed"]) if "packed" in one else (Bucket(*row) for row in one["buckets"])
        for bucket in buckets:
            yield one["segment_ms"] or UNSEGMENTED, bucket


def _copy(row: object) -> Copy:
    found = row.asDict(recursive=True)  # type: ignore[attr-defined]
    names = ("offset", "is_exact", "written_us", "entries", "identity")
    found["places"] = tuple(
        Place(one["segment_ms"] or UNSEGMENTED, *(one[name] for name in names))
        for one in sorted(found["databases"], key=lambda one: one["segment_ms"] or 0)
    )
    found |= {"kind": StoreKind(found["kind"]), "state": StoreState(found["state"])}
    found["part"] = (found["topic"], found["partition"])
    return Copy(**{field.name: found[field.name] for field in fields(Copy)})
