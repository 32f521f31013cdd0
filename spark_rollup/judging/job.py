"""A large input: Spark thins it, and Python workers reduce and judge each pod and each application.

Rows are handed over pickled: that needs neither pandas nor pyarrow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pyspark import RDD, StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_rollup import facts
from spark_rollup.bronze import latest, unpacked
from spark_rollup.bronze.later import latest_minor
from spark_rollup.bronze.snapshots import Carried
from spark_rollup.columns import TASK
from spark_rollup.fleet import holds, reduce, sizes
from spark_rollup.fleet.application import Place
from spark_rollup.fleet.beats import STOPPING, Beat, Stretch
from spark_rollup.fleet.events import Event
from spark_rollup.fleet.meta import Row
from spark_rollup.fleet.reduce import TIMELINES, Question, Story
from spark_rollup.fleet.rows import Copy, Gap, Latest, Mark, Reading, Saved, Sighting
from spark_rollup.fleet.thin import OfApplication, OfPod
from spark_rollup.judging import copies
from spark_rollup.judging.told import Told
from spark_rollup.schemas import TIMELINE
from spark_rollup.spark.materialize import materialize, small
from spark_rollup.spark.py4j_cache import run_parallel

OF_POD: Mapping[str, Callable[..., Any]] = {"beats": Beat, "torn": Stretch, "events": Event}
"""Field of `OfPod` -> its rows."""

OF_APPLICATION: Mapping[str, Callable[..., Any]] = {
    "events": Event, "marks": Mark, "points": holds.Point, "sightings": Sighting, "readings": Reading,
    "latest": Latest, "saved": Saved, "copies": Copy, "left_out": Gap,
}  # fmt: skip
"""Field of `OfApplication` -> its rows."""

SAID = "said"

Part = tuple[str, Any]
"""Field and row."""

Asked = tuple[str, str, str, list[int]]
"""A task in question: namespace, application, task, and `Task.edges`."""


@dataclass(frozen=True, slots=True)
class Wide:
    """Events where Spark has them."""

    events: DataFrame  # `EVENT_ROW` and routine, one row per id: those that were read
    quarantine: DataFrame  # `QUARANTINE`
    carried: Carried | None = None  # what is kept of other days
    unfinished: Mapping[str, str] = field(default_factory=dict)  # see `unpacked.unfinished`
    application: str | None = None  # the only one that is asked about; None = all are

    def last_words(self) -> dict[latest.Pod, latest.Last]:
        """Say what each pod reported last."""
        at = F.col("observed_at_us")
        stop_us = F.max(F.when(F.col("phase") == STOPPING, at))
        ends = (F.max(at).alias("at_us"), F.min(at).alias("first_us"), stop_us.alias("stop_us"))
        return {
            (str(row["namespace"]), str(row["pod"])): latest.Last(
                int(row["at_us"]), int(row["first_us"]), row["stop_us"] == row["at_us"]
            )
            for row in self.events.groupBy("namespace", "pod").agg(*ends).collect()
        }

    def began_us(self, pod: latest.Pod, after_us: int) -> int:
        """Return the first time after a given one that a pod reported."""
        at = F.col("observed_at_us")
        of_pod = (F.col("namespace") == pod[0]) & (F.col("pod") == pod[1]) & (at > after_us)
        row = self.events.where(of_pod).agg(F.min(at).alias("at_us")).first()
        return int(row["at_us"]) if row else after_us

    def latest_minor(self) -> int | None:
        """Find the latest minor version of the contract that is not known here."""
        row = self.events.agg(latest_minor("schema_version").alias("minor")).first()
        return row["minor"] if row else None

    def complaint(self) -> Mapping[str, object] | None:
        """Return the first line that could not be used."""
        row = self.quarantine.orderBy("file", "line").first()
        return row.asDict() if row else None

    def until(self, as_of_us: int) -> Wide:
        """Leave out what is later."""
        return self._where(F.col("observed_at_us") <= as_of_us, F.col("first_us") <= as_of_us)

    def about(self, namespace: str, application: str) -> Wide:
        """Leave out other namespaces, and what is about other applications: that their agents spoke counts."""
        there = F.col("namespace") == namespace
        return replace(self._where(there, there), application=application)

    def _where(self, events: Column, heard: Column) -> Wide:
        carried = self.carried and Carried(self.carried.events.where(events), self.carried.heard.where(heard))
        return replace(self, events=self.events.where(events), carried=carried)

    def tasks(self) -> set[tuple[str, str, str, str]]:
        """List namespace, application, task and pod of all that is known of tasks."""
        names = ("namespace", "application_id", "task_id", "pod")
        known = self.all_events().where(F.col("task_id").isNotNull()).select(*names).distinct()
        return {(str(row[0]), row[1] or "", str(row[2]), str(row[3])) for row in known.collect()}

    def stories(self, asked: Question) -> list[Story]:
        """Reduce what is known of pods."""
        return _stories(self, asked, slots_of(self))

    def told(self, asked: Question) -> Told:
        """Tell all there is to tell."""
        return _told(self, asked)

    def all_events(self) -> DataFrame:
        """Give the events, and those that were kept of other days."""
        return self.events.unionByName(self.carried.events) if self.carried else self.events


def unfinished_of(wide: Wide) -> dict[str, str]:
    """List the files of the quarantine that keep the end of what an agent said, each with its pod."""
    rows = wide.quarantine.where(F.col("reason").isin(*unpacked.NOT_WHOLE)).select("file", "reason").collect()
    files = [(str(row["file"]), str(row["reason"])) for row in rows]
    whose = ("namespace", "pod", "pod_uid", "boot_id")
    ends = wide.events.select(*whose, F.col("sequence").alias("last"))
    if wide.carried:
        ends = ends.unionByName(wide.carried.heard.select(*whose, "last"))
    heard = ends.groupBy(*whose).agg(F.max("last").alias("last")).collect() if files else []
    return unpacked.unfinished(files, map(tuple, heard))


def _story(asked: Question, where: tuple[str, str], given: OfPod) -> Iterator[Story]:
    found = reduce.story(where, given, asked)
    if found:
        yield found


def _stories(wide: Wide, asked: Question, slots: DataFrame) -> list[Story]:
    frames = pod_frames(wide, slots)
    return by_pods(wide, frames, partial(_story, replace(asked, cut=wide.unfinished)))


def by_pods(
    wide: Wide, frames: Mapping[str, DataFrame], work: Callable[[tuple[str, str], OfPod], Iterator[Any]]
) -> list[Any]:
    """Give each pod's thinned rows (by field of `OfPod`) to a worker, and collect what it makes of them."""
    context = wide.events.sparkSession.sparkContext
    parts = [frame.rdd.map(partial(_part, field)) for field, frame in frames.items()]
    grouped = context.union(parts).groupByKey(partitions(wide))
    return grouped.flatMap(partial(_of_pod, work)).collect()


def partitions(wide: Wide) -> int:
    """Return how many parts rows are grouped in; of a union Spark would take the sum of all."""
    return int(str(wide.events.sparkSession.conf.get("spark.sql.shuffle.partitions")))


def slots_of(wide: Wide) -> DataFrame:
    """Fold all events, those that were kept too (`facts.slots`)."""
    return materialize(facts.slots(wide.all_events()))


def counted(wide: Wide) -> Mapping[str, DataFrame]:
    """Count what agents said: by field of `OfPod`, namespace, pod, and the columns of its rows."""
    read, carried = facts.beats(wide.events), wide.carried
    beats = materialize(read.unionByName(carried.heard) if carried else read)
    frames = {"beats": beats, "torn": facts.torn(wide.all_events(), beats)}
    return {
        field: frame.select("namespace", "pod", *OF_POD[field]._fields)  # type: ignore[attr-defined]
        for field, frame in frames.items()
    }


def pod_frames(wide: Wide, slots: DataFrame) -> Mapping[str, DataFrame]:
    """Thin out what is about pods: by field of `OfPod`, namespace, pod, and the columns of its rows."""
    tasks = slots.where(F.col("task_id").isNotNull()).groupBy("namespace", "pod")
    return {
        **counted(wide),
        "events": facts.of_pods(wide.all_events()).select("namespace", "pod", *Event._fields),
        "applications": facts.members(slots),
        "tasks": tasks.agg(F.count_distinct("application_id", "task_id").alias("tasks")),
    }


def _part(field: str, row: Iterable[Any]) -> tuple[Place, Part]:
    """Place a row; it travels as a plain tuple: pickling a named one is slow."""
    namespace, name, *rest = row
    return (namespace, name), (field, tuple(rest))


def _of_pod(
    work: Callable[[tuple[str, str], OfPod], Iterator[Any]], group: tuple[Any, Iterable[Part]]
) -> Iterator[Any]:
    given = OfPod()
    for name, row in group[1]:
        if name == "applications":
            given.applications.add(*row)
        elif name == "tasks":
            (given.tasks,) = row
        else:
            getattr(given, name).append(OF_POD[name](*row))
    yield from work(group[0], given)


@dataclass(frozen=True, slots=True)
class _Common:
    """What every application is judged with: small, and sent to each worker."""

    pods: Mapping[str, Mapping[str, Any]]
    asked: Question


def _told(wide: Wide, asked: Question) -> Told:
    spark = wide.events.sparkSession
    context, slots = spark.sparkContext, slots_of(wide)
    stories = _stories(wide, asked, slots)
    asked = reduce.believing(asked, stories)
    common = context.broadcast(_Common(reduce.by_namespace(stories), asked))
    said = reduce.said_of(stories)
    known: list[tuple[Place, Part]] = [(place, (SAID, x)) for place, own in said.items() for x in own]
    known += [(place, (SAID, None)) for place in {*reduce.places(common.value.pods), *(asked.proofs or ())}]
    name = F.col("application_id")
    is_asked = name.isNull() | (name == wide.application) if wide.application else F.lit(True)
    thin, number = Thin(wide.all_events().where(is_asked), slots.where(is_asked)), partitions(wide)

    def placed(frames: Mapping[str, DataFrame], *more: RDD[tuple[Place, Part]]) -> RDD[tuple[Place, Part]]:
        parts = [frame.rdd.map(partial(_part, field)) for field, frame in frames.items()]
        return context.union([*parts, *more]).partitionBy(number)

    first = placed(thin.first(), context.parallelize(known)).persist(StorageLevel.MEMORY_AND_DISK)
    tasks = first.groupByKey(number).flatMap(lambda group: _questioned(common.value, group)).collect()
    # in place already, so only what is new is moved
    together = first.union(placed(thin.rest(tasks))).groupByKey(number)
    found = together.flatMap(lambda group: _of_group(common.value, group))
    found = found.persist(StorageLevel.MEMORY_AND_DISK)
    rows = reduce.with_pods(found.filter(lambda one: one[0] != TIMELINES).collect(), stories, asked)
    names = TIMELINE.names
    lanes = found.filter(lambda one: one[0] == TIMELINES).map(lambda one: tuple(one[1][x] for x in names))
    return Told(rows, spark.createDataFrame(lanes, TIMELINE).unionByName(thin.drawn(tasks)))


def _given(group: tuple[Place, Iterable[Part]]) -> tuple[OfApplication, list[Any]]:
    given, said = OfApplication(), []
    for name, row in group[1]:
        if name != SAID:
            getattr(given, name).append(OF_APPLICATION[name](*row))
        elif row is not None:
            said.append(row)
    return given, said


def _questioned(common: _Common, group: tuple[Place, Iterable[Part]]) -> Iterator[Asked]:
    place, (given, said) = group[0], _given(group)
    if place[1] is not None:
        app, tasks = reduce.application(place, given, said, common.pods.get(place[0], {}), common.asked)
        yield from ((place[0], place[1], task, app.task(task).edges) for task in tasks)


def _of_group(common: _Common, group: tuple[Place, Iterable[Part]]) -> Iterator[tuple[str, Row]]:
    place, (given, said) = group[0], _given(group)
    app, tasks = reduce.application(place, given, said, common.pods.get(place[0], {}), common.asked)
    yield from reduce.tell(app, tasks, given, common.asked)


class Thin:
    """What is about applications, thinned: by field of `OfApplication`, each with namespace and application."""

    def __init__(self, events: DataFrame, slots: DataFrame) -> None:
        """Thin out what all tasks need, in what is computed once."""
        self._events, self._slots = events, slots
        of_applications, marks, single, windowed = _computed(
            facts.of_applications(events),
            facts.marks(events),
            copies.single_stores(slots),
            copies.windowed(slots),
        )
        frequent = F.col("change").isin(*holds.FREQUENT)
        self._close = marks.where(frequent)
        (points,) = _computed(facts.points(events, slots, marks))
        self._first = {"events": of_applications, "marks": marks.where(~frequent), "points": points}
        self._saved = copies.saved(marks)
        # without any, nothing is read
        self._segments = copies.segments(events.join(small(windowed), list(TASK), "left_semi"))
        self._anchors = copies.anchors(marks, single)
        (self._curve,) = _computed(copies.curve(slots, self._segments.unionByName(self._anchors)))

    def first(self) -> Mapping[str, DataFrame]:
        """Give what says which tasks are in question."""
        return _selected(self._first)

    def rest(self, tasks: Sequence[Asked]) -> Mapping[str, DataFrame]:
        """Give all else, with the readings and frequent marks of tasks in question."""
        asked, (ends,) = F.broadcast(self._asked(tasks)), _computed(copies.latest(self._curve))
        several = ends.groupBy(*TASK, "store").agg(F.count("*").alias("pods")).where(F.col("pods") > 1)
        whole = copies.whole_stores(self._events)
        readings = whole.unionByName(self._segments).unionByName(self._anchors)
        folded, close, anchors = _computed(
            copies.folded(readings, ends, asked),
            self._close.join(asked, list(TASK), "left_semi"),
            self._anchors.join(several, [*TASK, "store"], "left_semi"),
        )
        (cut,) = _computed(copies.left_out(folded, close, asked))
        more = {
            "marks": copies.newest(close, cut),
            "sightings": facts.sightings(self._slots),
            "readings": copies.newest(folded, cut),
            "left_out": cut,
            "latest": ends.where(F.col("task_id").isNotNull()),
            "saved": self._saved,
            "copies": copies.settled_copies(whole, small(anchors), self._slots, self._segments),
        }
        return _selected(more)

    def drawn(self, tasks: Sequence[Asked]) -> DataFrame:
        """Draw the curve of tasks that are not in question: `TIMELINE`, as `lanes` draws that of a small input."""
        return copies.drawn(self._curve, self._asked(tasks)).select(*TIMELINE.names)

    def _asked(self, tasks: Sequence[Asked]) -> DataFrame:
        """List them, each with how many of its rows a worker is given."""
        number = Counter(x[:2] for x in tasks)
        rows = [(*x, sizes.most_rows(number[x[:2]])) for x in tasks]
        names = (*(f"{name} string" for name in TASK), "edges array<bigint>", "most bigint")
        return self._curve.sparkSession.createDataFrame(rows, ", ".join(names))


def _selected(frames: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    return {
        field: frame.select("namespace", "application_id", *OF_APPLICATION[field]._fields)  # type: ignore[attr-defined]
        for field, frame in frames.items()
    }


def _computed(*frames: DataFrame) -> list[DataFrame]:
    return run_parallel(frames[0].sparkSession, materialize, frames)
