"""What agents suspect about the content of stores, and what of it digests prove or refute.

A copy that differs from its changelog proves what its agent suspected of it before. One that is exact, whole, equal
and not written since refutes it: what the store was suspected to lack or to hold too much would show. Once the
application has written on, equality refutes nothing: a wrong value that it counts on is in store and changelog alike. A
suspicion about a whole task is refuted only if every store that the task has is equal. About the next start, locks or
files equality says nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from agent.contract.events import Confidence, Level, Status
from spark_rollup.bronze import snapshots
from spark_rollup.bronze.later import announce_segments
from spark_rollup.bronze.load import load
from spark_rollup.bronze.place import Place
from spark_rollup.columns import ROUTINE, TASK, is_routine, summary
from spark_rollup.config import is_bronze
from spark_rollup.judging.base import last_local_findings
from spark_rollup.verify.digests import Copy
from spark_rollup.verify.verdicts import Verdict, Word

ABOUT_CONTENT = (
    "carried-checkpoint", "changelog-truncated", "data-beyond-changelog", "false-clean-store", "interrupted-wipe",
    "lost-segment", "offset-beyond-durable", "resurrected-checkpoint", "skipped-eos-wipe", "skipped-record",
    "store-shrank", "unrestored-store",
)  # fmt: skip
"""Agents' detectors whose damage is in the content of a store, and lasts as long as the store does.

Not here: what is about files beside the store, what happened to a directory, processes and locks, and what a next start
would do (exposures). A detector that is not known here is never refuted.
"""

_HOME = (*TASK, "pod")
_HOMES = ", ".join(f"{name} string" for name in _HOME)

Home = tuple[str, str, str, str]
"""`_HOME`: a task on a pod."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """An agent's open finding, damage, suspected."""

    finding_id: str
    detector: str  # who suspects
    home: Home
    store: str | None  # store; None = the whole task
    identity: str | None  # rocksDB's IDENTITY of the incarnation; None = the finding names none
    opened_us: int
    stores: frozenset[str] = frozenset()
    """Stores that the task has had since, as its agent listed them; only if `store` is None."""


@dataclass(frozen=True, slots=True)
class Refuted:
    """Suspicions about one store, or one whole task, that are wrong, and the equal copies that show it."""

    suspicions: tuple[Suspicion, ...]
    equal: tuple[Verdict, ...]


def proved(judged: Iterable[Verdict], suspicions: Sequence[Suspicion]) -> dict[int, tuple[Suspicion, ...]]:
    """Say which suspicions each copy that surely differs proves, by the copy's number."""
    by_home = _by_home(suspicions)
    found = {}
    for one in judged:
        if one.word is Word.DIFFERS and one.source.doubt is None:
            found[one.source.copy] = tuple(
                suspicion
                for suspicion in by_home[_home(one.source)]
                if suspicion.store in (None, one.source.store)
                and suspicion.opened_us <= one.source.made_us
                and _is_of(suspicion, [one])
            )
    return found


def refuted(judged: Iterable[Verdict], suspicions: Sequence[Suspicion]) -> list[Refuted]:
    """Say which suspicions equality rules out."""
    equal: dict[Home, dict[str, Verdict]] = defaultdict(dict)
    for one in judged:
        if one.word is Word.EQUAL and one.source.is_settled:
            equal[_home(one.source)][one.source.store] = one
    found: dict[tuple[Home, str | None], list[Suspicion]] = defaultdict(list)
    shown: dict[tuple[Home, str | None], dict[int, Verdict]] = defaultdict(dict)
    for suspicion in suspicions:
        wanted = suspicion.stores if suspicion.store is None else {suspicion.store}
        there = equal[suspicion.home]
        copies = [there[name] for name in sorted(wanted) if name in there]
        is_whole = bool(wanted) and len(copies) == len(wanted)
        is_later = all(one.source.made_us >= suspicion.opened_us for one in copies)
        is_untouched = not any(_is_written_since(suspicion, one.source) for one in copies)
        if is_whole and is_later and is_untouched and _is_of(suspicion, copies):
            place = (suspicion.home, suspicion.store)
            found[place].append(suspicion)
            shown[place] |= {one.source.copy: one for one in copies}
    return [Refuted(tuple(several), tuple(shown[place].values())) for place, several in found.items()]


def _is_written_since(suspicion: Suspicion, copy: Copy) -> bool:
    """Return whether a file of a store is newer than the operation that is suspected."""
    return any(one.written_us > suspicion.opened_us for one in copy.databases)


def _is_of(suspicion: Suspicion, copies: Sequence[Verdict]) -> bool:
    """Return whether one of the copies is the incarnation that is suspected, and is judged."""
    if suspicion.identity is None:
        return True
    return any(
        database.identity == suspicion.identity and database.segment not in one.expired
        for one in copies
        for database in one.source.databases
    )


def _home(copy: Copy | Row) -> Home:
    return copy.namespace, copy.application_id, copy.task_id, copy.pod


def _by_home(suspicions: Iterable[Suspicion]) -> Mapping[Home, list[Suspicion]]:
    found: dict[Home, list[Suspicion]] = defaultdict(list)
    for one in suspicions:
        found[one.home].append(one)
    return found


def read(spark: SparkSession, source: Place, copies: Sequence[Copy], now_us: int) -> list[Suspicion]:
    """Read the suspicions about tasks that have digests; the newest snapshot before now spares the days before.

    Raises `UsageError`: bronze was made by an older version.
    """
    events = _events(spark, source, now_us)
    homes = spark.createDataFrame(sorted({_home(copy) for copy in copies}), _HOMES)
    said = last_local_findings(events.join(F.broadcast(homes), list(_HOME), "left_semi"))
    rows = said.where(
        (F.col("status") == Status.OPEN.value)
        & (F.col("level") == Level.DAMAGE.value)
        & (F.col("confidence") == Confidence.SUSPECTED.value)
        & F.col("detector").isin(*ABOUT_CONTENT)
    ).orderBy("opened_at_us", "finding_id")
    found = [
        Suspicion(x.finding_id, x.detector, _home(x), x.store, x.identity, x.opened_at_us)
        for x in rows.collect()
    ]
    return _with_stores(spark, events, found)


def _events(spark: SparkSession, source: Place, now_us: int) -> DataFrame:
    has_days = is_bronze(source) and bool(snapshots.days(source))
    loaded = load(spark, source, snapshots.reading(source, now_us) if has_days else snapshots.EVERYTHING)
    if not loaded.unique:
        announce_segments(loaded.events)
    events = loaded.events.drop("line")
    if ROUTINE not in events.columns:
        events = events.withColumn(ROUTINE, is_routine())
    return events.unionByName(loaded.carried.events) if loaded.carried else events


def _with_stores(spark: SparkSession, events: DataFrame, found: Sequence[Suspicion]) -> list[Suspicion]:
    """Add the stores of their tasks to suspicions about whole tasks."""
    whole = {one.home: one.opened_us for one in reversed(found) if one.store is None}
    if not whole:
        return list(found)
    asked = spark.createDataFrame([(*home, us) for home, us in whole.items()], f"{_HOMES}, since_us long")
    listed = (
        events.where(summary())
        .join(F.broadcast(asked), list(_HOME), "inner")
        .where(F.col("observed_at_us") >= F.col("since_us"))
        .select(*_HOME, F.explode("stores.store").alias("name"))
        .groupBy(*_HOME)
        .agg(F.collect_set("name").alias("names"))
    )
    names = {tuple(row[name] for name in _HOME): frozenset(row["names"]) for row in listed.collect()}
    return [
        replace(one, stores=names.get(one.home, frozenset())) if one.store is None else one for one in found
    ]
