"""Compares buckets: a copy with its changelog, or two copies with each other."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_rollup.verify.digests import BUCKET, PRINTS

COUNTS = ("buckets", "equal", "differing", "unknown", "missing", "extra", "different")
"""What is counted of each copy: buckets of both sides, those that are equal, differ, or cannot be judged; and at least
how many keys are missing, extra, or have another value in those that differ."""

_SIDES = ("entries", *PRINTS)
_LOG = ("least", "most", "open", "blind", "odd", "stream_ms")


def with_changelog(stored: DataFrame, logged: DataFrame, copies: DataFrame) -> DataFrame:
    """Compare copies with their changelogs.

    Args:
        stored: `Digests.buckets`.
        logged: `changelog.expected`.
        copies: `changelog.copies_frame`.

    Output columns: copy, segment, expired (the segment is older than what is kept: nothing is said of it), odd,
        `COUNTS`.
    Grain: one row per copy and segment.
    """
    both = _joined(stored, logged, _LOG).join(
        F.broadcast(copies.select("copy", "interval_ms", "retention_ms", "last_segment", "may_have_gone")),
        "copy",
        "inner",
    )
    stream = both.groupBy("copy").agg(F.max("stream_ms").alias("latest_ms"))
    both = both.join(F.broadcast(stream), "copy", "inner")
    oldest_ms = F.greatest("latest_ms", "last_segment") - F.col("retention_ms")
    live_from = oldest_ms - F.pmod(oldest_ms, F.col("interval_ms"))
    expired = F.coalesce(F.col("segment") < live_from, F.lit(False))
    return _counted(both, _judged(), ("copy", "segment", expired.alias("expired")))


def with_each_other(stored: DataFrame, pairs: DataFrame) -> DataFrame:
    """Compare copies at the same offset; both must be exact.

    Args:
        stored: `Digests.buckets`.
        pairs: Columns copy, other, segment, in which they are compared.

    Output columns: copy, other, segment, `COUNTS`: `missing` is what the other copy has alone.
    Grain: one row per pair and segment.
    """
    mine = pairs.join(stored, ["copy", "segment"], "inner")
    others = pairs.join(stored.withColumnRenamed("copy", "other"), ["other", "segment"], "inner")
    keys = ("copy", "other", "segment", "bucket")
    return _counted(_joined(mine, others, (), keys), _plainly(), ("copy", "other", "segment"))


def _joined(
    stored: DataFrame, logged: DataFrame, more: tuple[str, ...], keys: tuple[str, ...] = BUCKET
) -> DataFrame:
    """Put both sides of each bucket into one row; a bucket that one side lacks is empty there."""
    own = stored.select(*keys, *(F.col(name).alias(f"own_{name}") for name in _SIDES))
    right = logged.select(*keys, *(F.col(name).alias(f"log_{name}") for name in _SIDES), *more)
    zeros = [f"{side}_{name}" for side in ("own", "log") for name in _SIDES]
    counts = [name for name in more if name != "stream_ms"]
    return own.join(right, list(keys), "full").fillna(0, subset=[*zeros, *counts])


def _same(*names: str) -> Column:
    found = F.lit(True)
    for name in names:
        found = found & (F.col(f"own_{name}") == F.col(f"log_{name}"))
    return found


def _judged() -> dict[str, Column]:
    """Judge a bucket against a changelog of which some keys may not be known."""
    own, nothing = F.col("own_entries"), F.lit(0).cast("bigint")
    closed = F.col("open") == 0
    whole = closed & ~F.col("may_have_gone")
    plain = _plainly()
    # beyond the bounds whatever the unknown keys are
    too_few = F.greatest(F.col("least") - own, nothing)
    too_many = F.when(F.col("may_have_gone"), nothing).otherwise(F.greatest(own - F.col("most"), nothing))
    return {
        "missing": F.when(whole, plain["missing"]).otherwise(too_few),
        "extra": F.when(whole, plain["extra"]).otherwise(too_many),
        "different": F.when(closed, plain["different"]).otherwise(nothing),
    }


def _plainly() -> dict[str, Column]:
    """Count at least how many keys differ in a bucket of which both sides are known."""
    own, other, nothing, one = F.col("own_entries"), F.col("log_entries"), F.lit(0).cast("bigint"), F.lit(1)
    swapped = F.when((own == other) & ~_same("keys"), one).otherwise(nothing)
    return {
        "missing": F.greatest(other - own, swapped),
        "extra": F.greatest(own - other, swapped),
        "different": F.when(_same("entries", "keys") & ~_same("first", "second"), one).otherwise(nothing),
    }


def _counted(both: DataFrame, judged: dict[str, Column], by: tuple[str | Column, ...]) -> DataFrame:
    same = _same(*_SIDES)
    if "blind" in both.columns:
        same = same & (F.col("blind") == 0)
    rows = both.withColumns(
        {name: F.when(same, F.lit(0).cast("bigint")).otherwise(column) for name, column in judged.items()}
    )
    differs = (F.col("missing") + F.col("extra") + F.col("different")) > 0
    odd = [F.sum("odd").alias("odd")] if "odd" in rows.columns else []
    return rows.groupBy(*by).agg(
        F.count("*").alias("buckets"),
        F.count_if(same).alias("equal"),
        F.count_if(differs).alias("differing"),
        F.count_if(~same & ~differs).alias("unknown"),
        *(F.sum(name).alias(name) for name in ("missing", "extra", "different")),
        *odd,
    )
