"""Effective settings per application: what the agents reported, and what `--set` overrides."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from agent.contract.events import Kind
from agent.contract.names import not_here
from agent.contract.reporting import DISABLED_PREFIX
from spark_rollup.columns import is_notable, release, release_parts
from spark_rollup.config import INTEGER_KEYS, KEYS, Override, named_in

DEFAULT_SESSION_TIMEOUT_MS = 45_000  # consumer default since 3.0 (KIP-735)
OLD_SESSION_TIMEOUT_MS = 10_000  # up to 2.8
DEFAULT_PROBING_MS = 600_000  # probing.rebalance.interval.ms, since 2.6 (KIP-441)
DEFAULT = "default"
"""Origin of a value that was not configured: an agent assumed it, and the fleet counts it as not known."""
NEVER_GUESSED = ("processing_guarantee", "kafka_streams_version")
"""Without the first most bugs of exactly-once go unreported, without the second some others."""
_APP = ("namespace", "application_id")


def effective_settings(events: DataFrame, members: DataFrame, overrides: Sequence[Override]) -> DataFrame:
    """Find each application's settings; the newest report of any pod counts, `--set` wins.

    Input columns: `EVENT_ROW`; those of `timeline.members`.
    Output columns: namespace, application_id, every key of `config.KEYS` (whole numbers as bigint), release_low and
        release_high (arrays of numbers), session_ms and probing_ms (defaults filled in), disabled (array of pod,
        detector and reason, by each pod's newest report), not_given (array of those of `NEVER_GUESSED` that no
        agent reported: what `--set` says comes too late for its detectors).
    Grain: one row per application that any event names.
    Nulls: null = unknown.
    """
    named = members.where(F.col("application_id").isNotNull()).select(*_APP).distinct()
    table = named.join(_reported(events), list(_APP), "left")
    unknown = (F.when(F.col(key).isNull(), F.lit(key)) for key in NEVER_GUESSED)
    table = table.withColumn("not_given", F.array_compact(F.array(*unknown)))
    for key in KEYS:
        table = table.withColumn(key, _overridden(key, overrides))
    for key in INTEGER_KEYS:
        table = table.withColumn(key, F.col(key).try_cast("bigint"))
    exact = release_parts(F.col("kafka_streams_version"))
    table = table.withColumn(
        "release_low", F.coalesce(exact, release_parts(F.col("release_low")))
    ).withColumn("release_high", F.coalesce(exact, release_parts(F.col("release_high"))))
    # an unknown release gets the longer of the two defaults: later is safer than wrong
    before_3 = F.col("release_high") < release(3, 0)
    before_2_6 = F.col("release_high") < release(2, 6)
    session = F.when(before_3, F.lit(OLD_SESSION_TIMEOUT_MS)).otherwise(F.lit(DEFAULT_SESSION_TIMEOUT_MS))
    probing = F.when(before_2_6, F.lit(0)).otherwise(
        F.coalesce("probing_rebalance_interval_ms", F.lit(DEFAULT_PROBING_MS))
    )
    return table.withColumn("session_ms", F.coalesce("session_timeout_ms", session)).withColumn(
        "probing_ms", probing
    )


def unused(applications: DataFrame, overrides: Sequence[Override]) -> str | None:
    """Say which applications `--set` names that no event is about.

    Input columns: application_id.

    Returns:
        A sentence; None = there is no such.
    """
    named = named_in(overrides)
    if not named:
        return None
    known = applications.where(F.col("application_id").isNotNull()).select("application_id").distinct()
    return not_here("--set", named, [str(row[0]) for row in known.collect()])


def releases(effective: DataFrame) -> DataFrame:
    """Name each application's release for people: one, a range, or unknown; and what its agents were not given.

    Input columns: those of `effective_settings`.
    Output columns: namespace, application_id, release, not_given.
    """
    low, high = (F.array_join(F.col(f"release_{end}").cast("array<string>"), ".") for end in ("low", "high"))
    text = (
        F.when(low == high, low)
        .when(low.isNotNull() & high.isNotNull(), F.concat(low, F.lit(" to "), high))
        .when(low.isNotNull(), F.concat(low, F.lit(" or later")))
        .when(high.isNotNull(), F.concat(F.lit("up to "), high))
        .otherwise(F.lit("unknown"))
    )
    return effective.select(*_APP, text.alias("release"), "not_given")


def disabled(effective: DataFrame) -> DataFrame:
    """List the detectors that agents have disabled.

    Input columns: those of `effective_settings`.
    Output columns: namespace, application_id, pod, detector, reason.
    Grain: one row per application, pod and detector.
    """
    return effective.select(*_APP, F.explode("disabled").alias("one")).select(*_APP, "one.*")


def _disabled() -> Column:
    """Of one report: pod, detector and reason of every detector that is disabled."""
    chosen = F.filter("settings", lambda row: row["key"].startswith(DISABLED_PREFIX))
    return F.transform(
        chosen,
        lambda row: F.struct(
            F.col("pod"),
            F.substring_index(row["key"], ".", -1).alias("detector"),
            row["value"].alias("reason"),
        ),
    )


def _reported(events: DataFrame) -> DataFrame:
    reported = events.where(is_notable() & (F.col("kind") == Kind.CONFIGURATION.value))
    newest = W.partitionBy(*_APP, "key").orderBy(F.desc("observed_at_us"), "pod", F.desc("sequence"))
    rows = (
        reported.select(*_APP, "pod", "observed_at_us", "sequence", F.explode("settings").alias("setting"))
        .where(F.col("setting.value").isNotNull() & (F.col("setting.origin") != DEFAULT))
        .select(*_APP, "pod", "observed_at_us", "sequence", "setting.key", "setting.value")
        .withColumn("rank", F.row_number().over(newest))
        .where(F.col("rank") == 1)
    )
    values = rows.groupBy(*_APP).agg(
        *(F.max(F.when(F.col("key") == key, F.col("value"))).alias(key) for key in KEYS)
    )
    # across pods (a rolling upgrade) the range is the union of what each allows
    latest = W.partitionBy(*_APP, "pod").orderBy(F.desc("observed_at_us"), F.desc("sequence"))
    ranges = (
        reported.withColumn("rank", F.row_number().over(latest))
        .where(F.col("rank") == 1)
        .groupBy(*_APP)
        .agg(
            F.min_by("release_low", release_parts(F.col("release_low"))).alias("release_low"),
            F.max_by("release_high", release_parts(F.col("release_high"))).alias("release_high"),
            F.array_sort(F.flatten(F.collect_list(_disabled()))).alias("disabled"),
        )
    )
    return ranges.join(values, list(_APP), "left")


def _overridden(key: str, overrides: Sequence[Override]) -> Column:
    value = F.col(key)
    for item in overrides:
        if item.key == key and item.application_id is None:
            value = F.lit(item.value)
    for item in overrides:
        if item.key == key and item.application_id is not None:
            value = F.when(F.col("application_id") == item.application_id, F.lit(item.value)).otherwise(value)
    return value
