"""Select the events of finished days that later audits still need, and condense the rest.

The result is a set of events like those of bronze, so rules do not know the difference. Its size follows tasks, pods
and stores, not time: the newest few of everything are kept (`kinds`, `nearby`), and what many events say together
becomes a few events that say the same (`condense`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from agent.contract.events import Change, Kind, Status
from spark_rollup.bronze.snapshots import DAY_US, Carried
from spark_rollup.columns import ROUTINE, TASK, is_notable, summary
from spark_rollup.facts import heartbeats, timeline
from spark_rollup.facts.heartbeats import BOOT
from spark_rollup.fleet import gaps
from spark_rollup.fleet.holds import FREQUENT
from spark_rollup.fleet.meta import Row
from spark_rollup.fleet.rows import Unwatched
from spark_rollup.fleet.thin import OfPod
from spark_rollup.history import condense, nearby
from spark_rollup.judging.base import last_local_findings
from spark_rollup.judging.job import Wide, by_pods
from spark_rollup.judging.past import Past
from spark_rollup.schemas import EVENT_ROW, HEARD, UNWATCHED
from spark_rollup.spark.materialize import materialize
from spark_rollup.spark.rows import frame_of

HELD = (Change.TASK_HELD.value, Change.TASK_RELEASED.value)
LIVES = (Change.PROCESS_STARTED.value, Change.PROCESS_ENDED.value)

CLOSED = 4
"""Resolved findings kept per pod, task, store and detector: the newest."""

ISLANDS = 64
"""Unwatched times kept apart per pod; what is older becomes one, from first to last: rather doubt than error."""

_APP_POD = ("namespace", "application_id", "pod")


@dataclass(frozen=True, slots=True)
class Keep:
    """One kind of events that are not routine, and how many of them are kept.

    Args of the dataclass:
        where: Which events.
        key: Counted per these columns.
        newest: So many of the newest.
        oldest: So many of the oldest.
        why: What they are needed for.
    """

    where: Column
    key: tuple[str, ...]
    newest: int
    oldest: int
    why: str


def kinds() -> tuple[Keep, ...]:
    """List what is kept of events that are not routine, except findings and settings, where one replaces another."""
    change, kind = F.col("change"), F.col("kind")
    of_task = (kind == Kind.TRANSITION.value) & F.col("task_id").isNotNull()
    return (
        Keep(
            of_task & ~change.isin(*FREQUENT, *HELD), (*TASK, "pod", "change", "store"), 32, 1,
            "the deletion with its offset, the store made since; whose cleaner took what; the hour before, which store "
            "was the first; what moved",
        ),
        Keep(
            change.isin(*LIVES), _APP_POD, 32, 2,
            "which processes lived, and since when",
        ),
        Keep(
            kind == Kind.DROP.value, BOOT, 8, 0,
            "a gap across midnight that was announced is dropped, not lost",
        ),
    )  # fmt: skip


def carry(read: DataFrame, earlier: Carried | None, to_us: int, pasts: Sequence[Past]) -> Carried:
    """Reduce some days' events, and what was carried to them, to what later audits need.

    Args:
        read: `EVENT_ROW` and routine, one row per id: all events of those days.
        earlier: What is known from before.
        to_us: When the last of them ends.
        pasts: What rules need of them.
    """
    events = read.unionByName(earlier.events) if earlier else read
    own = heartbeats.beats(read)
    counted = materialize(own.unionByName(earlier.heard) if earlier else own)
    newest = materialize(heartbeats.newest_levels(counted))
    kept = materialize(_notable(events, newest))
    flips = materialize(condense.newest_flips(timeline.flips(events), kept))
    rows = (
        kept,
        nearby.nearby(events, flips, kept, counted, pasts),
        condense.holds(flips),
        condense.memberships(timeline.members(events), to_us),
        condense.ends_of(condense.lasting_sightings(timeline.sightings(events), counted, kept, pasts)),
        condense.blindness(events),
        condense.levels(events, newest),
    )
    return Carried(
        reduce(DataFrame.unionByName, map(shaped, rows)).dropDuplicates(["id"]),
        _heard(counted, to_us),
        _unwatched(read, earlier, to_us),
    )


def shaped(rows: DataFrame) -> DataFrame:
    """Give rows all columns of an event. Summaries no longer say who holds the task: its flips alone do."""
    there = set(rows.columns)
    given = {name: F.col(name) for name in there}
    if "held" in there:
        given["held"] = F.when(~summary(), F.col("held"))
    return rows.select(
        *(
            given.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name)
            for field in EVENT_ROW.fields
        ),
        ROUTINE,
    )


def _notable(events: DataFrame, level: DataFrame) -> DataFrame:
    """Keep events that are not routine: by `kinds`, findings, settings; `level`: `heartbeats.newest_levels`."""
    seldom = F.col("change").isNull() | ~F.col("change").isin(*FREQUENT, *HELD)
    rare = events.where(is_notable() & seldom)
    ids = [_counted(rare.where(row.where), row) for row in kinds()]
    wanted = reduce(DataFrame.unionByName, (*ids, _findings(rare, level), _settings(rare))).distinct()
    return rare.join(wanted, "id", "left_semi")


def _counted(rows: DataFrame, row: Keep) -> DataFrame:
    order = ("observed_at_us", "boot_id", "sequence", "id")
    newest = W.partitionBy(*row.key).orderBy(*(F.desc(name) for name in order))
    oldest = W.partitionBy(*row.key).orderBy(*order)
    ranked = rows.select(*dict.fromkeys((*row.key, *order))).withColumns(
        {"newest": F.row_number().over(newest), "oldest": F.row_number().over(oldest)}
    )
    return ranked.where((F.col("newest") <= row.newest) | (F.col("oldest") <= row.oldest)).select("id")


def _findings(rare: DataFrame, level: DataFrame) -> DataFrame:
    """Keep the last event of each open finding, and of resolved ones the newest of each kind.

    Rules go on from what is open; what is resolved is still confirmed by the fleet, or explains what is open: all of
    the same incarnation of a store is kept with it. What was resolved since the newest heartbeat is counted there.
    """
    said = last_local_findings(rare).withColumn("open", F.col("status") == Status.OPEN.value)
    place = ("namespace", "pod", "application_id", "task_id")
    newest = W.partitionBy(*place, "store", "detector", "open").orderBy(
        F.desc("observed_at_us"), "finding_id"
    )
    beside = F.col("identity").isNotNull() & F.max("open").over(W.partitionBy(*place, "identity"))
    ranked = said.withColumns({"rank": F.row_number().over(newest), "beside": beside})
    kept = ranked.join(level.select("namespace", "pod", "level_us"), ["namespace", "pod"], "left").where(
        F.col("open") | F.col("beside") | (F.col("rank") <= CLOSED) | (F.col("heard_us") >= F.col("level_us"))
    )
    word = ("namespace", "pod", "finding_id", "observed_at_us")
    rows = rare.where(F.col("kind") == Kind.FINDING.value)
    last = kept.withColumn("observed_at_us", F.col("heard_us")).select(*word)
    return rows.join(last, list(word), "left_semi").select("id")


def _settings(rare: DataFrame) -> DataFrame:
    """Keep each pod's newest report, and the newest of each key: a report may have only some of the keys."""
    rows = rare.where(F.col("kind") == Kind.CONFIGURATION.value).select(
        "id", *_APP_POD, "observed_at_us", "sequence", F.explode_outer("settings").alias("setting")
    )
    keyed = rows.select("*", F.when(F.col("setting.value").isNotNull(), F.col("setting.key")).alias("key"))
    order = (F.desc("observed_at_us"), F.desc("sequence"), F.col("id"))
    last = W.partitionBy(*_APP_POD).orderBy(*order)
    of_key = W.partitionBy(*_APP_POD, "key").orderBy(*order)
    ranked = keyed.withColumns({"last": F.rank().over(last), "of_key": F.rank().over(of_key)})
    return ranked.where((F.col("last") == 1) | (F.col("key").isNotNull() & (F.col("of_key") == 1))).select(
        "id"
    )


def _heard(counted: DataFrame, to_us: int) -> DataFrame:
    """Say how far each boot has come that is the last of its pod or reported within the last day.

    Its sequence counts as complete up to there: its gaps are in `unwatched`.

    Output columns: `HEARD`.
    """
    order = F.struct("slot", "last", "first_us")
    boots = counted.groupBy(*BOOT).agg(
        F.max_by(F.struct("node", "agent_version", "slot", "first_us"), order).alias("newest"),
        F.max("last_us").alias("last_us"), F.max("stop_us").alias("stop_us"),
        F.min("first").alias("first"), F.max("last").alias("last"),
        F.min_by("at_first_us", "first").alias("at_first_us"), F.max_by("at_last_us", "last").alias("at_last_us"),
        F.max("level_last").alias("level_last"),
        *(F.max_by(name, "level_last").alias(name) for name in ("level_us", "criticals", "warnings")),
        F.lit(None).alias("tasks"),  # not all events that name tasks are kept: their number is not compared
    )  # fmt: skip
    newest = W.partitionBy("namespace", "pod").orderBy(
        F.desc("last_us"), F.desc("at_last_us"), F.desc("last"), F.desc("boot_id")
    )
    events = (F.col("last") - F.col("first") + 1).alias("events")
    return (
        boots.withColumn("rank", F.row_number().over(newest))
        .where((F.col("rank") == 1) | (F.col("last_us") >= to_us - DAY_US))
        .select("*", "newest.*", events)
        .select(*HEARD.names)
    )


def _unwatched(read: DataFrame, earlier: Carried | None, to_us: int) -> DataFrame:
    """Collect the times that were not watched and are over; what lasts is found again by the next audit.

    Output columns: `UNWATCHED`.
    """
    rows = by_pods(Wide(read, read.limit(0), earlier), partial(_islands, to_us))
    return frame_of(read.sparkSession, rows, UNWATCHED)


def _islands(to_us: int, where: tuple[str, str], given: OfPod) -> Iterator[Row]:
    if not given.beats:
        return
    found = gaps.gaps_of(given.beats, given.torn, given.events, to_us, None)
    over = [x for x in found if x.to_us < to_us]
    whose: dict[tuple[str | None, str | None], list[Unwatched]] = defaultdict(list)
    for x in gaps.merged(where[1], over, given.unwatched):
        whose[x.application_id, x.task_id].append(x)
    for own in whose.values():
        own.sort(key=lambda x: x.from_us, reverse=True)
        rest = own[ISLANDS - 1 :]
        joined = rest[:1] and [
            rest[0]._replace(from_us=rest[-1].from_us, until_us=max(x.until_us for x in rest))
        ]
        yield from ({"namespace": where[0], **x._asdict()} for x in (*own[: ISLANDS - 1], *joined))
