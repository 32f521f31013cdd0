"""A small input: Spark reads it, and all that follows is plain Python on the driver."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from agent.contract.codec import minor_of
from agent.contract.events import SCHEMA_MINOR
from spark_rollup.bronze import latest
from spark_rollup.bronze.load import Loaded
from spark_rollup.bronze.snapshots import Carried
from spark_rollup.bronze.unpacked import unfinished
from spark_rollup.columns import ROUTINE, is_routine
from spark_rollup.fleet import reduce, thin
from spark_rollup.fleet.beats import STOPPING, Beat
from spark_rollup.fleet.events import Event
from spark_rollup.fleet.meta import Row
from spark_rollup.fleet.reduce import Question, Story
from spark_rollup.judging.told import Told
from spark_rollup.spark.py4j_cache import run_parallel


@dataclass(frozen=True, slots=True)
class Plain:
    """Events on the driver."""

    events: Sequence[Event]  # those that were read, one of each id
    quarantine: Sequence[Row] = ()  # `QUARANTINE`
    kept: Sequence[Event] = ()  # those that are kept of other days
    heard: Sequence[Beat] = ()  # what was said on those days, counted
    unfinished: Mapping[str, str] = field(default_factory=dict)  # see `unpacked.unfinished`
    application: str | None = None  # the only one that is asked about; None = all are

    def last_words(self) -> dict[latest.Pod, latest.Last]:
        """Say what each pod reported last."""
        times: dict[latest.Pod, list[int]] = defaultdict(list)
        stops: dict[latest.Pod, int] = {}
        for x in self.events:
            pod = (x.namespace, x.pod)
            times[pod].append(x.observed_at_us)
            if x.phase == STOPPING:
                stops[pod] = max(stops.get(pod, 0), x.observed_at_us)
        return {
            pod: latest.Last(max(known), min(known), stops.get(pod) == max(known))
            for pod, known in times.items()
        }

    def began_us(self, pod: latest.Pod, after_us: int) -> int:
        """Return the first time after a given one that a pod reported."""
        times = (x.observed_at_us for x in self.events if (x.namespace, x.pod) == pod)
        return min((at_us for at_us in times if at_us > after_us), default=after_us)

    def latest_minor(self) -> int | None:
        """Find the latest minor version of the contract that is not known here."""
        minors = {minor_of(version) for version in {x.schema_version or "" for x in self.events}}
        return max((minor for minor in minors if minor > SCHEMA_MINOR), default=None)

    def complaint(self) -> Mapping[str, object] | None:
        """Return the first line that could not be used."""
        order = sorted(self.quarantine, key=lambda row: (str(row["file"] or ""), str(row["line"] or "")))
        return order[0] if order else None

    def until(self, as_of_us: int) -> Plain:
        """Leave out what is later."""
        events, kept = (
            [x for x in rows if x.observed_at_us <= as_of_us] for rows in (self.events, self.kept)
        )
        return replace(
            self, events=events, kept=kept, heard=[x for x in self.heard if x.first_us <= as_of_us]
        )

    def about(self, namespace: str, application: str) -> Plain:
        """Leave out other namespaces, and what is about other applications: that their agents spoke counts."""
        events, kept = ([x for x in rows if x.namespace == namespace] for rows in (self.events, self.kept))
        heard = [x for x in self.heard if x.namespace == namespace]
        return replace(self, events=events, kept=kept, heard=heard, application=application)

    def tasks(self) -> set[tuple[str, str, str, str]]:
        """List namespace, application, task and pod of all that is known of tasks."""
        return {
            (x.namespace, x.application_id or "", x.task_id, x.pod)
            for x in (*self.events, *self.kept)
            if x.task_id is not None
        }

    def stories(self, asked: Question) -> list[Story]:
        """Reduce what is known of pods."""
        pods, asked = thin.of_pods(self.events, self.kept, self.heard), replace(asked, cut=self.unfinished)
        return [one for where, given in pods.items() if (one := reduce.story(where, given, asked))]

    def told(self, asked: Question) -> Told:
        """Tell all there is to tell."""
        there = (None, self.application)
        own = [x for x in (*self.events, *self.kept) if not self.application or x.application_id in there]
        applications = thin.of_applications(own)
        return Told(reduce.tables(self.stories(asked), applications, asked))


def collected(loaded: Loaded) -> Plain:
    """Bring an input to the driver: of events that came more than once the one with the smallest text."""
    names = () if loaded.unique else ("line",)
    carried = _carried(loaded.carried) if loaded.carried else []
    told, *frames = run_parallel(
        loaded.events.sparkSession,
        lambda frame: frame.collect(),
        [_events(loaded.events, *names), loaded.quarantine, *carried],
    )
    if not loaded.unique:
        told = list({row[0]: row for row in sorted(told, key=_by_text, reverse=True)}.values())
    events = [Event(*row[: len(Event._fields)]) for row in told]
    quarantine, kept, heard = [*frames, [], []][:3]
    beats = [Beat(*row) for row in heard]
    said = {(x.namespace, x.pod, x.pod_uid, x.boot_id, x.sequence) for x in events}
    said |= {(x.namespace, x.pod, x.pod_uid, x.boot_id, x.last) for x in beats}
    return Plain(
        events,
        [row.asDict(recursive=True) for row in quarantine],
        [Event(*row) for row in kept],
        beats,
        unfinished(((str(row["file"]), str(row["reason"])) for row in quarantine), said),
    )


def _by_text(row: Any) -> str:
    return str(row[-1])


def _events(events: DataFrame, *more: str) -> DataFrame:
    routine = F.col(ROUTINE) if ROUTINE in events.columns else is_routine().alias(ROUTINE)
    return events.select(*(routine if name == ROUTINE else name for name in Event._fields), *more)


def _carried(carried: Carried) -> list[DataFrame]:
    return [_events(carried.events), carried.heard.select(*Beat._fields)]
