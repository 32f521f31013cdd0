"""Stories that go on for days, and what is kept of days that are over."""

from __future__ import annotations

import importlib
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent.contract.events import Kind
from spark_rollup.fleet import keep
from spark_rollup.fleet.beats import Beat, beats, torn
from spark_rollup.fleet.events import Event
from tests.spark_rollup.support import stretched
from tests.spark_rollup.support.drawn import fleet_of
from tests.spark_rollup.support.fleet import HORIZON_S, STORIES, Fleet
from tests.spark_rollup.support.stretched import DAY_US, FIRST_US, S
from tests.support.recorded_fleet import replayed

RETURN = "kafka-8187-stage2-2.0.1"
"""Stretched where its directories are gone."""

Told = Sequence[stretched.Event]


def kept_of(events: Sequence[Event], before_us: int) -> tuple[list[Event], list[Beat]]:
    """Choose what is kept of all days before a time, as `intake.closed` does: events, and what was said."""
    tasks: dict[tuple[object, ...], list[Event]] = defaultdict(list)
    pods: dict[tuple[object, ...], list[Event]] = defaultdict(list)
    asked = set()
    for x in events:
        day = x.observed_at_us // DAY_US
        if x.observed_at_us < before_us:
            pods[x.namespace, x.pod, day].append(x)
            tasks[x.namespace, x.application_id, x.task_id, day].append(x)
        if x.kind == Kind.FINDING.value:
            asked |= {(x.namespace, x.application_id, x.task_id, one) for one in (day, day - 1)}
    chosen: set[str] = set()
    heard: list[Beat] = []
    for key, own in tasks.items():
        if key[2] is not None:
            chosen |= {x.id for x in own} if key in asked else keep.of_task(own)
    for own in pods.values():
        chosen |= keep.of_pod([x for x in own if x.task_id is None])
        counted = beats(own)
        heard += keep.runs(counted, torn(own, counted))
    return [x for x in events if x.id in chosen], heard


def told(fleet: Fleet) -> Told:
    """Give what a fleet says."""
    return [json.loads(line)["data"] for line in fleet.lines()]


def over_midnight(events: Told, second: float) -> Told:
    """Move a story so that the third day begins at one of its seconds; nothing else changes."""
    begin = min(event["observed_at_us"] for event in events)
    shift_us = (FIRST_US // DAY_US + 2) * DAY_US - round(second * S) - begin
    return [stretched.shifted(event, lambda at_us: at_us + shift_us) for event in events]


def fleets(number: int) -> Iterator[tuple[str, Told]]:
    """Draw fleets: each over a midnight, and in three pieces on three days."""
    for index in range(number):
        events = told(fleet_of(f"drawn-{index}"))
        yield f"drawn-{index} in pieces", stretched.stretched(events, (0.3, 0.6), beats=False)
        yield f"drawn-{index}", over_midnight(events, HORIZON_S * (0.2 + 0.1 * (index % 7)))


def of_all_rules() -> dict[str, Fleet]:
    """Give what the tests of all rules tell."""
    for path in sorted((Path(__file__).parents[1] / "correlate").glob("test_*.py")):
        importlib.import_module(f"tests.spark_rollup.correlate.{path.stem}")
    return dict(STORIES)


def stories() -> Iterator[tuple[str, Told]]:
    """Give what the tests of all rules tell, with a midnight anywhere in it, and three that last for days."""
    for name, fleet in of_all_rules().items():
        events = told(fleet)
        for part in range(5):
            yield f"{name} {part}", over_midnight(events, HORIZON_S * (0.1 + 0.2 * part))
    for tell in (thawed, left_alone, cloned_in_turn, both_at_work):
        fleet = Fleet(tell.__name__)
        tell(fleet)
        yield tell.__name__, stretched.stretched(told(fleet), (0.3, 0.6, 0.9))


def recording(trace: Path, work: Path) -> Told:
    """Stretch a recording over four days."""
    replayed([trace], work)
    events = stretched.events_below(work)
    return stretched.stretched(events, _absence(events) if trace.name == RETURN else (0.25, 0.5, 0.75))


def _absence(events: Told) -> tuple[float, float]:
    """Find where the first pod's directories are gone; two days pass there."""
    begin, end = (pick(event["observed_at_us"] for event in events) for pick in (min, max))
    gone = [e for e in events if e.get("change") == "task-deleted" and e["pod"].endswith("pod-a")]
    cut = (max(event["observed_at_us"] for event in gone) + S // 100 - begin) / (end - begin)
    return cut, cut


def thawed(fleet: Fleet) -> None:
    """A zombie that stands still for a day, flushes again on the third day, and goes on holding the task."""
    a, b = fleet.pod("pod-a"), fleet.pod("pod-b")
    a.configures(1, "3.9.2", num_standby_replicas=0, session_timeout_ms=10_000)
    a.holds("0_0", 5).writes_checkpoint("0_0", 50, offset=5000, puts=5000)
    b.holds("0_0", 100)
    for at in range(110, 890, 10):
        b.changes("store-flushed", "0_0", at, store="s", puts=300 * at)
        if at > 300:
            a.changes("store-flushed", "0_0", at + 1, store="s", puts=5000 + at)


def left_alone(fleet: Fleet) -> None:
    """A zombie whose pod ends on the second day; shortly before that the other one gets beyond it, and works on."""
    a, b = fleet.pod("pod-a", ends_s=500), fleet.pod("pod-b")
    a.configures(1, "3.9.2", num_standby_replicas=0, session_timeout_ms=10_000)
    a.holds("0_0", 5).writes_checkpoint("0_0", 50, offset=5000, puts=5000)
    a.measures("0_0", 495, offset=5000, puts=5000)
    b.holds("0_0", 100)
    for at in range(110, 890, 10):
        b.changes("store-flushed", "0_0", at, store="s", puts=40 * at)
        b.writes_checkpoint("0_0", at + 1, offset=40 * at, puts=40 * at)


def cloned_in_turn(fleet: Fleet) -> None:
    """Two pods that show the same store on the first day, and after it another one only."""
    pods = [fleet.pod(name) for name in ("pod-a", "pod-b")]
    for at in range(10, 890, 10):
        for pod in pods:
            pod.measures("0_0", at, identity="first" if at < 200 else "second")


def both_at_work(fleet: Fleet) -> None:
    """Two pods that hold a task and work on it: none of them stands still, not even for a minute."""
    a, b = fleet.pod("pod-a"), fleet.pod("pod-b")
    a.configures(1, "3.9.2", num_standby_replicas=0, session_timeout_ms=10_000)
    a.holds("0_0", 5)
    b.holds("0_0", 100)
    for at in range(10, 800):
        a.changes("store-flushed", "0_0", at, store="s", puts=300 * at)
        if at > 100:
            b.changes("store-flushed", "0_0", at, store="s", puts=400 * at)
