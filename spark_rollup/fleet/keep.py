"""What is kept of a day that is over: so many of its events that the same is made of them as of all.

Of a task every change is kept, and of what it repeats (summaries, checkpoints, flushes) so many that holds, sightings,
curves and copies stay as they are. Only of tasks in question a rule would see more: of those it sees the last of each
kind in a slot of `sizes.SLOT_US`, the largest numbers, and what is next to a change, or to when that has settled.

Each day is chosen from by itself, and no rule is asked.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from agent.contract.events import Kind
from spark_rollup.fleet import sizes, thin
from spark_rollup.fleet.application import SETTLE_US
from spark_rollup.fleet.beats import Beat, Stretch
from spark_rollup.fleet.events import SLOT_US, Event
from spark_rollup.fleet.holds import FREQUENT, held_by
from spark_rollup.fleet.rows import Reading


class _Chosen:
    """Of each key the event that comes last in some order."""

    def __init__(self) -> None:
        self._last: dict[tuple[object, ...], tuple[tuple[int, ...], str]] = {}

    def offer(self, event: Event, order: tuple[int, ...], *key: object) -> None:
        """Choose it, unless a later one of the key is known."""
        one = (order, event.id)
        self._last[key] = max(self._last.get(key, one), one)

    def ids(self) -> set[str]:
        """List what was chosen."""
        return {event_id for _, event_id in self._last.values()}


def _repeats(event: Event) -> bool:
    """Return whether an event is of those that come again and again."""
    return event.routine or event.change in FREQUENT


def of_task(events: Sequence[Event]) -> set[str]:
    """Choose events of one task in one day, on all pods: their ids."""
    ordered = sorted(events, key=lambda x: (x.pod, x.observed_at_us, x.boot_id, x.sequence))
    changes = [x for x in ordered if not _repeats(x)]
    turns = list(_turns(ordered))
    chosen = _Chosen()
    for x in ordered:
        chosen.offer(x, (x.at_us, x.sequence), "slot", x.pod, x.change or x.kind, x.at_us // sizes.SLOT_US)
        for thing in thin.things(x):
            boot = (x.pod, x.pod_uid, x.boot_id)
            chosen.offer(x, (-x.observed_at_us,), "first", boot, thing)
            chosen.offer(x, (x.observed_at_us,), "last", boot, thing)
    _offer_sizes(chosen, list(sizes.measured(ordered)))
    moments = {
        at_us for x in changes for at_us in (x.at_us, x.observed_at_us, x.opened_at_us) if at_us is not None
    }
    moments |= {x.observed_at_us for x in turns} | {x.at_us for x in {x.pod: x for x in ordered}.values()}
    moments |= {at_us + SETTLE_US for at_us in moments}
    return {x.id for x in (*changes, *turns, *_beside(ordered, moments))} | chosen.ids()


def of_pod(events: Sequence[Event]) -> set[str]:
    """Choose events of one pod in one day, of those that are about no task: their ids."""
    chosen = _Chosen()
    for x in events:
        if x.kind == Kind.HEARTBEAT.value and x.routine:
            order = (x.observed_at_us, x.sequence)
            chosen.offer(x, order, "names", tuple(x.applications or ()))
            if x.open_criticals is not None:
                chosen.offer(x, (x.sequence,), "counts", x.pod_uid, x.boot_id)
    return {x.id for x in events if not x.routine} | chosen.ids()


def _turns(ordered: Iterable[Event]) -> Iterator[Event]:
    """Find the events in which a task was first seen held, or free."""
    before: tuple[str, bool] | None = None
    for x in ordered:
        held = held_by(x)
        if held is not None and before != (x.pod, held):
            before = x.pod, held
            yield x


def _beside(ordered: Iterable[Event], moments: Iterable[int]) -> Iterator[Event]:
    """Find what comes again, of each kind the last before a moment and the first after it; the day's ends are two."""
    kinds: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for x in ordered:
        if _repeats(x):
            kinds[x.pod, x.change or x.kind].append(x)
    for own in kinds.values():
        own.sort(key=lambda x: x.at_us)
        times = [x.at_us for x in own]
        places = {0, len(own)} | {bisect_right(times, at_us) for at_us in moments}
        yield from (own[i] for place in places for i in (place - 1, place) if 0 <= i < len(own))


def _offer_sizes(chosen: _Chosen, read: Sequence[tuple[Event, Reading]]) -> None:
    """Offer the last and the largest numbers of each copy, and readings that an anchor fixes or may fix tomorrow."""
    ends = {(x.pod, x.store): x for _, x in read}
    counted = {_fixed(x) for _, x in read if x.entries_low is not None and x.entries_high is not None}
    fixed = counted & {_fixed(x) for _, x in read if x.anchor} | {_fixed(x) for x in ends.values()}
    for event, x in read:
        copy = (x.pod, x.store, x.identity)
        slot = (*copy, event.change or event.kind, x.at_us // sizes.SLOT_US)
        for name in ("offset", "puts", "entries_low", "bytes"):
            number = getattr(x, name)
            if number is not None:
                chosen.offer(event, (x.at_us,), name, *slot)
                chosen.offer(event, (number, x.at_us), "most", name, *(copy if name == "bytes" else slot))
        chosen.offer(event, (-x.at_us,), "seen from", *copy)
        chosen.offer(event, (x.at_us,), "seen to", *copy)
        if _fixed(x) in fixed:
            same = (*copy, x.offset, x.puts, x.entries_low, x.entries_high, x.anchor, x.comparable)
            chosen.offer(event, (-x.at_us,), "fixed from", *same)
            chosen.offer(event, (x.at_us,), "fixed to", *same)


def _fixed(x: Reading) -> tuple[object, ...]:
    return x.pod, x.store, x.offset, x.puts


def runs(counted: Iterable[Beat], torn: Iterable[Stretch]) -> list[Beat]:
    """Join what boots said without a hole or a pause; slots with a hole are taken apart."""
    apart: dict[tuple[object, ...], list[Stretch]] = defaultdict(list)
    for one in torn:
        apart[one.pod_uid, one.boot_id, one.at_first_us // SLOT_US].append(one)
    pieces = [piece for x in counted for piece in ([x] if x.is_whole else _pieces(x, apart[*x.boot, x.slot]))]
    pieces.sort(key=lambda x: (x.boot, x.node or "", x.agent_version or "", x.first))
    found: list[Beat] = []
    for x in pieces:
        if found and _goes_on(found[-1], x):
            found[-1] = _joined(found[-1], x)
        else:
            found.append(x)
    return found


def _pieces(slot: Beat, apart: Sequence[Stretch]) -> Iterator[Beat]:
    """Take a slot apart; its last piece says what the slot counted and whether it announced an end."""
    ordered = sorted(apart, key=lambda x: x.first)
    for x in ordered:
        piece = slot._replace(
            events=1, first=x.first, last=x.last, first_us=x.at_first_us, last_us=x.at_last_us,
            at_first_us=x.at_first_us, at_last_us=x.at_last_us,
        )  # fmt: skip
        if x is not ordered[-1]:
            piece = piece._replace(
                stop_us=None, level_last=None, level_us=None, criticals=None, warnings=None, tasks=None
            )
        yield piece


def _goes_on(before: Beat, x: Beat) -> bool:
    same = (before.boot, before.node, before.agent_version) == (x.boot, x.node, x.agent_version)
    is_close = abs(x.first_us - before.last_us) <= SLOT_US
    return same and is_close and before.stop_us is None and x.first == before.last + 1


def _joined(before: Beat, x: Beat) -> Beat:
    level = before if x.level_last is None else x
    return before._replace(
        events=before.events + x.events, first_us=min(before.first_us, x.first_us),
        last_us=max(before.last_us, x.last_us), stop_us=x.stop_us, last=x.last, at_last_us=x.at_last_us,
        level_last=level.level_last, level_us=level.level_us, criticals=level.criticals, warnings=level.warnings,
        tasks=level.tasks,
    )  # fmt: skip
