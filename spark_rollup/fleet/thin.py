"""What events come to before anything is asked: few rows of each pod, and of each application.

Small inputs are thinned here; of large ones Spark gives the same rows (`facts`). Whichever did it, the same is
made of them (`reduce`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from agent.contract.events import Change, Kind
from spark_rollup.fleet import beats as beating
from spark_rollup.fleet import holds, sizes
from spark_rollup.fleet.application import Place
from spark_rollup.fleet.beats import Beat, Stretch
from spark_rollup.fleet.events import Event
from spark_rollup.fleet.rows import Copy, Gap, Latest, Mark, Reading, Saved, Sighting


@dataclass(slots=True)
class OfPod:
    """What is known of one pod."""

    beats: list[Beat] = field(default_factory=list)  # what its agent said, counted
    torn: list[Stretch] = field(default_factory=list)  # `beats.torn`
    events: list[Event] = field(default_factory=list)
    """Drops, findings, and heartbeats that name blind intervals or what is open."""
    applications: set[str] = field(default_factory=set)  # named by any of its events
    tasks: int = 0  # how many tasks any of its events names


@dataclass(slots=True)
class OfApplication:
    """What is known of one application."""

    events: list[Event] = field(default_factory=list)
    """What started and ended its processes, and reports of its settings."""
    marks: list[Mark] = field(default_factory=list)
    """What changed on disk; of tasks not in question without `holds.FREQUENT`"""
    points: list[holds.Point] = field(default_factory=list)  # `holds.points`
    sightings: list[Sighting] = field(default_factory=list)  # what was before an agent's eyes
    readings: list[Reading] = field(default_factory=list)  # of tasks in question
    curve: list[sizes.Point] = field(default_factory=list)  # `sizes.curve` of all tasks
    latest: list[Latest] = field(default_factory=list)  # `sizes.latest` of all tasks
    saved: list[Saved] = field(default_factory=list)  # `sizes.saved` of all tasks
    copies: list[Copy] = field(default_factory=list)  # `sizes.settled_copies`
    left_out: list[Gap] = field(default_factory=list)  # `sizes.left_out`, where Spark did it


def of_pods(
    read: Iterable[Event], kept: Iterable[Event] = (), heard: Iterable[Beat] = ()
) -> Mapping[tuple[str, str], OfPod]:
    """Thin out what is about pods: events that are read, and events and counts that are kept of days that are over."""
    found: dict[tuple[str, str], OfPod] = defaultdict(OfPod)
    own: dict[tuple[str, str], list[Event]] = defaultdict(list)
    tasks: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for x in read:
        own[x.namespace, x.pod].append(x)
    for pod, events in own.items():
        found[pod].beats += beating.beats(events)
    for beat in heard:
        found[beat.namespace, beat.pod].beats.append(beat)
    for x in kept:
        own[x.namespace, x.pod].append(x)
    for pod, events in own.items():
        one = found[pod]
        one.torn = list(beating.torn(events, one.beats))
        one.events = [x for x in events if is_of_pod(x)]
        for x in events:
            one.applications |= set(named_by(x))
            if x.application_id is not None and x.task_id is not None:
                tasks[pod].add((x.application_id, x.task_id))
        one.tasks = len(tasks[pod])
    return found


def is_of_pod(event: Event) -> bool:
    """Return whether an event says of its pod more than that its agent was there."""
    is_told = not event.routine and event.kind in (Kind.DROP.value, Kind.HEARTBEAT.value, Kind.FINDING.value)
    return is_told or beating.names_open(event)


def named_by(event: Event) -> Iterable[str]:
    """List the applications that an event names."""
    if event.application_id is not None:
        yield event.application_id
    if event.kind == Kind.HEARTBEAT.value:
        yield from filter(None, event.applications or ())


def of_applications(events: Iterable[Event]) -> Mapping[Place, OfApplication]:
    """Thin out what is about applications."""
    own: dict[Place, list[Event]] = defaultdict(list)
    for x in events:
        own[x.namespace, x.application_id].append(x)
    return {place: _of_application(inside) for place, inside in own.items()}


def _of_application(events: list[Event]) -> OfApplication:
    marks, readings = list(holds.marks_of(events)), sizes.readings_of(events)
    curve = sizes.curve(readings)
    return OfApplication(
        [x for x in events if is_of_application(x)],
        marks,
        list(holds.points(events)),
        sightings(events),
        readings,
        curve,
        list(sizes.latest(curve)),
        list(sizes.saved(marks)),
        list(sizes.settled_copies(readings)),
    )


def is_of_application(event: Event) -> bool:
    """Return whether an event is about all of its application on a pod."""
    process = (Change.PROCESS_STARTED.value, Change.PROCESS_ENDED.value)
    return not event.routine and (event.kind == Kind.CONFIGURATION.value or event.change in process)


def sightings(events: Iterable[Event]) -> list[Sighting]:
    """Find when each boot of an agent had a process id or a store's IDENTITY before its eyes.

    Within one boot a volume can be neither attached nor detached, so between two sightings the thing was there.
    """
    times: dict[tuple[str, ...], tuple[int, int]] = {}
    what: dict[tuple[str, ...], Sighting] = {}
    for x in events:
        for thing in things(x):
            key = (x.pod, x.pod_uid, x.boot_id, *(part or "" for part in thing))
            from_us, to_us = times.get(key, (x.observed_at_us, x.observed_at_us))
            times[key] = min(from_us, x.observed_at_us), max(to_us, x.observed_at_us)
            what[key] = Sighting(*thing, x.pod, 0, 0)
    return [what[key]._replace(from_us=from_us, to_us=to_us) for key, (from_us, to_us) in times.items()]


def things(event: Event) -> Iterator[tuple[str, str, str | None, str | None]]:
    """List the process id and the IDENTITYs that an event shows: what, key, task, store."""
    if event.process_id is not None:
        yield "process", event.process_id, None, None
    if event.kind == Kind.TRANSITION.value and event.identity is not None and event.task_id is not None:
        yield "store", event.identity, event.task_id, event.store
    for part in event.stores or ():
        if part.identity is not None:
            yield "store", part.identity, event.task_id, part.store
