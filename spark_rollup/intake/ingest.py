"""Segments -> bronze by day: each event once across all runs, unusable lines beside them with a reason.

Only files (of a topic: offsets) that no earlier run took are read, in turns. Events are compared by id with one version
of the table and added onto exactly that one. The list of what was ingested is written last, so a run that is cut off
between any two steps is repeated harmlessly: events that it had added already are known by their ids.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from agent.contract.codec import SCHEMA_VERSION
from agent.contract.events import SCHEMA_MAJOR
from spark_rollup import __version__, clock
from spark_rollup.bronze import snapshots, table
from spark_rollup.bronze.dedupe import one_row_per_id
from spark_rollup.bronze.later import latest_minor
from spark_rollup.bronze.load import REJUDGED, load_lines
from spark_rollup.bronze.place import Place, below, put
from spark_rollup.bronze.store import (
    AT,
    EVENTS,
    FORMAT,
    REJECTED,
    TAKEN,
    add_quarantine,
    check_format,
    read_dated_quarantine,
    read_events,
    read_quarantine,
    replace_quarantine,
    write_events,
)
from spark_rollup.bronze.unpacked import CUT_OFF
from spark_rollup.config import MARKER
from spark_rollup.errors import DamagedError
from spark_rollup.schemas import QUARANTINE
from spark_rollup.sources import files
from spark_rollup.sources.base import Batch
from spark_rollup.sources.files import Directory, FileSource
from spark_rollup.sources.kafka import KafkaSource
from spark_rollup.sources.turns import NOTE, ingest_all
from spark_rollup.spark.failures import is_deadly
from spark_rollup.spark.materialize import materialize

JUDGE = f"{__version__}, contract {SCHEMA_VERSION}"
"""What judges lines: for another version they may be usable."""

LISTS = 100
"""How many lists of what was ingested are merged into one: about a day of runs."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """What one run did.

    Args of the dataclass:
        events: Rows that it added to bronze.
        quarantined: Rows that it added to the quarantine.
        files: Files that it read, or partitions of a topic.
        unread: Files that could not be read to their ends, and why: they are left for the next run.
        newer: Minor version of the contract that some events are of and that this version does not know.
    """

    events: int
    quarantined: int
    files: int
    unread: Mapping[str, str] = field(default_factory=dict)
    newer: int | None = None


def run(
    spark: SparkSession,
    source: Path | FileSource | KafkaSource,
    bronze: Place,
    again: str | None = None,
    fit: Callable[[int], None] = lambda _: None,
) -> Ingested:
    """Add what is new; a run that is repeated, or was cut off half way, adds nothing twice.

    The raw line stays in the table, so fields that this version does not know are not lost.

    Args:
        spark: Session.
        source: Where events come from; a path is a directory with segments.
        bronze: What to add to.
        again: What to ingest again: a file or directory (path or URL), empty = everything; None = nothing.
        fit: Called with the size (bytes) of what will be ingested, before it is.

    Raises:
        SourceError: the source does not answer, refuses, or has not what was asked for.
        UsageError: bronze was made by an older version, or another run adds to it.
    """
    known = read_ends(bronze)
    if again is not None:
        known = drop_ends(known, again)
    if isinstance(source, KafkaSource):
        batch = source.batch(spark, known)
        for note in batch.notes:
            print(f"statewarden-rollup: {note}", file=sys.stderr)
        fit(batch.size_bytes)
        return add_batch(spark, batch, bronze)
    store = FileSource(Directory(source)) if isinstance(source, Path) else source
    fresh, lost = store.fresh(spark, known)
    fit(sum(fresh.values()))
    done = ingest_all(
        bronze / NOTE,
        fresh,
        lambda part: add_batch(spark, store.part(spark, part, lost), bronze),
        lambda path, size_bytes: add_batch(spark, store.put_aside(spark, path, size_bytes), bronze),
        is_deadly,
        files.FILES_PER_TURN,
    )
    return total(done)


def total(turns: Sequence[Ingested]) -> Ingested:
    """Add turns up."""
    return Ingested(
        sum(turn.events for turn in turns),
        sum(turn.quarantined for turn in turns),
        sum(turn.files for turn in turns),
        {place: why for turn in turns for place, why in turn.unread.items()},
        max((turn.newer for turn in turns if turn.newer is not None), default=None),
    )


def add_batch(spark: SparkSession, batch: Batch, bronze: Place) -> Ingested:
    """Add one batch; the list of what was ingested is written last."""
    check_format(bronze)
    if not batch.ends and (bronze / MARKER).exists() and not _is_stale(bronze):
        return Ingested(0, 0, 0)
    counts = _add(spark, batch, bronze)
    marker = {"format": FORMAT, "contract_major": SCHEMA_MAJOR, "judged_by": JUDGE}
    put(bronze / MARKER, json.dumps(marker) + "\n")
    places = {place: until for place, until in batch.ends.items() if place not in counts.unread}
    _remember(bronze, places, batch.gone)
    return counts


def _is_stale(bronze: Place) -> bool:
    """Return whether another version judged what is in the quarantine."""
    if table.version(bronze / REJECTED) is None:
        return False
    try:
        return bool(json.loads((bronze / MARKER).read_text(encoding="ascii")).get("judged_by") != JUDGE)
    except (OSError, ValueError, AttributeError):
        return True


def read_ends(bronze: Place) -> dict[str, int]:
    """Read what earlier runs ingested: files with the size that they had, partitions with the next offset.

    Raises:
        DamagedError: one of the lists cannot be read.
    """
    found: dict[str, int] = {}
    for part in _lists(bronze):
        try:
            rows = [json.loads(line) for line in part.read_text(encoding="utf-8").splitlines()]
            found |= {row["place"]: row["until"] for row in rows}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DamagedError(
                f"{part} cannot be read ({error}): remove it; the files that it lists are read once more, and "
                f"no event is stored twice"
            ) from error
    return found


def drop_ends(known: Mapping[str, int], where: str) -> dict[str, int]:
    """Leave out of what was ingested the file or directory (path or URL) named; empty = everything."""
    if not where:
        return {}
    path = where.rstrip("/") if "://" in where else os.path.abspath(where)  # noqa: PTH100 - as `Directory` has it
    return {
        place: until for place, until in known.items() if place != path and not place.startswith(f"{path}/")
    }


def _remember(bronze: Place, places: Mapping[str, int], gone: Set[str]) -> None:
    """Write one more list; the hundredth merges all of them, without what is gone from the source.

    If a run is cut off before the old lists are removed, they are merged once more. A file that comes back is read
    again, and its events are known by their ids.
    """
    lists = _lists(bronze)
    number = int(lists[-1].name.partition("-")[0]) + 1 if lists else 0  # later lists win
    merged = lists if len(lists) >= LISTS else []
    if merged:
        left = {place: until for place, until in read_ends(bronze).items() if place not in gone}
        places = {**left, **places}
    lines = [json.dumps({"place": place, "until": until}) for place, until in sorted(places.items())]
    text = "".join(f"{line}\n" for line in lines)
    put(bronze / TAKEN / f"{number:08d}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.jsonl", text)
    for path in merged:
        path.unlink()


def _lists(bronze: Place) -> list[Place]:
    return [path for path in below(bronze / TAKEN) if path.name.endswith(".jsonl")]


def _add(spark: SparkSession, batch: Batch, bronze: Place) -> Ingested:
    found = batch.loaded.events
    onto, before = (table.version(bronze / name) for name in (EVENTS, REJECTED))
    cleared = load_lines(_awaiting(spark, bronze)).events if _is_stale(bronze) else None
    if cleared is not None:
        found = found.unionByName(cleared)
    span = _span(found)
    events, number = (found, 0) if span is None else _fresh(spark, found, bronze, span, onto)
    rejected, rejects, unread = _rejected(spark, batch, bronze, before)
    counts = Ingested(number, rejects, len(batch.ends), unread, span["newer"] if span else None)
    if span is not None:  # before: a run that is cut off here must leave no snapshot that lacks its events
        snapshots.withdraw(bronze, span["first_day"], span["last_day"])
    if counts.events or onto is None:
        day = F.date_format(F.timestamp_micros("observed_at_us"), "yyyy-MM-dd")
        write_events(events.withColumn("day", day), bronze, batch.size_bytes, onto)
    if counts.quarantined:
        add_quarantine(rejected.withColumn(AT, F.lit(clock.now_us())), bronze)
    if cleared is not None and before is not None:
        _release(spark, bronze, cleared)
    spark.catalog.clearCache()
    return counts


def _rejected(
    spark: SparkSession, batch: Batch, bronze: Place, before: int | None
) -> tuple[DataFrame, int, Mapping[str, str]]:
    """Keep what the quarantine does not hold, count it, and say which files could not be read to their ends."""
    rejected = batch.loaded.quarantine.persist()
    torn = F.collect_set(F.when(F.col("reason") == CUT_OFF, F.col("file")))
    seen = rejected.agg(torn.alias("torn"), F.count("*").alias("number")).head()
    if seen is None or not seen["number"]:
        return rejected, 0, {}
    unread = batch.unread(sorted(seen["torn"]))
    fresh = rejected.where((F.col("reason") != CUT_OFF) | ~F.col("file").isin(list(unread)))
    if before is not None:
        fresh = _without(fresh, read_quarantine(spark, bronze), list(QUARANTINE.names))
    return fresh, fresh.count(), unread


def _awaiting(spark: SparkSession, bronze: Place) -> DataFrame:
    """List the lines that this version may judge otherwise than the one that put them into quarantine."""
    rows = read_dated_quarantine(spark, bronze)
    return rows.where(F.col("reason").isin(*REJUDGED)).select("file", "line")


def _release(spark: SparkSession, bronze: Place, cleared: DataFrame) -> None:
    """Take lines that are events now out of the quarantine; cut off before, they are in both places."""
    rows = read_dated_quarantine(spark, bronze)
    replace_quarantine(_without(rows, cleared.select("line").distinct(), ["line"]), bronze)


def _span(events: DataFrame) -> Row | None:
    """Find the time and the days that events are from; None = there are none."""
    at = F.timestamp_micros("observed_at_us")
    span = events.agg(
        F.min("observed_at_us").alias("first_us"), F.max("observed_at_us").alias("last_us"),
        F.date_format(F.min(at), "yyyy-MM-dd").alias("first_day"),
        F.date_format(F.max(at), "yyyy-MM-dd").alias("last_day"),
        latest_minor("schema_version").alias("newer"),
        F.count("*").alias("number"),
    ).first()  # fmt: skip
    return None if span is None or span["first_us"] is None else span


def _fresh(
    spark: SparkSession, events: DataFrame, bronze: Place, span: Row, onto: int | None
) -> tuple[DataFrame, int]:
    """Keep each event once that bronze does not hold as of a version, and count them.

    Repeats are rare and ids are short: only ids are gathered and compared, events stay where they are.
    """
    ids = events.groupBy("id").agg(F.count("*").alias("copies")).persist()
    compared = ids.withColumn("held", F.lit(None).cast("boolean"))
    if onto is not None:
        held = _known(spark, bronze, span, onto).join(ids.select("id"), "id", "left_semi")
        compared = ids.join(held.withColumn("held", F.lit(True)), "id", "left")
    repeated = materialize(compared.where((F.col("copies") > 1) | F.col("held")))
    seen = repeated.agg(
        F.sum("copies").alias("copies"), F.count_if(F.col("held").isNull()).alias("once")
    ).head()
    if seen is None or not seen["copies"]:
        return events, span["number"]
    once = one_row_per_id(events.join(repeated.where(F.col("held").isNull()), "id", "left_semi"))
    fresh = events.join(repeated, "id", "left_anti").unionByName(once)
    return fresh, span["number"] - seen["copies"] + seen["once"]


def _known(spark: SparkSession, bronze: Place, span: Row, onto: int) -> DataFrame:
    """List the ids that bronze holds of the days and the time that the events are from."""
    # whatever is committed after `onto` makes the append fail, so later rows do no harm here
    there = read_events(spark, bronze, onto, fixed=False).where(
        F.col("day").between(span["first_day"], span["last_day"])
        & F.col("observed_at_us").between(span["first_us"], span["last_us"])
    )
    return there.select("id")


def _without(rows: DataFrame, there: DataFrame, key: list[str]) -> DataFrame:
    known = there.select(*(F.col(name).alias(f"known_{name}") for name in key))
    same = [F.col(name).eqNullSafe(F.col(f"known_{name}")) for name in key]
    return rows.join(known, same, "left_anti")
