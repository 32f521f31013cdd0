"""Makes the buckets that stores must have from the records of their changelogs, with column expressions only.

Each key is reduced to what it was at the copy's offset (last committed record up to it) and to what may have come
after: later records, committed or not. Keys themselves are two 64-bit hashes from the first step on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from agent.contract.buckets import SECOND, StoreKind
from spark_rollup.verify.digests import BUCKET, UNSEGMENTED
from spark_rollup.verify.plan import Judged

_LONG = "bigint"
_KEY = ("copy", "segment", "key_hash", "key_hash_2")


def copies_frame(spark: SparkSession, judged: Sequence[Judged]) -> DataFrame:
    """Give what records are joined with. Grain: one row per copy."""
    rows = [
        (
            *one.source.part, one.source.copy, one.source.kind.value, one.interval_ms, one.retention_ms,
            one.surely_kept_us, one.source.buckets, one.source.offset, one.source.is_settled, one.may_have_gone,
            max((place.segment for place in one.source.places), default=UNSEGMENTED),
        )
        for one in judged
    ]  # fmt: skip
    return spark.createDataFrame(
        rows,
        "topic string, partition int, copy long, kind string, interval_ms long, retention_ms long, "
        "surely_kept_us long, buckets long, store_offset long, is_settled boolean, may_have_gone boolean, "
        "last_segment long",
    )


def places_frame(spark: SparkSession, judged: Sequence[Judged]) -> DataFrame:
    """Give the databases. Grain: one row per copy and segment. Columns copy, segment, own_offset, is_exact."""
    rows = [
        (one.source.copy, place.segment, place.offset, place.is_exact)
        for one in judged
        for place in one.source.places
    ]
    return spark.createDataFrame(rows, "copy long, segment long, own_offset long, is_exact boolean")


def expected(settled: DataFrame, later: DataFrame, copies: DataFrame, places: DataFrame) -> DataFrame:
    """Compute buckets as the changelogs have them.

    Args:
        settled: Committed records, of which those up to a copy's offset count.
        later: All records, of which those behind a copy's offset count.
        copies: `copies_frame`.
        places: `places_frame`.

    Output columns: `BUCKET`, entries, keys, first, second (of what is there at the offset), least, most (entries that a
        copy may have, if it went on after its offset), open (keys of which it is not known), blind (keys in a segment
        that says no offset), odd (keys of no form that the kind has), stream_ms (latest time of a window in it).
    Grain: one row per copy, segment and bucket with any key.
    """
    rows = _placed(settled, copies, places, later=False).unionByName(
        _placed(later, copies, places, later=True)
    )
    versioned = F.col("kind") == StoreKind.VERSIONED.value
    kinds = {str(row[0]) for row in copies.select("kind").distinct().collect()}
    parts = []
    if kinds - {StoreKind.VERSIONED.value}:
        parts.append(_last_by_offset(rows.where(~versioned)))
    if StoreKind.VERSIONED.value in kinds:
        parts.append(_last_by_time(rows.where(versioned)))
    return _bucketed(reduce(DataFrame.unionByName, parts))


def _placed(records: DataFrame, copies: DataFrame, places: DataFrame, *, later: bool) -> DataFrame:
    """Give each record to the copies that it concerns, hashed.

    A record of a segment that says no offset is later than all that is known.

    Output columns: copy, segment, kind, buckets, retention_ms, surely_kept_us, is_exact, is_blind (nothing says an
        offset), offset (of those up to the copy's offset; null = later), at_ms, window_ms, key_hash, key_hash_2, first,
        second (null = a tombstone).
    """
    rows = records.where(F.col("key").isNotNull()).join(F.broadcast(copies), ["topic", "partition"], "inner")
    rows = rows.withColumns({"at_ms": F.unix_millis("timestamp"), "window_ms": _window_ms()}).withColumn(
        "segment",
        F.when(
            F.col("interval_ms").isNotNull(), F.col("window_ms") - F.col("window_ms") % F.col("interval_ms")
        ).otherwise(F.lit(UNSEGMENTED).cast(_LONG)),
    )
    rows = rows.join(F.broadcast(places), ["copy", "segment"], "left")
    limit = F.coalesce("own_offset", F.when(F.col("is_exact").isNull(), F.col("store_offset")))
    is_settled = F.coalesce(F.col("offset") <= limit, F.lit(False))
    time = F.unhex(F.lpad(F.hex("at_ms"), 16, "0"))
    is_versioned = F.col("kind") == StoreKind.VERSIONED.value
    value = F.when(is_versioned, F.concat(time, F.col("value"))).otherwise(F.col("value"))
    second = F.lit(SECOND).cast(_LONG)
    return rows.where(~is_settled if later else is_settled | limit.isNull()).select(
        "copy", "segment", "kind", "buckets", "retention_ms", "surely_kept_us",
        F.coalesce("is_exact", "is_settled").alias("is_exact"), limit.isNull().alias("is_blind"),
        F.when(is_settled, F.col("offset")).alias("offset"),
        "at_ms", "window_ms",
        F.xxhash64("key").alias("key_hash"), F.xxhash64(second, "key").alias("key_hash_2"),
        F.when(value.isNotNull(), F.xxhash64(F.col("key"), value)).alias("first"),
        F.when(value.isNotNull(), F.xxhash64(second, F.col("key"), value)).alias("second"),
    )  # fmt: skip


def _window_ms() -> Column:
    """Read the time by which a record's key belongs to a segment, milliseconds; null = the kind has none.

    Source: `WindowKeySchema` (key, start, 4 bytes sequence), `SessionKeySchema` (key, end, start), 2.0 to 4.3.
    """
    found = F.lit(None).cast(_LONG)
    for kind, behind in ((StoreKind.WINDOW, 12), (StoreKind.SESSION, 16)):
        part = F.hex(F.substr("key", F.length("key") - behind + 1, F.lit(8)))
        known = (F.col("kind") == kind.value) & (F.length("key") >= behind)
        found = F.when(known, F.conv(part, 16, 10).try_cast(_LONG)).otherwise(found)
    return found


def _last_by_offset(rows: DataFrame) -> DataFrame:
    """Reduce records to keys: the last record up to the offset counts.

    Output columns: those that `_bucketed` reads. Grain: one row per copy and key.
    """
    is_later = F.col("offset").isNull()
    folded = rows.groupBy(*_KEY, "is_exact", "is_blind", "buckets").agg(
        F.max("offset").alias("offset"),
        F.max_by("first", "offset").alias("first"),
        F.max_by("second", "offset").alias("second"),
        F.max(is_later.cast("int")).alias("later"),
        F.max((is_later & F.col("first").isNull()).cast("int")).alias("deleted_later"),
        # an exact copy has not seen the time of later records
        F.max(F.when(~is_later | ~F.col("is_exact"), F.col("window_ms"))).alias("stream_ms"),
    )
    return folded.withColumn("unsure", F.lit(False))


def _last_by_time(rows: DataFrame) -> DataFrame:
    """Reduce records of versioned stores to keys: of the records up to the offset that with the latest time counts.

    The changelog does not show whether a record that came later than the history reaches back was put at all; and a
    compacted one may have been the latest. Such keys are unsure.

    Output columns: as `_last_by_offset`. Grain: one row per copy and key.
    """
    stream = rows.groupBy("copy").agg(F.max("at_ms").alias("latest_ms"))
    is_later = F.col("offset").isNull()
    order = F.when(~is_later, F.struct("at_ms", "offset"))
    folded = rows.groupBy(*_KEY, "is_exact", "is_blind", "buckets", "retention_ms", "surely_kept_us").agg(
        F.max("offset").alias("offset"),
        *(F.max_by(name, order).alias(name) for name in ("first", "second", "at_ms")),
        F.max(is_later.cast("int")).alias("later"),
        F.max((is_later & F.col("first").isNull()).cast("int")).alias("deleted_later"),
        F.lit(None).cast(_LONG).alias("stream_ms"),
    )
    is_late = F.col("at_ms") < F.col("latest_ms") - F.col("retention_ms")
    may_be_compacted = F.col("at_ms") * 1000 < F.col("surely_kept_us")
    return (
        folded.join(F.broadcast(stream), "copy", "inner")
        .withColumn("unsure", F.coalesce(is_late | may_be_compacted, F.lit(False)))
        .drop("latest_ms", "at_ms", "retention_ms", "surely_kept_us")
    )


def _bucketed(keys: DataFrame) -> DataFrame:
    """Sum up keys.

    Output columns: see `expected`.
    """
    alive, later = F.col("first").isNotNull(), F.col("later") == 1
    unknown = F.col("unsure") | (later & (F.col("offset").isNull() | ~F.col("is_exact")))
    surely = alive & ~F.col("unsure") & (F.col("is_exact") | (F.col("deleted_later") == 0))
    known = F.when(alive, F.col("key_hash"))
    return (
        keys.withColumn("bucket", F.col("key_hash").bitwiseAND(F.col("buckets") - 1))
        .groupBy(*BUCKET)
        .agg(
            F.count("first").alias("entries"),
            F.coalesce(F.bit_xor(known), F.lit(0)).alias("keys"),
            F.coalesce(F.bit_xor("first"), F.lit(0)).alias("first"),
            F.coalesce(F.bit_xor("second"), F.lit(0)).alias("second"),
            F.count_if(surely).alias("least"),
            F.count_if(alive | unknown).alias("most"),
            F.count_if(unknown).alias("open"),
            F.count_if("is_blind").alias("blind"),
            F.count_if(F.col("segment").isNull()).alias("odd"),
            F.max("stream_ms").alias("stream_ms"),
        )
    )
