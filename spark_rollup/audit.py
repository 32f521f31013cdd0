"""Compose one audit: load -> dedupe -> gaps -> timeline -> correlate -> report."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rollup import coverage, dedupe, gaps, report, settings, timeline
from spark_rollup.config import AuditOptions
from spark_rollup.correlate.base import Facts, last_local_findings
from spark_rollup.correlate.registry import RULES
from spark_rollup.errors import UsageError
from spark_rollup.load import Loaded, load


def run(spark: SparkSession, options: AuditOptions) -> report.Outcome:
    """Audit one input and write every output.

    Returns:
        What was found, as plain values.

    Raises:
        UsageError: the input has no usable event up to `as_of`, or the output cannot be written.
    """
    loaded = load(spark, options.input)
    events = dedupe.one_row_per_id(loaded.events).drop("line").localCheckpoint()
    as_of_us = options.as_of_us if options.as_of_us is not None else newest(events, loaded, options)
    past = events.where(F.col("observed_at_us") <= as_of_us)
    return report.write(tables(past, loaded, options, as_of_us), options.output)


def newest(events: DataFrame, loaded: Loaded, options: AuditOptions) -> int:
    """Find the newest event's time: the default of `as_of`.

    Raises:
        UsageError: there is no usable event at all.
    """
    row = events.agg(F.max("observed_at_us").alias("at_us")).first()
    if row is not None and row["at_us"] is not None:
        return int(row["at_us"])
    why = loaded.quarantine.select("reason", "detail").orderBy("file", "line").first()
    told = f": {why['reason']}, {why['detail']}" if why else ""
    raise UsageError(f"input {options.input} holds no usable event{told}")


def tables(events: DataFrame, loaded: Loaded, options: AuditOptions, as_of_us: int) -> report.Tables:
    """Compute every table of the audit, lazily."""
    facts = gather(events, options, as_of_us)
    findings = reduce(DataFrame.unionByName, (rule.find(facts).localCheckpoint() for rule in RULES))
    return report.Tables(
        findings=findings,
        timelines=timeline.timelines(
            events, facts.held, facts.lives, facts.gaps, facts.sizes
        ).localCheckpoint(),
        coverage=coverage.coverage(events, facts.gaps, as_of_us),
        pods=coverage.pods(events, facts.held, gaps.last_words(events), facts.gaps, as_of_us),
        quarantine=loaded.quarantine,
        local=facts.local,
        as_of_us=as_of_us,
    )


def gather(events: DataFrame, options: AuditOptions, as_of_us: int) -> Facts:
    """Compute what rules look at.

    Each frame is computed once and cut loose from its plan (`localCheckpoint`): rules join these frames many times,
    and analysing the whole lineage for every join took longer than running it.
    """
    held = timeline.holders(events).localCheckpoint()
    return Facts(
        local=last_local_findings(events).localCheckpoint(),
        held=held,
        marks=timeline.marks(events).localCheckpoint(),
        sizes=timeline.sizes(events).localCheckpoint(),
        lives=timeline.lives(events, held).localCheckpoint(),
        members=timeline.members(events).localCheckpoint(),
        sightings=timeline.sightings(events).localCheckpoint(),
        gaps=gaps.find_gaps(events, as_of_us).localCheckpoint(),
        settings=settings.effective_settings(events, options.overrides).localCheckpoint(),
        as_of_us=as_of_us,
    )
