"""How far each copy of a store had come: every reading, and what the readings of all copies come down to.

A reading is a summary's row about one store, its orderly close, or a checkpoint's writing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from agent.contract.events import Change, Kind
from spark_rollup.fleet.events import MICROS, Event, last_known
from spark_rollup.fleet.pods import TOO_MANY
from spark_rollup.fleet.rows import Copy, Gap, Latest, Mark, Reading, Saved

SLOT_US = 600 * MICROS
"""The curve of a copy has one point per slot (microseconds)."""

MOST_ROWS = 100_000
"""So many readings, checkpoints and flushes of one application are read one by one, as many of each of its tasks in
question: twice as many took 1 GiB of a worker in Spark. The recorded fleet with the most has 599."""

SAYS = Reading._fields.index("identity")
"""What a reading says begins with this field; before it are the copy and the time."""

GLOBAL = "global"
"""Task of the global stores. They follow topics that others cut: copies at one offset may differ."""


def readings_of(events: Sequence[Event]) -> list[Reading]:
    """Measure how far each copy of a store had come: puts and bytes at a changelog offset."""
    return [read for _, read in measured(events)]


def measured(events: Sequence[Event]) -> list[tuple[Event, Reading]]:
    """Measure how far each copy of a store had come, and say by which event.

    Segments of a windowed store are added up. A checkpoint transition covers all stores of its task together, so
    it counts only where the task has a single one.
    """
    stores: dict[str, set[str]] = defaultdict(set)
    found: list[tuple[Event, Reading]] = []
    for x in events:
        if x.task_id is None:
            continue
        if x.is_summary:
            stores[x.task_id].update(part.store for part in x.stores or () if part.store is not None)
            found += ((x, read) for read in _of_summary(x))
        elif x.kind == Kind.TRANSITION.value and x.store is not None:
            stores[x.task_id].add(x.store)
            if x.change == Change.STORE_CLOSED.value:
                found.append((x, _of_transition(x, x.store)))
    for x in events:
        is_mark = x.kind == Kind.TRANSITION.value and x.change == Change.CHECKPOINT_WRITTEN.value
        if is_mark and x.task_id is not None and x.puts is not None:
            single = stores[x.task_id]
            if len(single) == 1:
                read = _of_transition(x, next(iter(single)))
                found.append((x, read._replace(entries_low=None, entries_high=None, checkpoint=True)))
    return found


def folded(readings: Iterable[Reading], edges: Iterable[int]) -> list[Reading]:
    """Leave out readings of a task that say what the copy's readings just before and after them say.

    None is left out that is next to one of the `edges`.
    """
    copies: dict[tuple[str | None, str], list[Reading | int]] = defaultdict(list)
    for x in readings:
        copies[x.store, x.pod].append(x)
    found: list[Reading] = []
    for own in copies.values():
        together = groupby(sorted([*own, *edges], key=_time), key=_time)
        own = [
            x for _, same in together for x in sorted(same, key=_place)
        ]  # keys of few at once: they are large
        found += (
            x for before, x, after in zip([None, *own], own, [*own[1:], None], strict=False)
            if not isinstance(x, int) and not _says(before) == x[SAYS:] == _says(after)
        )  # fmt: skip
    return found


def _time(x: Reading | int) -> int:
    return x if isinstance(x, int) else x.at_us


def _says(x: Reading | int | None) -> tuple[Any, ...] | None:
    return x[SAYS:] if isinstance(x, Reading) else None


def _place(x: Reading | int) -> tuple[Any, ...]:
    """As Spark sorts: an edge goes before readings of its time, and what is not known before all that is."""
    return (x,) if isinstance(x, int) else (x.at_us, *((part is not None, part) for part in x[SAYS:]))


def most_rows(tasks: int) -> int:
    """Return how many rows of each of so many tasks in question are read one by one."""
    return max(MOST_ROWS // max(tasks, 1), 1)


def left_out(rows: Sequence[Reading | Mark], most: int) -> list[Gap]:
    """Say what has to be left out of a task's rows so that at most so many, the newest, remain: one gap for each pod.

    They all end at one time, and none of up to then remains.
    """
    if len(rows) <= most:
        return []
    cut_us = sorted((x.at_us for x in rows), reverse=True)[most]
    pods: dict[str, list[int]] = defaultdict(list)
    for x in rows:
        if x.at_us <= cut_us:
            pods[x.pod].append(x.at_us)
    task = rows[0].task_id
    return [Gap(pod, None, task, min(own), cut_us, TOO_MANY, len(own)) for pod, own in pods.items()]


def _of_transition(x: Event, store: str) -> Reading:
    return Reading(
        x.task_id or "", x.pod, store, x.at_us, x.identity, x.offset_after, x.puts, x.entries_low,
        unsaved_puts=None, anchor=True, bytes=x.bytes, entries_high=x.entries_high, comparable=bool(x.comparable),
    )  # fmt: skip


def _of_summary(x: Event) -> Iterator[Reading]:
    only = x.offsets[0].offset if x.offsets is not None and len(x.offsets) == 1 else None
    segments: dict[str | None, list[Any]] = defaultdict(list)
    for part in x.stores or ():
        if part.segment is not None:
            segments[part.store].append(part)
            continue
        yield Reading(
            x.task_id or "", x.pod, part.store, x.observed_at_us, part.identity,
            only if part.offset is None else part.offset, part.puts, part.entries_low, part.unsaved_puts,
            anchor=False, bytes=part.bytes, entries_high=part.entries_high,
        )  # fmt: skip
    for store, parts in segments.items():
        offsets = [only if part.offset is None else part.offset for part in parts]
        limits = [part.unsaved_puts for part in parts]
        yield Reading(
            x.task_id or "", x.pod, store, x.observed_at_us, parts[0].identity if len(parts) == 1 else None,
            max((y for y in offsets if y is not None), default=None),
            _sum(known for part in parts if (known := part.puts) is not None),
            _whole_sum([part.entries_low for part in parts]),
            None if None in limits else max(limits),
            anchor=False, bytes=_sum(known for part in parts if (known := part.bytes) is not None),
            entries_high=_whole_sum([part.entries_high for part in parts]), segmented=True,
        )  # fmt: skip


def _sum(known: Iterable[int]) -> int | None:
    numbers = list(known)
    return sum(numbers) if numbers else None


def _whole_sum(numbers: Sequence[int | None]) -> int | None:
    return None if None in numbers else sum(x for x in numbers if x is not None)


class Point(NamedTuple):
    """The last known numbers of a copy in a slot of time; of an offset and of bytes it is known when."""

    task_id: str
    store: str | None
    pod: str
    at_us: int
    offset: int | None
    offset_us: int | None
    puts: int | None
    bytes: int | None
    bytes_us: int | None
    most_bytes: int | None


def curve(readings: Iterable[Reading]) -> list[Point]:
    """Thin the readings out: the last known numbers of each copy per slot."""
    slots: dict[tuple[object, ...], list[Reading]] = defaultdict(list)
    for x in readings:
        slots[x.task_id, x.store, x.pod, x.at_us // SLOT_US].append(x)
    return [_point(inside) for inside in slots.values()]


def _order(x: Reading) -> int:
    """At one time a checkpoint's word goes before a reading's."""
    return x.at_us * 2 + x.checkpoint


def _point(inside: Sequence[Reading]) -> Point:
    one = inside[0]
    sizes = [x for x in inside if x.bytes is not None]
    return Point(
        one.task_id, one.store, one.pod, max(x.at_us for x in inside),
        last_known(inside, lambda x: x.offset, _order),
        max((_order(x) for x in inside if x.offset is not None), default=None),
        last_known(inside, lambda x: x.puts, _order),
        last_known(inside, lambda x: x.bytes, _order),
        max(map(_order, sizes), default=None),
        max((x.bytes for x in sizes if x.bytes is not None), default=None),
    )  # fmt: skip


def latest(points: Iterable[Point]) -> Iterator[Latest]:
    """Say what is known last of each copy."""
    copies: dict[tuple[str, str | None, str], list[Point]] = defaultdict(list)
    for x in points:
        copies[x.task_id, x.store, x.pod].append(x)
    for whose, own in copies.items():
        yield Latest(
            *whose,
            last_known([x for x in own if x.offset_us], lambda x: x.offset, lambda x: x.offset_us),
            last_known([x for x in own if x.bytes_us], lambda x: x.bytes, lambda x: x.bytes_us),
            max((x.most_bytes for x in own if x.most_bytes is not None), default=None),
            max((x.offset_us // 2 for x in own if x.offset_us is not None), default=None),
        )


def saved(marks: Iterable[Mark]) -> Iterator[Saved]:
    """Thin the checkpoints out: the last one of each copy of a task per slot."""
    slots: dict[tuple[str, str, int], Mark] = {}
    for x in marks:
        if x.change == Change.CHECKPOINT_WRITTEN.value:
            slot = (x.task_id, x.pod, x.at_us // SLOT_US)
            slots[slot] = max(slots.get(slot, x), x, key=lambda one: one.at_us)
    yield from (Saved(x.task_id, x.pod, x.at_us, x.offset_after) for x in slots.values())


def settled_copies(readings: Iterable[Reading]) -> Iterator[Copy]:
    """Keep readings whose offset and files are of the same moment, of stores that follow their own changelog.

    That is a reading with exactly the offset and puts of an anchor: the store's close, or a checkpoint's writing. Only
    of stores that several pods have.
    """
    stores: dict[tuple[str, str | None], list[Reading]] = defaultdict(list)
    for x in readings:
        if x.task_id != GLOBAL and x.store is not None:
            stores[x.task_id, x.store].append(x)
    for (task, store), own in stores.items():
        if len({x.pod for x in own}) > 1:
            yield from _settled(task, store, own)


def _settled(task: str, store: str | None, own: Sequence[Reading]) -> Iterator[Copy]:
    anchors: dict[tuple[object, ...], dict[str | None, bool]] = defaultdict(dict)
    seen: dict[tuple[str, str], tuple[int, int]] = {}
    for x in own:
        if x.anchor:
            anchored = anchors[x.pod, x.offset, x.puts]
            anchored[x.identity] = anchored.get(x.identity, False) or x.comparable
        if x.identity is not None:
            from_us, to_us = seen.get((x.pod, x.identity), (x.at_us, x.at_us))
            seen[x.pod, x.identity] = min(from_us, x.at_us), max(to_us, x.at_us)
    copies: dict[tuple[Any, ...], tuple[bool, int, int]] = {}
    for x in own:
        is_counted = x.entries_low is not None and x.entries_high is not None and not x.segmented
        if not is_counted or x.offset is None or x.offset <= 0 or x.puts is None:
            continue
        fixed = [
            comparable for identity, comparable in anchors[x.pod, x.offset, x.puts].items()
            if identity is None or x.identity is None or identity == x.identity
        ]  # fmt: skip
        if fixed:
            key = (x.offset, x.pod, x.identity, x.entries_low, x.entries_high)
            comparable, first_us, last_us = copies.get(key, (False, x.at_us, x.at_us))
            copies[key] = comparable or any(fixed), min(first_us, x.at_us), max(last_us, x.at_us)
    for (offset, pod, identity, low, high), (comparable, first_us, last_us) in copies.items():
        seen_us = seen.get((pod, identity), (None, None))
        yield Copy(task, store, offset, pod, identity, low, high, first_us, last_us, comparable, *seen_us)
