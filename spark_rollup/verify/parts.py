"""Compares every copy on the executors: rows of one partition of one changelog come to one place, in order.

Spark reads, hashes and sorts; what the rows mean is said by `fold` and `compare`, in its Python workers. What a worker
keeps in memory are the buckets of the copies of one partition: Spark's sort spills, and rows pass one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from pyspark import Broadcast
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from agent.contract.buckets import SECOND, StoreKind
from agent.contract.changelog import Logged
from spark_rollup.verify.compare import Cell, Expected, Place, cell_of, with_changelog, with_other
from spark_rollup.verify.digests import Digests, buckets_of
from spark_rollup.verify.fold import Fold
from spark_rollup.verify.plan import Judged
from spark_rollup.verify.replicas import Pair

_OF_RECORD = ("key", "key_2", "tail", "offset", "is_committed", "at_ms", "latest_ms", "first", "second")
"""Of every record each column goes through Java's pickler: there are few, and few are texts."""

_TAIL_BYTES = 16

_COMPARED = (
    "copy long, other long, odd long, counts map<string, long>, segments array<long>, expired array<long>"
)


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be compared."""

    judged: Mapping[int, Judged]  # copy -> how it is compared with its changelog
    pairs: Mapping[int, Sequence[Pair]]  # copy -> the pairs whose first it is


def compared(spark: SparkSession, digests: Digests, work: Work, records: DataFrame | None) -> DataFrame:
    """Compare all.

    `records`: `hashed`; None = no changelog is read.

    Output columns: those of `Compared`.
    Grain: one row per copy of `Work.judged`, and per pair.
    """
    wanted = (
        {*work.judged}
        | {pair.other.copy for several in work.pairs.values() for pair in several}
        | {*work.pairs}
    )
    copies = spark.createDataFrame([(copy,) for copy in sorted(wanted)], "copy long")
    heads = digests.stored.join(F.broadcast(copies), "copy", "left_semi")
    rows = heads.select(_part(), F.struct("copy", "databases").alias("head"))
    rows = rows if records is None else rows.unionByName(records, allowMissingColumns=True)
    for name in _OF_RECORD:
        if name not in rows.columns:
            rows = rows.withColumn(name, F.lit(None))
    # the number is given: Spark must not put together, or take apart, what it is asked to bring to one place
    number = int(str(spark.conf.get("spark.sql.shuffle.partitions")))
    rows = rows.repartition(number, "part")
    if any(one.source.kind is StoreKind.VERSIONED for one in work.judged.values()):
        rows = rows.withColumn("latest_ms", F.max("at_ms").over(W.partitionBy("part")))
    order = ("part", "key", "key_2", "offset", F.desc("is_committed"))
    rows = rows.select("part", "head", *_OF_RECORD).sortWithinPartitions(*order)
    everywhere = spark.sparkContext.broadcast(work)
    found = rows.rdd.mapPartitions(lambda part: of_rows(part, everywhere))
    return spark.createDataFrame(found, _COMPARED, verifySchema=False)


def hashed(spark: SparkSession, judged: Sequence[Judged], settled: DataFrame, later: DataFrame) -> DataFrame:
    """Prepare records: committed ones up to a copy's offset, and all later ones.

    Output columns: part, key and key_2 (two hashes), tail (the key's last bytes, of a segmented
        store), offset, is_committed, at_ms, first, second (null = a tombstone).
    """
    kinds = sorted({(*one.source.part, one.source.kind.value) for one in judged})
    wanted = F.broadcast(spark.createDataFrame(kinds, "topic string, partition int, kind string"))
    both = settled.withColumn("is_committed", F.lit(True)).unionByName(
        later.withColumn("is_committed", F.lit(False))
    )
    rows = both.where(F.col("key").isNotNull()).join(wanted, ["topic", "partition"], "inner")
    at_ms = F.unix_millis("timestamp")
    time = F.unhex(F.lpad(F.hex(at_ms), 16, "0"))
    is_versioned = F.col("kind") == StoreKind.VERSIONED.value
    value = F.when(is_versioned, F.concat(time, F.col("value"))).otherwise(F.col("value"))
    is_segmented = F.col("kind").isin([kind.value for kind in StoreKind if kind.is_segmented])
    second = F.lit(SECOND).cast("bigint")
    return rows.select(
        _part(),
        F.xxhash64("key").alias("key"), F.xxhash64(second, "key").alias("key_2"),
        F.when(is_segmented, F.substring("key", -_TAIL_BYTES, _TAIL_BYTES)).alias("tail"),
        "offset", "is_committed", at_ms.alias("at_ms"),
        F.when(value.isNotNull(), F.xxhash64(F.col("key"), value)).alias("first"),
        F.when(value.isNotNull(), F.xxhash64(second, F.col("key"), value)).alias("second"),
    )  # fmt: skip


def _part() -> Column:
    """Name a partition of a changelog, read as one kind, by one number."""
    return F.xxhash64("topic", F.col("partition").cast("long"), "kind").alias("part")


def of_rows(rows: Iterable[Any], work: Broadcast[Work]) -> Iterator[tuple[object, ...]]:
    """Compare the copies of some partitions of changelogs; of each come its copies, then its records by key."""
    for _, of_part in groupby(map(tuple, rows), key=itemgetter(0)):  # indexing a `Row` is slow
        yield from _of_part(groupby(of_part, key=itemgetter(2, 3)), work.value)


def _of_part(keys: Iterator[tuple[Any, Iterator[Any]]], work: Work) -> Iterator[tuple[object, ...]]:
    _, heads = next(keys)
    stored: dict[int, dict[Place, Cell]] = {}
    expected: dict[int, Expected] = {}
    folds = []
    for _, row, *_ in heads:
        stored[row.copy] = {
            (segment, bucket.bucket): cell_of(bucket) for segment, bucket in buckets_of(row.databases)
        }
        judged = work.judged.get(row.copy)
        if judged is not None:
            folds.append(Fold(judged))
            expected[row.copy] = folds[-1].expected
    _fold(keys, folds)
    for copy in stored:
        if copy in expected:
            yield with_changelog(work.judged[copy], stored[copy], expected[copy])
        for pair in work.pairs.get(copy, ()):
            yield with_other(pair, stored)


def _fold(keys: Iterator[tuple[Any, Iterator[Any]]], folds: Sequence[Fold]) -> None:
    latest_ms = None
    for (key, _), records in keys:
        is_first = True
        for _, _, _, _, tail, offset, is_committed, at_ms, latest_ms, first, second in records:  # noqa: B007 - the same in all
            if is_first:
                for fold in folds:
                    fold.begin(key, tail)
                is_first = False
            record = Logged(offset, None if first is None else (first, second), is_committed, at_ms)
            for fold in folds:
                fold.take(record)
        for fold in folds:
            fold.end(latest_ms)
