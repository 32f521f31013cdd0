"""Compose one audit: read -> thin -> reduce and judge -> write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from pyspark.sql import SparkSession

from agent.contract.codec import rfc3339
from spark_rollup import clock
from spark_rollup.bronze import dedupe, latest, snapshots
from spark_rollup.bronze.later import announce
from spark_rollup.bronze.load import load
from spark_rollup.bronze.place import Place
from spark_rollup.bronze.snapshots import EVERYTHING, Reading
from spark_rollup.columns import ROUTINE, is_routine
from spark_rollup.config import AuditOptions, is_bronze
from spark_rollup.correlate import RULES
from spark_rollup.errors import UsageError
from spark_rollup.fleet.application import Rule
from spark_rollup.fleet.judge import RESTARTS
from spark_rollup.fleet.reduce import COVERAGE, PODS, Question
from spark_rollup.judging import verified
from spark_rollup.judging.job import Wide, unfinished_of
from spark_rollup.judging.plain import Plain, collected
from spark_rollup.judging.told import Told
from spark_rollup.registry import PROOFS
from spark_rollup.report import expected
from spark_rollup.report.page import PageData
from spark_rollup.report.write import Tables, write
from spark_rollup.spark.materialize import materialize
from spark_rollup.spark.session import reading_all

Input = Plain | Wide
"""What is read: a small input on the driver, a large one where Spark has it."""


def run(spark: SparkSession, options: AuditOptions) -> PageData:
    """Audit one input, write every output, and give what the page shows.

    Raises `UsageError`: the input has no usable event up to `as_of`, or the output cannot be written.
    """
    began_us = clock.now_us()
    with reading_all(spark):
        read, about = prepare(spark, options)
        asked = asking(spark, options, about)
        told = tell(read, asked)
        not_asked = () if asked.proofs is not None else [meta.id for meta in PROOFS]
        missing = expected.compare(options.expect, told.of(PODS), told.of(RESTARTS))
        tables = Tables(told, read.quarantine, asked, not_asked, missing, read.unfinished)
        return write(spark, tables, options.output, began_us)


def reading(options: AuditOptions) -> Reading:
    """Choose what is read of bronze: snapshots of days before the look-back, or before today; all else whole.

    Where every event is wanted only removed days are read from their snapshots.
    """
    bronze = source(options)
    days = snapshots.days(bronze) if is_bronze(bronze) else []
    if not days:
        return EVERYTHING
    if options.every_event:
        return snapshots.reading(bronze, 0)
    # a day that is still to come is a fast clock's
    newest_us = min(snapshots.end_us(days[-1]) - 1, clock.now_us())
    about_us = newest_us if options.as_of_us is None else options.as_of_us
    return snapshots.reading(bronze, snapshots.since_us(about_us, options.look_back_days or 0))


def source(options: AuditOptions) -> Place:
    """Give the input as what it is by now: a path, or an object store's."""
    return cast("Place", options.input)


def prepare(spark: SparkSession, options: AuditOptions) -> tuple[Input, latest.Latest]:
    """Read up to the audit's time, drop repeats, and choose that time; say what no `ingest` has said of segments.

    Raises `UsageError`: the input has no usable event.
    """
    read, found = read_for_its_time(spark, options)
    if isinstance(read, Wide):
        read = replace(read, unfinished=unfinished_of(read))
    if not is_bronze(source(options)):
        announce(read.latest_minor(), "read")
    return read.until(found.as_of_us), found


def read_for_its_time(spark: SparkSession, options: AuditOptions) -> tuple[Input, latest.Latest]:
    """Read what the look-back of the audit's time needs: that time is known only once the newest events are read.

    The newest day of bronze may be that of a clock that is ahead. What it made us read then begins too late.
    """
    what = reading(options)
    read = _read(spark, options, what)
    if options.as_of_us is not None:
        return read, latest.Latest(options.as_of_us)
    found = newest(read, options)
    due = reading(replace(options, as_of_us=found.as_of_us))
    return (read if due == what else _read(spark, options, due)), found


def _read(spark: SparkSession, options: AuditOptions, what: Reading) -> Input:
    loaded = load(spark, source(options), what)
    if is_whole(spark):
        return collected(loaded)
    if loaded.unique:
        # Parquet is read column by column, as each stage needs it
        return Wide(loaded.events.drop("line"), loaded.quarantine, loaded.carried)
    once = dedupe.one_row_per_id(loaded.events).drop("line").withColumn(ROUTINE, is_routine())
    return Wide(materialize(once), loaded.quarantine)


def is_whole(spark: SparkSession) -> bool:
    """Return whether the input is small: `spark.session` chooses one partition by its size."""
    return str(spark.conf.get("spark.sql.shuffle.partitions")) == "1"


def newest(read: Input, options: AuditOptions) -> latest.Latest:
    """Choose the default of `as_of`: the newest event's time, but for clocks that are ahead of all others.

    Raises:
        UsageError: there is no usable event at all.
    """
    words = read.last_words()
    if words:
        return latest.choose(words, clock.now_us(), read.began_us)
    why = read.complaint()
    reason = f": {why['reason']}, {why['detail']}" if why else ""
    raise UsageError(f"input {options.input} holds no usable event{reason}")


def asking(
    spark: SparkSession, options: AuditOptions, about: latest.Latest, rules: Sequence[Rule] | None = None
) -> Question:
    """Say what is asked: all rules, unless some are named."""
    as_of_us = about.as_of_us
    return Question(
        as_of_us,
        snapshots.since_us(as_of_us, options.look_back_days),
        RULES if rules is None else rules,
        options.overrides,
        about.ahead,
        None if options.verified is None else verified.verified(spark, options.verified, as_of_us),
    )


def tell(read: Input, asked: Question) -> Told:
    """Tell all there is to tell.

    Raises:
        UsageError: there is no event up to the audit's time.
    """
    told = read.told(asked)
    if not told.of(COVERAGE):
        raise UsageError(f"no event up to --as-of {rfc3339(asked.as_of_us)}: nothing is known of that time")
    return told
