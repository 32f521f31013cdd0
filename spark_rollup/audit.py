"""Compose one audit: load -> dedupe -> gaps -> timeline -> correlate -> report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from agent.contract.codec import rfc3339
from agent.contract.events import Status
from spark_rollup import clock
from spark_rollup.bronze import dedupe, latest, snapshots
from spark_rollup.bronze.later import announce_segments
from spark_rollup.bronze.load import Loaded, load
from spark_rollup.bronze.place import Place
from spark_rollup.bronze.snapshots import EVERYTHING, Carried, Reading
from spark_rollup.columns import ROUTINE, TASK, is_routine
from spark_rollup.config import AuditOptions, is_bronze
from spark_rollup.correlate import RULES
from spark_rollup.errors import UsageError
from spark_rollup.facts import coverage, gaps, heartbeats, levels, settings, sizes, timeline
from spark_rollup.judging import verified
from spark_rollup.judging.asks import questioned
from spark_rollup.judging.base import Facts, last_local_findings
from spark_rollup.judging.job import judged
from spark_rollup.report import lanes
from spark_rollup.report.write import Outcome, Tables, write
from spark_rollup.spark.materialize import materialize
from spark_rollup.spark.py4j_cache import run_parallel
from spark_rollup.spark.single_partition import is_whole, single_partition


def run(spark: SparkSession, options: AuditOptions) -> Outcome:
    """Audit one input and write every output.

    Returns:
        What was found, as plain values.

    Raises:
        UsageError: the input has no usable event up to `as_of`, or the output cannot be written.
    """
    began_us = clock.now_us()
    events, loaded, as_of_us = prepare(spark, options)
    return write(tables(events, loaded, options, as_of_us), options.output, began_us)


def reading(options: AuditOptions) -> Reading:
    """Choose what is read of bronze: the look-back, and the newest snapshot from before it.

    Without a look-back that is everything, and the snapshot that covers removed days.
    """
    source = _source(options)
    days = snapshots.days(source) if is_bronze(source) else []
    if not days:
        return EVERYTHING
    if options.look_back_days is None:
        return snapshots.reading(source, 0)
    # a day that is still to come is a fast clock's
    newest_us = min(snapshots.end_us(days[-1]) - 1, clock.now_us())
    about_us = newest_us if options.as_of_us is None else options.as_of_us
    return snapshots.reading(source, snapshots.since_us(about_us, options.look_back_days))


def _source(options: AuditOptions) -> Place:
    return cast("Place", options.input)


def prepare(spark: SparkSession, options: AuditOptions) -> tuple[DataFrame, Loaded, int]:
    """Load, drop repeats, and choose the time; say what no `ingest` has said of segments.

    Returns:
        Events that are read, up to the audit's time; everything that was loaded; and that time (microseconds since
        the epoch).

    Raises:
        UsageError: the input has no usable event.
    """
    events, loaded, found = read_for_its_time(spark, options)
    if not loaded.unique:
        announce_segments(events)
    until = events.where(F.col("observed_at_us") <= found.as_of_us)
    return until, replace(loaded, ahead=found.ahead), found.as_of_us


def read_for_its_time(spark: SparkSession, options: AuditOptions) -> tuple[DataFrame, Loaded, latest.Latest]:
    """Read what the look-back of the audit's time needs: that time is known only once the newest events are read.

    The newest day of bronze may be that of a clock that is ahead. What it made us read then begins too late.
    """
    what = reading(options)
    events, loaded = _read(spark, options, what)
    if options.as_of_us is not None:
        return events, loaded, latest.Latest(options.as_of_us)
    found = newest(events, loaded, options)
    due = reading(replace(options, as_of_us=found.as_of_us))
    if due != what:
        events, loaded = _read(spark, options, due)
    return events, loaded, found


def _read(spark: SparkSession, options: AuditOptions, what: Reading) -> tuple[DataFrame, Loaded]:
    loaded = load(spark, _source(options), what)
    if loaded.unique:
        events = loaded.events.drop("line")
        # Parquet is read column by column, as each stage needs it; but each reading is a plan, and a job of Delta's
        return materialize(single_partition(events)) if is_whole(spark) else events, loaded
    once = dedupe.one_row_per_id(loaded.events).drop("line")
    marked = once if ROUTINE in loaded.events.columns else once.withColumn(ROUTINE, is_routine())
    return materialize(single_partition(marked)), loaded


def newest(events: DataFrame, loaded: Loaded, options: AuditOptions) -> latest.Latest:
    """Choose the default of `as_of`: the newest event's time, but for clocks that are ahead of all others.

    Raises:
        UsageError: there is no usable event at all.
    """
    at = F.col("observed_at_us")
    stop_us = F.max(F.when(F.col("phase") == "stopping", at))
    ends = (F.max(at).alias("at_us"), F.min(at).alias("first_us"), stop_us.alias("stop_us"))
    words = {
        (str(row["namespace"]), str(row["pod"])): latest.Last(
            int(row["at_us"]), int(row["first_us"]), row["stop_us"] == row["at_us"]
        )
        for row in events.groupBy("namespace", "pod").agg(*ends).collect()
    }

    def began_us(pod: latest.Pod, after_us: int) -> int:
        of_pod = (F.col("namespace") == pod[0]) & (F.col("pod") == pod[1]) & (at > after_us)
        row = events.where(of_pod).agg(F.min(at).alias("at_us")).first()
        return int(row["at_us"]) if row else after_us

    if words:
        return latest.choose(words, clock.now_us(), began_us)
    why = loaded.quarantine.select("reason", "detail").orderBy("file", "line").first()
    reason = f": {why['reason']}, {why['detail']}" if why else ""
    raise UsageError(f"input {options.input} holds no usable event{reason}")


def tables(events: DataFrame, loaded: Loaded, options: AuditOptions, as_of_us: int) -> Tables:
    """Compute every table of the audit; the small ones lazily."""
    facts = gather(events, options, as_of_us, loaded.carried, loaded.ahead)
    found = judged(facts, RULES, proofs_of(facts, options))
    shown, watched, last_seen = compute_all(
        lanes.timelines(facts),
        coverage.coverage(facts.heard, facts.gaps, as_of_us, facts.since_us),
        coverage.pods(facts.members, facts.held, facts.heard, facts.gaps, as_of_us),
    )
    return Tables(
        findings=found.findings,
        timelines=shown,
        coverage=watched,
        pods=last_seen,
        churn=found.churn,
        restarts=found.restarts,
        known_pods=found.known_pods,
        quarantine=loaded.quarantine,
        local=facts.local,
        releases=settings.releases(facts.settings),
        disabled=settings.disabled(facts.settings),
        verified=options.verified is not None,
        as_of_us=as_of_us,
        since_us=facts.since_us,
        titles={rule.meta.id: rule.meta.title for rule in RULES},
    )


def proofs_of(facts: Facts, options: AuditOptions) -> DataFrame | None:
    """Read what `verify` found, where it is given: `FINDING`."""
    if options.verified is None:
        return None
    (found,) = compute_all(
        verified.verified(facts.said.sparkSession, options.verified, facts.said, facts.as_of_us)
    )
    return found


def gather(
    read: DataFrame,
    options: AuditOptions,
    as_of_us: int,
    carried: Carried | None = None,
    ahead: Mapping[latest.Pod, int] = MappingProxyType({}),
) -> Facts:
    """Compute what rules read, from the events that are read and what a snapshot carries from before them.

    Each frame is computed once and cut loose from its plan (`materialize`): rules join these frames many times,
    and analysing the whole lineage for every join took longer than running it. None of them is as long as the events
    are: those are only ever read, a few columns at a time.

    Raises:
        UsageError: there is no event up to `as_of_us`.
    """
    since_us = snapshots.since_us(as_of_us, options.look_back_days)
    if carried:
        carried = Carried(*map(single_partition, (carried.events, carried.heard, carried.unwatched)))
    events = read.unionByName(carried.events) if carried else read
    heard = heartbeats.beats(read)
    marks = timeline.marks(events)
    frequent = F.col("change").isin(*timeline.FREQUENT)
    counted, members, said, rare, single = compute_all(
        heard.unionByName(carried.heard) if carried else heard,
        timeline.members(events),
        last_local_findings(events),
        marks.where(~frequent),
        sizes.single_stores(events),
    )
    (said,) = compute_all(levels.settled(said, counted, events))
    readings = sizes.sizes(events, single)
    held, unseen, sightings, effective, curve = compute_all(
        timeline.holders(events, counted),
        unseen_by(events, counted, as_of_us, ahead),
        timeline.sightings(events),
        settings.effective_settings(events, members, options.overrides),
        sizes.curve(readings),
    )
    if counted.isEmpty():
        raise UsageError(f"no event up to --as-of {rfc3339(as_of_us)}: nothing is known of that time")
    local = said.where((F.col("status") == Status.OPEN.value) | (F.col("observed_at_us") >= since_us))
    (ends,) = compute_all(sizes.latest(curve))
    last = heartbeats.last_words(counted, since_us)
    asked, words = compute_all(
        questioned([rule.meta for rule in RULES], local, held, rare, effective),
        levels.with_missed(last, counted, events, said),
    )
    # what one rule or table alone asks for stays a plan: computing it apart would only cost a job more
    several = ends.groupBy(*TASK, "store").agg(F.count("*").alias("pods")).where(F.col("pods") > 1)
    own, close, lives, unwatched = compute_all(
        readings.join(asked, list(TASK), "left_semi"),
        marks.where(frequent).join(asked, list(TASK), "left_semi"),
        timeline.lives(events, held, counted),
        gaps.merged(unseen.unionByName(carried.unwatched, allowMissingColumns=True) if carried else unseen),
    )
    settled = sizes.settled_copies(readings.join(several, [*TASK, "store"], "left_semi"))
    return Facts(
        said=said, local=local, held=held, questioned=asked, marks=rare.unionByName(close),
        sizes=own, curve=curve, latest=ends,
        saved=sizes.saved(marks), settled=settled, lives=lives, members=members, sightings=sightings,
        gaps=unseen.where(F.col("to_us") >= since_us), unwatched=unwatched,
        heard=words, settings=effective, as_of_us=as_of_us,
        since_us=since_us,
    )  # fmt: skip


def unseen_by(
    events: DataFrame, counted: DataFrame, as_of_us: int, ahead: Mapping[latest.Pod, int]
) -> DataFrame:
    """Collect the times that no agent watched, and those in which a fast clock puts a pod's word in doubt.

    Output columns: `GAP`.
    """
    found = gaps.find_gaps(events, counted, as_of_us)
    return found.unionByName(gaps.fast_clocks(events, ahead, as_of_us)) if ahead else found


def compute_all(*frames: DataFrame) -> list[DataFrame]:
    """Compute frames side by side and cut them loose from their plans."""
    return run_parallel(frames[0].sparkSession, lambda frame: materialize(single_partition(frame)), frames)
