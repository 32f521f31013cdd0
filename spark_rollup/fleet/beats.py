"""What each boot of an agent said in each slot of time, counted: gaps and coverage need no more of all the events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from agent.contract.events import Kind
from agent.contract.levels import Counted
from spark_rollup.fleet.events import SLOT_US, Event

STOPPING = "stopping"


class Beat(NamedTuple):
    """What one boot said in one slot of `SLOT_US`; of days that are over, one is all of a boot (`schemas.HEARD`).

    Fields: stop_us (announced end), first and last (sequences), at_first_us and at_last_us (when those were observed),
    level_last and level_us (sequence and time of the newest heartbeat that counts what is open), criticals, warnings
    and tasks (its counts).
    """

    namespace: str
    pod: str
    pod_uid: str
    boot_id: str
    node: str | None
    agent_version: str | None
    slot: int
    events: int
    first_us: int
    last_us: int
    stop_us: int | None
    first: int
    last: int
    at_first_us: int
    at_last_us: int
    level_last: int | None
    level_us: int | None
    criticals: int | None
    warnings: int | None
    tasks: int | None

    @property
    def boot(self) -> tuple[str, str]:
        """Which boot of the pod."""
        return self.pod_uid, self.boot_id

    @property
    def is_whole(self) -> bool:
        """Whether no sequence is missing inside."""
        return self.last - self.first + 1 == self.events


class Stretch(NamedTuple):
    """A run of sequences without a hole, or a single one."""

    pod_uid: str
    boot_id: str
    first: int
    last: int
    at_first_us: int
    at_last_us: int


def beats(events: Iterable[Event]) -> list[Beat]:
    """Count what each boot said per slot."""
    slots: dict[tuple[object, ...], list[Event]] = defaultdict(list)
    for x in events:
        where = (x.namespace, x.pod, x.pod_uid, x.boot_id, x.node, x.agent_version)
        slots[*where, x.observed_at_us // SLOT_US].append(x)
    return [_beat(inside) for inside in slots.values()]


def _beat(inside: Sequence[Event]) -> Beat:
    one = inside[0]
    times = [x.observed_at_us for x in inside]
    first, last = (end(inside, key=lambda x: x.sequence) for end in (min, max))
    counting = [x for x in inside if x.open_criticals is not None]
    level = max(counting, key=lambda x: x.sequence, default=None)
    return Beat(
        one.namespace, one.pod, one.pod_uid, one.boot_id, one.node, one.agent_version,
        slot=one.observed_at_us // SLOT_US, events=len(inside), first_us=min(times), last_us=max(times),
        stop_us=max((x.observed_at_us for x in inside if x.phase == STOPPING), default=None),
        first=first.sequence, last=last.sequence,
        at_first_us=first.observed_at_us, at_last_us=last.observed_at_us,
        level_last=level and level.sequence, level_us=level and level.observed_at_us,
        criticals=level and level.open_criticals,
        warnings=level and level.open_warnings, tasks=level and level.tasks,
    )  # fmt: skip


def torn(events: Iterable[Event], counted: Iterable[Beat]) -> Iterator[Stretch]:
    """Take slots with a hole inside apart, event by event."""
    slots = {(x.namespace, x.pod, *x.boot, x.slot) for x in counted if not x.is_whole}
    for x in events:
        # what was kept of days that are over may have no sequence
        if x.sequence and (x.namespace, x.pod, x.pod_uid, x.boot_id, x.observed_at_us // SLOT_US) in slots:
            at_us = x.observed_at_us
            yield Stretch(x.pod_uid, x.boot_id, x.sequence, x.sequence, at_us, at_us)


class LastWord(NamedTuple):
    """When a pod was last heard, by whom, whether its agent had announced its end; boots, events: of the look-back."""

    first_us: int
    last_us: int
    stopped: bool
    pod_uid: str
    node: str | None
    agent_version: str | None
    boots: int
    events: int


def last_word(counted: Sequence[Beat], since_us: int) -> LastWord:
    """Say what is known last of a pod."""
    newest = max(counted, key=lambda x: (x.last_us, x.at_last_us, x.last, x.boot_id))
    recent = [x for x in counted if x.last_us >= since_us]
    last_us = max(x.last_us for x in counted)
    return LastWord(
        min(x.first_us for x in counted), last_us,
        any(x.stop_us is not None and x.stop_us >= last_us for x in counted),
        newest.pod_uid, newest.node, newest.agent_version,
        len({x.boot for x in recent}), sum(x.events for x in recent),
    )  # fmt: skip


class Level(NamedTuple):
    """The newest counts of a boot; `last` None = it counts nothing: it is older than contract 1.3."""

    pod_uid: str
    boot_id: str
    boot_us: int
    last: int | None
    us: int | None
    criticals: int | None
    warnings: int | None
    tasks: int | None

    def counted(self, ids: Mapping[tuple[str, str, int], Sequence[str]]) -> Counted | None:
        """Say what they count, and what by boot and sequence is named; None = nothing is counted."""
        if self.last is None or self.us is None or self.criticals is None or self.warnings is None:
            return None
        named = ids.get((self.pod_uid, self.boot_id, self.last), ())
        return Counted(self.boot_id, self.last, self.us, self.criticals, self.warnings, named)


def levels_of(counted: Sequence[Beat]) -> list[Level]:
    """Find the newest counts of each boot, the newest boot last."""
    boots: dict[tuple[str, str], list[Beat]] = defaultdict(list)
    for x in counted:
        boots[x.boot].append(x)
    ordered = sorted(
        boots.values(), key=lambda own: (max((x.last_us, x.at_last_us, x.last) for x in own), own[0].boot_id)
    )
    return [_level(own) for own in ordered]


def _level(own: Sequence[Beat]) -> Level:
    counts = [x for x in own if x.level_last is not None]
    level = max(counts, key=lambda x: x.level_last or 0, default=None)
    return Level(
        *own[0].boot, min(x.at_first_us for x in own), level and level.level_last, level and level.level_us,
        level and level.criticals, level and level.warnings, level and level.tasks,
    )  # fmt: skip


def names_open(event: Event) -> bool:
    """Return whether a heartbeat names what is open."""
    return event.kind == Kind.HEARTBEAT.value and bool(event.open_ids)
