"""Who held a task when, and when each Streams process lived. All times are microseconds since the epoch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from agent.contract.events import Change, Kind
from spark_rollup.fleet.events import MICROS, Event
from spark_rollup.fleet.rows import Hold, Life, Mark

FREQUENT = (Change.CHECKPOINT_WRITTEN.value, Change.STORE_FLUSHED.value)
"""Transitions that every working task makes with every commit."""

CLEANER_MARGIN_US = 2 * MICROS
"""A lock that goes free this shortly before or after a cleaner deleted the directory was the cleaner's own."""

_HELD = {
    Change.TASK_HELD.value: True,
    Change.TASK_RELEASED.value: False,
    Change.TASK_DELETED.value: False,
}
_CLEANER = "cleaner-walk"


class Point(NamedTuple):
    """A task was seen held, or free, on a pod."""

    task_id: str
    pod: str
    observed_at_us: int
    boot_id: str
    sequence: int
    now_held: bool


def points(events: Iterable[Event]) -> Iterator[Point]:
    """List who was seen to hold what when, from `task-held`, `task-released` and the summaries between them."""
    for x in events:
        held = held_by(x)
        if x.task_id is not None and held is not None:
            yield Point(x.task_id, x.pod, x.observed_at_us, x.boot_id, x.sequence, held)


def held_by(event: Event) -> bool | None:
    """Return whether an event shows its task held on its pod; None = it does not say."""
    if event.routine:
        return event.held if event.is_summary else None
    return _HELD.get(event.change or "") if event.kind == Kind.TRANSITION.value else None


def holders(
    seen: Iterable[Point],
    marks: Iterable[Mark],
    last_us: Mapping[str, int],
    gone: Mapping[tuple[str, str], int],
) -> Iterator[Hold]:
    """Find who held a task when; `last_us`: when each pod was last heard; `gone`: see `whereabouts.gone`.

    A holder is visible through an open RocksDB or a held task lock; a task whose locks no agent can see has no row.
    The cleaner takes the lock of a directory that it deletes: such an interval has `cleaner` set, it is no owner.
    """
    copies: dict[tuple[str, str], list[Point]] = defaultdict(list)
    for x in seen:
        copies[x.task_id, x.pod].append(x)
    cleaned: dict[tuple[str, str], list[int]] = defaultdict(list)
    for mark in marks:
        if mark.change == Change.TASK_DELETED.value and mark.shape == _CLEANER:
            cleaned[mark.task_id, mark.pod].append(mark.at_us)
    for (task, pod), own in copies.items():
        own.sort(key=lambda x: (x.observed_at_us, x.boot_id, x.sequence))
        flips = [
            x
            for before, x in zip([None, *own], own, strict=False)
            if not before or before.now_held != x.now_held
        ]
        for x, after in zip(flips, [*flips[1:], None], strict=False):
            if x.now_held and pod in last_us:
                end_us = gone.get((task, pod), last_us[pod])
                from_us, to_us = x.observed_at_us, after.observed_at_us if after else end_us
                cleaner = after is not None and any(
                    at_us >= from_us and abs(at_us - to_us) <= CLEANER_MARGIN_US
                    for at_us in cleaned[task, pod]
                )
                yield Hold(task, pod, from_us, to_us, after is None and (task, pod) not in gone, cleaner)


def marks_of(events: Iterable[Event]) -> Iterator[Mark]:
    """List what changed on disk, with the artefact's own time where that is earlier than the reading."""
    for x in events:
        if x.kind == Kind.TRANSITION.value and x.task_id is not None and not x.routine:
            yield Mark(
                x.task_id, x.pod, x.at_us, x.observed_at_us, x.sequence, x.change or "", x.store, x.segment,
                x.identity, x.offset_before, x.offset_after, x.puts, x.shape, x.detail, x.bytes,
            )  # fmt: skip


def lives(
    events: Iterable[Event], holds: Iterable[Hold], marks: Iterable[Mark], last_us: Mapping[str, int]
) -> Iterator[Life]:
    """Find when each pod's Streams process lived, as far as is known.

    Process transitions decide where the agent sees them. Otherwise a process lived at least from its first hold to
    its last sign: a lock it held, or a directory its cleaner deleted.
    """
    process: dict[str, list[Event]] = defaultdict(list)
    for x in events:
        if x.change in (Change.PROCESS_STARTED.value, Change.PROCESS_ENDED.value) and not x.routine:
            process[x.pod].append(x)
    for pod, own in process.items():
        own.sort(key=lambda x: (x.observed_at_us, x.boot_id, x.sequence))
        for x, after in zip(own, [*own[1:], None], strict=False):
            if x.change == Change.PROCESS_STARTED.value and pod in last_us:
                yield Life(pod, x.observed_at_us, after.observed_at_us if after else last_us[pod])
    signs: dict[str, list[int]] = defaultdict(list)
    for hold in holds:
        signs[hold.pod] += [hold.from_us, hold.to_us]
    for mark in marks:
        if mark.shape == _CLEANER:
            signs[mark.pod].append(mark.at_us)
    for pod, times in signs.items():
        if pod not in process:
            yield Life(pod, min(times), max(times))
