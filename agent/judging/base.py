"""What a detector is: metadata, a pure function, and the case that it judges, by its scope."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, TypeVar

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.finding import Evidence as Evidence
from agent.contract.mechanisms import Mechanism as Mechanism
from agent.contract.units import Remedy as Remedy
from agent.contract.units import Twin as Twin
from agent.inventory.model import Application, Inventory, Session, Task
from agent.inventory.settings import ApplicationSettings
from agent.judging.decision import Decision
from agent.layout.facts import Fact as Fact
from agent.layout.profile import Profile
from agent.layout.profile import Truth as Truth
from agent.layout.releases import ReleaseRange

T = TypeVar("T")
About = TypeVar("About")


class Kind(StrEnum):
    """Whether a verdict is a moment or a state.

    EVENT: reported once, closed at once. CONDITION: open while it holds. DAMAGE: open until the incarnation of the
    store that it names is gone; what its detector reports as an exposure, before there is damage, is open while it
    holds.
    """

    EVENT = "event"
    CONDITION = "condition"
    DAMAGE = "damage"


class Scope(StrEnum):
    """What one judgement is about."""

    TASK = "task"
    APPLICATION = "application"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Upstream:
    """An upstream issue, with the releases it affects."""

    key: str  # issue key, or `no upstream issue`
    releases: tuple[ReleaseRange, ...]  # affected ranges, inclusive
    fixed: str  # where the fix shipped, for people


@dataclass(frozen=True, slots=True)
class DetectorMeta:
    """What a detector says of itself."""

    id: str  # kebab-case id, also the name of its page
    title: str  # what it finds, in a few words
    next_action: str  # what is safe to do next
    level: Level = Level.DAMAGE  # kind of statement
    severity: Severity = Severity.CRITICAL  # the highest it gets
    kind: Kind = Kind.DAMAGE  # event, condition or damage
    scope: Scope = Scope.TASK  # what it judges
    needs: tuple[str, ...] = ()  # settings without which it stays silent or unsure
    refreshed: bool = False  # while a finding is open, a new summary replaces the old one, with its evidence
    upstream: tuple[Upstream, ...] = ()  # issues it names
    # what goes wrong, unless a verdict says something else; None = what this detector alone is about
    mechanism: Mechanism | None = None
    consequence: str = ""  # what it means for the data, one or two sentences
    # what makes damage from a lasting exposure less likely; empty = none of its verdicts lasts
    lowers_risk: str = ""
    # it judges only applications that are known to run exactly-once (True) or at-least-once (False)
    exactly_once: bool | None = None
    alert_after_m: int | None = None  # minutes that a warning must last before its alert; None = by the level
    # its benign twin; None = no run looks like what it judges: a volume, or settings
    twin: Twin | None = None
    # answers of the release profile, each of which alone makes it silent
    silent_where: tuple[tuple[Fact, Truth], ...] = ()
    remedy: Remedy = Remedy.OTHER  # what the next action does with the task's directory

    @property
    def is_law(self) -> bool:
        """Whether it is about what known faults do, but about none: it holds on every release, and yields to them."""
        return self.mechanism is not None and not self.upstream

    @property
    def mechanism_slug(self) -> str:
        """Slug of its mechanism; what this detector alone is about has the detector's id."""
        return self.mechanism.slug if self.mechanism else self.id

    def is_silent(self, settings: ApplicationSettings, profile: Profile) -> bool:
        """Return whether it says nothing of any application with these settings and releases."""
        if self.exactly_once is not None and settings.exactly_once is not self.exactly_once:
            return True
        return bool(self.silent_where) and any(profile.says(fact) is x for fact, x in self.silent_where)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a detector says of one subject."""

    subject: str  # distinguishes episodes of one detector on one task or store (an incarnation, a session)
    opened_at_us: int  # time of the deciding operation
    summary: str  # one sentence
    evidence: tuple[Evidence, ...]  # ordered chain
    severity: Severity  # how severe
    confidence: Confidence  # how sure
    store: str | None = None  # store concerned
    identity: str | None = None  # RocksDB IDENTITY of the incarnation concerned
    level: Level | None = None  # overrides the meta's level
    # keys; empty = those of the meta's that may affect the release, or none if it has its own mechanism
    upstream: tuple[str, ...] = ()
    affected: Affected = Affected.POSSIBLY  # is this release affected?
    missing_facts: tuple[str, ...] = ()  # settings that would decide more
    next_action: str = ""  # overrides the meta's, and its remedy
    remedy: Remedy | None = None  # of that; None = the meta's, or none of a step of its own
    mechanism: Mechanism | None = None  # overrides the meta's, and its issues
    # it comes from release or settings and stays as long as they do: there is nothing to do at once, and the
    # operator may accept it. Only for an exposure whose detector says what `lowers_risk`.
    lasting: bool = False
    # of a law: it is not said where a detector of a known fault reports the same damage
    gives_way: bool = True
    # task and incarnation that it began with, for the id of one whose subject other pods have, too; it stays
    began_with: str = ""

    def step(self, meta: DetectorMeta) -> str:
        """Give what is to be done: its own, or that of its detector."""
        return self.next_action or meta.next_action

    def remedy_by(self, meta: DetectorMeta) -> Remedy:
        """Give what becomes of the task's directory in that step."""
        return self.remedy or (Remedy.OTHER if self.next_action else meta.remedy)


@dataclass(frozen=True, slots=True)
class AgentCase:
    """What a detector of the agent itself may read: values only."""

    scope: ClassVar[Scope] = Scope.AGENT

    inventory: Inventory  # everything known
    now_us: int  # time of the judgement; never the wall clock
    # what was asked `once` while the inventory stays as it is; cases of one batch may share it
    answers: dict[tuple[Callable[[Any], Any], int], Any] = field(
        default_factory=dict, kw_only=True, repr=False, compare=False
    )

    def once(self, question: Callable[[About], T], about: About) -> T:
        """Answer a question that several detectors, or cases of one batch, ask of the same part of the inventory."""
        key = (question, id(about))
        try:
            return self.answers[key]  # type: ignore[no-any-return]
        except KeyError:
            answer = self.answers[key] = question(about)
            return answer

    def waited_us(self, since_us: int) -> int:
        """Return for how long something has lasted: by how much the clock was set forward meanwhile is no waiting."""
        return self.passed_us(since_us, self.now_us)

    def passed_us(self, since_us: int, until_us: int) -> int:
        """Return how much time passed between two moments, without that by which the clock was set forward."""
        jumped_us = 0
        for began_us, ended_us in self.once(_clock_steps, self.inventory):
            if since_us <= began_us and ended_us <= until_us:
                jumped_us += ended_us - began_us
        return until_us - since_us - jumped_us


def _clock_steps(inventory: Inventory) -> list[tuple[int, int]]:
    """List by when the clock was set forward, and to when."""
    return [(x.started_us, x.ended_us) for x in inventory.blind if x.cause == "clock-step" and x.ended_us]


@dataclass(frozen=True, slots=True)
class ApplicationCase(AgentCase):
    """What a detector of applications may read."""

    scope: ClassVar[Scope] = Scope.APPLICATION

    application: Application  # the one to judge
    # what the operator said of it
    settings: ApplicationSettings = field(default_factory=ApplicationSettings, kw_only=True)
    # which layout facts hold for its releases
    profile: Profile = field(default_factory=Profile, kw_only=True)
    # what is undecided of it, by settings that were not given
    decision: Decision | None = field(default=None, kw_only=True)

    def is_silent(self, meta: DetectorMeta) -> bool:
        """Return whether a detector says nothing of this application."""
        return meta.is_silent(self.settings, self.profile)

    def number_at(self, name: str, at_us: int) -> int | None:
        """Return a setting as it was told at a time; None = it was not told."""
        was_another = at_us < self.application.changed_us.get(name, 0)
        former = self.application.former.get(name) if was_another else None
        return self.settings.number(name) if former is None else int(former)

    def number_in(self, name: str, session: Session | None) -> int | None:
        """Return it as it was told when a session ended: what outlasts a change never ran with what was told before."""
        if session is None:
            return self.settings.number(name)
        ended_us = session.opened_us if session.release_unseen else session.released_us
        return self.number_at(name, self.now_us if ended_us is None else ended_us)

    def assumed_at(self, name: str, at_us: int) -> int | None:
        """Return the same, else the documented default; None = it has none."""
        told = self.number_at(name, at_us)
        return self.settings.default(name) if told is None else told

    def says(self, fact: Fact) -> Truth:
        """Ask the release profile."""
        return self.profile.says(fact)

    def affected(self, upstream: Upstream) -> Affected:
        """Return whether this application's releases are affected by an issue."""
        return self.profile.affected(upstream.releases)


@dataclass(frozen=True, slots=True)
class TaskCase(ApplicationCase):
    """What a detector of tasks may read."""

    scope: ClassVar[Scope] = Scope.TASK

    task: Task  # the one to judge

    def names_changelog_of(self, store_name: str) -> bool:
        """Return whether checkpoints of the task can name a store; False for one without its own changelog."""
        lists_all = self.says(Fact.UNKNOWN_OFFSET) is Truth.YES
        return self.task.names_changelog_of(store_name, lists_all=lists_all)


Judge = Callable[[Any], Iterable[Verdict]]
"""Takes the case of its detector's scope; `tests/architecture/test_parity.py` compares the two."""


@dataclass(frozen=True, slots=True)
class Detector:
    """A registered detector; `dockets` = the rules that it is made of (`agent.judging.rule`)."""

    meta: DetectorMeta
    judge: Judge
    dockets: tuple[Any, ...] = ()


def seconds(microseconds: int) -> str:
    """Write a duration for people: `0.4 s`, `12 s`, `30 days`."""
    value = microseconds / 1_000_000
    if value >= 2 * 86_400:
        return f"{value / 86_400:.0f} days"
    return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"
