"""Where no agent was watching: gaps in each agent's sequence, its own blind intervals, silence.

Nothing may be concluded inside any of these intervals. Half-open, microseconds since the epoch. All is about one pod.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from agent.contract.events import Kind
from spark_rollup.fleet.beats import Beat, Stretch, last_word
from spark_rollup.fleet.events import MICROS, REPAIR_US, SLOT_US, Event
from spark_rollup.fleet.pods import DROPPED, EARLIER, FAST, LOST, SILENT, STOPPED
from spark_rollup.fleet.rows import Gap, Unwatched

MOST_US = 86_400 * MICROS
"""No gap of a fast clock is reported as longer than this (microseconds)."""


def gaps_of(
    counted: Sequence[Beat],
    torn: Iterable[Stretch],
    events: Sequence[Event],
    as_of_us: int,
    ahead_us: int | None,
) -> list[Gap]:
    """Collect every interval in which a pod was not watched.

    `events`: its drops, and heartbeats with blind intervals. `ahead_us`: how far its clock is ahead of all others.
    """
    pod = counted[0].pod
    found = [
        *sequence_holes(counted, torn, events),
        *pauses(counted),
        *blind_intervals(pod, events, as_of_us),
    ]
    last = last_word(counted, 0)
    if as_of_us - last.last_us > SLOT_US and not last.stopped:
        found.append(Gap(pod, None, None, last.last_us, as_of_us, SILENT, None))
    if ahead_us is not None:
        # all that a fast clock said last may have been by so much earlier
        found.append(Gap(pod, None, None, as_of_us - min(ahead_us, MOST_US), as_of_us, FAST, None))
    return found


def sequence_holes(
    counted: Sequence[Beat], torn: Iterable[Stretch], events: Iterable[Event]
) -> Iterator[Gap]:
    """Find missing sequence numbers within one boot of an agent.

    Numbers that a `drop` record announces are a gap of cause `dropped-events`; those before a boot's first record
    are `earlier-events-not-in-input` (an input that starts later has them), if the boot counted what is open since;
    all others are `lost-events`.
    """
    boots: dict[tuple[str, str], list[Stretch]] = defaultdict(list)
    counts = {x.boot for x in counted if x.level_last is not None}
    whole = (Stretch(*x.boot, x.first, x.last, x.at_first_us, x.at_last_us) for x in counted if x.is_whole)
    for stretch in (*whole, *torn):
        boots[stretch.pod_uid, stretch.boot_id].append(stretch)
    drops: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for told in events:
        first, last = told.first_sequence, told.last_sequence
        if told.kind == Kind.DROP.value and first is not None and last is not None:
            drops[told.pod_uid, told.boot_id].append((first, last))
    for boot, stretches in boots.items():
        before, before_us = 0, None
        for x in sorted(stretches, key=lambda x: x.first):
            begin_us = x.at_first_us if before_us is None else before_us
            if x.first > before + 1:
                hole = (before + 1, x.first - 1)
                announced = sum(
                    max(min(hole[1], drop[1]) - max(hole[0], drop[0]) + 1, 0) for drop in drops[boot]
                )
                lost = max(hole[1] - hole[0] + 1 - announced, 0)
                why = EARLIER if hole[0] == 1 and boot in counts else LOST
                cause, missing = (why, lost) if lost else (DROPPED, announced)
                yield Gap(counted[0].pod, None, None, begin_us, max(x.at_first_us, begin_us), cause, missing)
            before, before_us = x.last, x.at_last_us


def pauses(counted: Sequence[Beat]) -> Iterator[Gap]:
    """Find times between two events of a pod in which its agent said nothing or did not run."""
    ordered = sorted(counted, key=lambda x: (x.first_us, *x.boot))
    before = ordered[0]
    for x in ordered[1:]:
        stopped = before.stop_us is not None and before.stop_us >= before.last_us
        if x.first_us - before.last_us > (0 if stopped else SLOT_US):
            yield Gap(x.pod, None, None, before.last_us, x.first_us, STOPPED if stopped else SILENT, None)
        before = max(before, x, key=lambda one: one.last_us)


def blind_intervals(pod: str, events: Iterable[Event], as_of_us: int) -> Iterator[Gap]:
    """Take over what agents say about themselves in their heartbeats.

    A heartbeat repeats an open interval; the last word about it counts. One that never ended lasts until now. One
    without a begin puts all before its end in doubt.
    """
    ends: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for x in events:
        if x.kind == Kind.HEARTBEAT.value and not x.routine:
            for one in x.blind or ():
                key = (x.pod_uid, x.boot_id, one.application_id, one.task_id, one.from_us or 0, one.cause)
                ends[key].extend([] if one.to_us is None else [one.to_us])
    for (_, _, application, task, from_us, cause), known in ends.items():
        to_us = max(known, default=as_of_us)
        yield Gap(pod, application, task, from_us, to_us, cause, None)  # type: ignore[arg-type]


def until_us(gap: Gap) -> int:
    """Return up to when what was missed in a gap may still be missing from the picture."""
    return gap.to_us + (REPAIR_US if gap.cause in (LOST, DROPPED, EARLIER) else 0)


def merged(pod: str, gaps: Iterable[Gap]) -> list[Unwatched]:
    """Join gaps of a pod that overlap or meet, whatever their causes: lossy fleets have very many small ones."""
    times: dict[tuple[str | None, str | None], list[tuple[int, int]]] = defaultdict(list)
    for gap in gaps:
        times[gap.application_id, gap.task_id].append((gap.from_us, until_us(gap)))
    found = []
    for whose, spans in times.items():
        spans.sort()
        begin, end = spans[0]
        for from_us, to_us in spans[1:]:
            if from_us > end:
                found.append(Unwatched(pod, *whose, begin, end))
                begin, end = from_us, to_us
            end = max(end, to_us)
        found.append(Unwatched(pod, *whose, begin, end))
    return found
