"""One application as the fleet knows it, and what several rules ask of it."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

from agent.contract import whereabouts
from agent.contract.codec import moment
from agent.contract.events import Change, Status
from spark_rollup.fleet.events import MICROS
from spark_rollup.fleet.meta import Row, RuleMeta
from spark_rollup.fleet.rows import (
    Copy,
    Entry,
    Gap,
    Heard,
    Hold,
    Latest,
    Life,
    Mark,
    Reading,
    Release,
    Said,
    Saved,
    Settings,
    Sighting,
    Unwatched,
)
from spark_rollup.fleet.words import entry

SKEW_US = whereabouts.SKEW_US

FAR_MORE_RATIO = 2
"""A copy with more than this many times the puts of another one has far more."""

NOISE_PUTS = 10
"""Differences up to this many puts say nothing."""

OFFSET_SLACK = 0.05
"""Offsets this close (share of the suspect's) are about the same."""

MAX_INTERVALS = 20
"""How many holder intervals one evidence chain shows."""

SETTLE_US = 2 * MICROS
"""What moves this shortly after the overlap began belongs to the take-over (microseconds)."""

MOVES = (
    Change.STORE_FLUSHED.value,
    Change.CHECKPOINT_WRITTEN.value,
    Change.STORE_OPENED.value,
    Change.STORE_CREATED.value,
    Change.STORE_DELETED.value,
)
"""Changes of a copy's files: a frozen holder makes none."""


@dataclass(slots=True)
class Pod:
    """A pod of the namespace: what it said of itself, and when it was not watched."""

    name: str
    applications: set[str] = field(default_factory=set)
    heard: Heard | None = None
    gaps: list[Gap] = field(default_factory=list)
    unwatched: list[Unwatched] = field(default_factory=list)


Pods = Mapping[str, Pod]
"""All pods of a namespace, by name."""

Place = tuple[str, str | None]
"""Namespace (with its cluster before it, `columns.scoped`), and application; None = what concerns no application."""


@dataclass(slots=True)
class Task:
    """One task on all pods. What agents said of it is in `said`; `owners` are holds that are no cleaner's."""

    id: str
    holds: list[Hold] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    latest: list[Latest] = field(default_factory=list)
    saved: list[Saved] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    cut_us: int | None = None
    """Readings, checkpoints and flushes up to then were too many to be read one by one; None = all are there."""

    @property
    def edges(self) -> list[int]:
        """Times at which rules begin or end to look at readings: no fold of equal ones may lie across any."""
        closed = {(x.from_us + by, x.to_us - by) for x in self.holds for by in (0, SKEW_US)}
        closed |= {(x.opened_at_us, x.opened_at_us) for x in self.said}
        return sorted({at_us for from_us, to_us in closed for at_us in (from_us, to_us + 1)})

    @property
    def owners(self) -> list[Hold]:
        """Holds that are no cleaner's."""
        return [hold for hold in self.holds if not hold.cleaner]

    def elsewhere(self, pod: str, from_us: int, to_us: int) -> tuple[list[Entry], list[str]]:
        """Say who else held the task in a closed interval: evidence, and names of pods in order."""
        others = [x for x in self.owners if x.pod != pod and x.from_us <= to_us and x.to_us >= from_us]
        shown = sorted(
            entry(x.from_us, f"{x.pod} held the task from {moment(x.from_us)} to {_end(x)}", x.pod)
            for x in others
        )
        return shown[:MAX_INTERVALS], sorted({x.pod for x in others})

    def own_size(self, suspect: Suspect) -> OwnSize | None:
        """Say how far a suspect's own store incarnation came, and when it was first seen there; None = never."""
        sizes = [
            OwnSize(x.offset, x.puts, x.at_us)
            for x in self.readings
            if x.offset is not None and x.puts is not None and x.pod == suspect.pod
            and same_store(suspect.store, x.store) and _is_incarnation(suspect, x)
        ]  # fmt: skip
        return max(sizes, key=lambda x: (x.offset, x.puts, -x.at_us), default=None)

    def restored(self, said: Said) -> Entry | None:
        """Say how far the store came that took the place of a suspect's; None = it is not seen to have caught up."""
        ended_us = said.resolved_at_us
        if ended_us is None or said.identity is None or self.cut_us is not None:
            return None
        # by store: the highest offset of other copies, and of this one before
        most: dict[str | None, int] = {}
        for x in sorted(self.readings, key=lambda x: x.at_us):
            if x.offset is None or x.offset < 0 or not same_store(said.store, x.store):
                continue
            known = most.get(x.store)
            if x.pod != said.pod or x.at_us < ended_us or x.identity in (None, said.identity):
                most[x.store] = x.offset if known is None else max(x.offset, known)
            elif known is not None and x.offset >= known:
                what = f"the store in its place claims to be restored up to offset {x.offset}"
                return entry(x.at_us, f"{what}; no copy was known beyond {known}", f"{said.pod}: {self.id}")
        return None


def _end(hold: Hold) -> str:
    return "the last reading" if hold.lasting else moment(hold.to_us)


class Suspect(Protocol):
    """A store incarnation in question. One without an identity is that of readings since the opening time."""

    @property
    def pod(self) -> str: ...  # noqa: D102
    @property
    def store(self) -> str | None: ...  # noqa: D102
    @property
    def identity(self) -> str | None: ...  # noqa: D102
    @property
    def opened_at_us(self) -> int: ...  # noqa: D102


def _is_incarnation(suspect: Suspect, reading: Reading) -> bool:
    if suspect.identity is None or reading.identity is None:
        return reading.at_us >= suspect.opened_at_us
    return reading.identity == suspect.identity


class OwnSize(NamedTuple):
    """How far a suspect's store came."""

    offset: int
    puts: int
    at_us: int


@dataclass
class Application:
    """Everything that rules may read of one application."""

    namespace: str  # see `Place`
    name: str | None  # see `Place`
    as_of_us: int  # the audit's time
    since_us: int  # when the look-back began; a story that ended before is left out. 0 = none is.
    pods: Pods  # all pods of the namespace
    settings: Settings | None = None  # None = no event names this application
    tasks: dict[str, Task] = field(default_factory=dict)
    lives: list[Life] = field(default_factory=list)
    sightings: list[Sighting] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    proofs: list[Row] | None = None  # what `verify` found, rows of `FINDING`; None = it was not asked
    refuted: Mapping[str, set[str]] = field(default_factory=dict)
    """Where agents' findings were found to be wrong: pods by finding id."""
    unnamed: set[tuple[str, str]] = field(default_factory=set)  # `whereabouts.unnamed`

    @property
    def where(self) -> Place:
        """Namespace and name."""
        return self.namespace, self.name

    def task(self, task_id: str) -> Task:
        """Give a task; one that was not known begins empty."""
        if task_id not in self.tasks:
            self.tasks[task_id] = Task(task_id)
        return self.tasks[task_id]

    @cached_property
    def local(self) -> list[Said]:
        """Agents' findings that are open, or were resolved in the look-back."""
        return [x for x in self.said if x.status == Status.OPEN.value or x.observed_at_us >= self.since_us]

    def suspects(self, *detectors: str) -> Iterator[tuple[Task, Said]]:
        """Take agents' findings of some detectors, each with its task."""
        for said in self.local:
            if said.detector in detectors and said.task_id in self.tasks:
                task = self.tasks[said.task_id]
                more = task.restored(said)
                yield task, said if more is None else said._replace(evidence=[*(said.evidence or ()), more])

    @cached_property
    def home(self) -> list[Pod]:
        """List pods that may be of this application: one that never named any may be of each in its namespace."""
        return [x for x in self.pods.values() if self.name in x.applications or not x.applications]

    def was_unwatched(self, pod: str, task: str | None, from_us: int, to_us: int) -> bool:
        """Return whether a pod was unwatched, for a task, at any time of a closed interval."""
        known = self.pods.get(pod)
        return known is not None and any(
            self.concerns(x, task) and x.from_us <= to_us and x.until_us >= from_us for x in known.unwatched
        )

    def concerns(self, gap: Gap | Unwatched, task: str | None) -> bool:
        """Return whether a gap concerns a task: most concern all of the pod."""
        here = gap.application_id is None or gap.application_id == self.name
        return here and (gap.task_id is None or task is None or gap.task_id == task)

    def unwatched(self, task: str | None, from_us: int, to_us: int) -> list[str]:
        """List the pods of the application that were not watched all through a closed interval."""
        return sorted(x.name for x in self.home if self.was_unwatched(x.name, task, from_us, to_us))

    @cached_property
    def miscounted(self) -> set[str]:
        """List pods that seem to hold more tasks than their agents watch: that some went is lost, and which is unknown.

        Of a task whose directory is gone no summary tells.
        """
        counts = {
            x.name: (x.heard.level_us, x.heard.tasks) for x in self.pods.values()
            if x.heard and x.heard.level_us is not None and x.heard.tasks is not None
        }  # fmt: skip
        holds = (x for task in self.tasks.values() for x in task.holds if x.lasting and x.pod in counts)
        held = Counter(x.pod for x in holds if x.from_us <= counts[x.pod][0])
        return {pod for pod, number in held.items() if number > counts[pod][1]}

    @cached_property
    def life_ends(self) -> LifeEnds:
        """Answers who was alive when."""
        return LifeEnds(self.lives)


class Spans:
    """Many intervals, by one sort for all questions."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        """Sort them by their begin."""
        self._begins: list[int] = []
        self._ends: list[int] = []
        for begin, end in sorted(spans):
            self._begins.append(begin)
            self._ends.append(max(end, self._ends[-1]) if self._ends else end)

    def last(self, begun_us: int) -> tuple[int, int] | None:
        """Return last begin and last end of those that had begun at a time; None = none had."""
        count = bisect_right(self._begins, begun_us)
        return (self._begins[count - 1], self._ends[count - 1]) if count else None

    def cover(self, from_us: int, to_us: int) -> bool:
        """Return whether one of them covers a closed interval."""
        last = self.last(from_us)
        return last is not None and last[1] >= to_us


class LifeEnds(Spans):
    """Who was alive when: many tasks ask the same."""

    def __init__(self, lives: Iterable[Life]) -> None:
        """Sort the lives by their begin."""
        self._lives = sorted(lives, key=lambda x: x.from_us)
        super().__init__((x.from_us, x.to_us) for x in self._lives)
        self._through: dict[tuple[int, int], int] = {}

    def through(self, begun_us: int, until_us: int) -> int:
        """Count the pods with a life that had begun at one time and lasted to another."""
        key = (bisect_right(self._begins, begun_us), until_us)
        if key not in self._through:
            self._through[key] = len({x.pod for x in self._lives[: key[0]] if x.to_us >= until_us})
        return self._through[key]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its identity, and a pure function from an application to findings."""

    meta: RuleMeta
    find: Callable[[Application], Iterator[Row]]


def same_store(asked: str | None, store: str | None) -> bool:
    """Compare stores; a finding without a store covers all of its task's."""
    return asked is None or store is None or asked == store


def far_less(own: int | None, other: int | None) -> bool:
    """Return whether one copy holds far less than another; False when one of the two is unknown."""
    return own is not None and other is not None and other > own * FAR_MORE_RATIO and other - own > NOISE_PUTS


def at_most(release: Release | None, last: Release) -> bool | None:
    """Compare releases; None = not known."""
    return None if release is None else tuple(release) <= tuple(last)


def at_least(release: Release | None, first: Release) -> bool | None:
    """Compare releases; None = not known."""
    return None if release is None else tuple(release) >= tuple(first)


def by_pod(holds: Sequence[Hold]) -> dict[str, list[Hold]]:
    """Sort holds into pods."""
    found: dict[str, list[Hold]] = defaultdict(list)
    for hold in holds:
        found[hold.pod].append(hold)
    return found
