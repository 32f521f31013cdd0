"""Digests as agents wrote them: one header per copy of a store, and their buckets as a frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from agent.contract.buckets import FORMAT, Bucket, Database, StoreDigest, StoreKind, StoreState, unpack
from agent.contract.events import Kind
from spark_rollup.bronze import load as bronze_load
from spark_rollup.bronze.later import NO_VERSION
from spark_rollup.bronze.place import Place as Source
from spark_rollup.bronze.unpacked import check_local_files
from spark_rollup.columns import is_notable, scoped
from spark_rollup.config import is_bronze
from spark_rollup.errors import UnreadError, UsageError
from spark_rollup.schemas import QUARANTINE
from spark_rollup.sources.brokers import Part

COPY = ("namespace", "application_id", "task_id", "store", "pod")
"""Key of a copy of a store."""


@dataclass(frozen=True, slots=True)
class Copy(StoreDigest):
    """One copy of a store: its digest without buckets."""

    copy: int  # number of the copy in frames
    namespace: str  # namespace, with the cluster before it if there is one
    pod: str

    @property
    def part(self) -> Part:
        """Topic and partition of its changelog."""
        return self.topic, self.partition

    @property
    def log(self) -> str:
        """Its changelog, as people write it."""
        return f"{self.topic}-{self.partition}"

    @property
    def entries(self) -> int:
        """Number of entries of all databases."""
        return sum(one.entries for one in self.databases)

    @property
    def is_settled(self) -> bool:
        """Whether all of it holds exactly the records up to its offsets."""
        if not self.databases:
            return self.state is StoreState.CLOSED
        return all(one.is_exact for one in self.databases)

    @property
    def doubt(self) -> str | None:
        """Why a difference from the changelog, or from another copy, is no proof of damage; None = it is one."""
        if not self.topic.endswith(f"-{self.store}-changelog"):
            return f"{self.topic} is not the store's own changelog: the application may have written the values again"
        if self.state is StoreState.KILLED:
            return "the application was killed: what it wrote last may never have reached the changelog"
        return None

    @property
    def offsets(self) -> list[int]:
        """All offsets that it says anywhere."""
        return [one for one in (self.offset, *(x.offset for x in self.databases)) if one is not None]

    @property
    def last_offset(self) -> int | None:
        """The largest of them; None = it says none."""
        return max(self.offsets, default=None)


@dataclass(frozen=True, slots=True)
class Digests:
    """All that was read."""

    copies: Sequence[Copy]  # the newest digest of each copy
    stored: DataFrame
    """The same with their buckets: columns copy, topic, partition, kind, databases. Grain: one row per copy."""
    unread: int  # number of lines that are not digests of this format


def load(spark: SparkSession, where: Source) -> Digests:
    """Read digests: those in bronze, or what `statewarden digest` wrote: `*.jsonl`, `*.jsonl.gz` below a directory.

    Of several digests of a copy the newest counts.

    Raises `UsageError`: there is no digest; `UnreadError`: a file cannot be read to its end.
    """
    if is_bronze(where):
        events = bronze_load.load(spark, where).events.where(is_notable())
        refused = spark.createDataFrame([], QUARANTINE)
    else:
        _check(where)
        judged = bronze_load.judge(_lines(spark, str(where)))
        events, refused = scoped(bronze_load.usable(judged)), bronze_load.unusable(judged)
    told = events.where(F.col("kind") == Kind.DIGEST.value)
    lines = told.select(*COPY, F.get("digests", F.lit(0)).alias("digest")).select(*COPY, "digest.*")
    usable = F.coalesce(
        (F.col("format") == FORMAT)
        & F.col("kind").isin([kind.value for kind in StoreKind])
        & F.col("state").isin([state.value for state in StoreState]),
        F.lit(False),
    )
    by_age = W.partitionBy("copy").orderBy(F.desc("made_us"))
    read = lines.where(usable).withColumn("copy", F.xxhash64(*COPY))
    newest = read.withColumn("age", F.row_number().over(by_age)).where(F.col("age") == 1)
    heads = newest.withColumn("databases", F.transform("databases", lambda one: one.dropFields("packed")))
    copies = sorted(
        map(_copy, heads.collect()), key=lambda one: (one.part, one.store, one.namespace, one.pod)
    )
    unread = lines.where(~usable).count() + refused.count()
    if not copies:
        later = lines.where(F.col("format") > FORMAT).count()
        awaited = F.col("reason").isin(*bronze_load.AWAITED) & ~F.col("detail").startswith(NO_VERSION)
        later += refused.where(awaited).count()
        upgrade = f", {later} of them of a later version: upgrade statewarden" if later else ""
        raise UsageError(
            f"--digests {where} holds no digest that can be used ({unread} lines are something else{upgrade}): "
            f"`statewarden digest` makes them"
        )
    return Digests(copies, newest.select("copy", "topic", "partition", "kind", "databases"), unread)


def _check(where: Source) -> None:
    """Refuse files of a directory that cannot be read to their end; an object store's fail as they are read."""
    if not isinstance(where, Path):
        return
    files = bronze_load.segments(where)
    bad = {path: "it is empty" for path, size_bytes in files.items() if not size_bytes}
    bad |= {path: why for path, (_, why) in check_local_files(files).items()}
    if bad:
        said = "; ".join(f"{path}: {why}" for path, why in sorted(bad.items()))
        raise UnreadError(f"--digests: {said}: make it again with `statewarden digest`, or move it away")


def _lines(spark: SparkSession, where: str) -> DataFrame:
    """Read the lines of files, each as the event whose data it is.

    Output columns: file, line.
    """
    files = (
        spark.read.option("recursiveFileLookup", "true").option("pathGlobFilter", "*.jsonl{,.gz}").text(where)
    )
    return files.where(F.length(F.trim("value")) > 0).select(
        F.col("_metadata.file_path").alias("file"),
        F.concat(F.lit('{"id":"","data":'), "value", F.lit("}")).alias("line"),
    )


def buckets_of(databases: Iterable[Any]) -> Iterator[tuple[int, Bucket]]:
    """Give segment and bucket of all databases of a row of `Digests.stored`."""
    for one in databases:
        for bucket in unpack(one["packed"]):
            yield one["segment_ms"] or 0, bucket


def _copy(row: object) -> Copy:
    found = row.asDict(recursive=True)  # type: ignore[attr-defined]
    databases = (Database(**one) for one in found["databases"])
    found["databases"] = tuple(sorted(databases, key=lambda one: one.segment))
    found |= {"kind": StoreKind(found["kind"]), "state": StoreState(found["state"])}
    return Copy(**{field.name: found[field.name] for field in fields(Copy)})
