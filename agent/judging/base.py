"""What a detector is: metadata, a pure function, and the case that it judges, by its scope."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, TypeVar

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.finding import Evidence as Evidence
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from agent.inventory.model import Application, Inventory, Task
from agent.inventory.settings import ApplicationSettings
from agent.judging.decision import Decision
from agent.layout.facts import Fact
from agent.layout.profile import Profile, Truth
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
    """An upstream issue, with the releases it affects.

    Args of the dataclass:
        key: Issue key, or `no upstream issue`.
        releases: Affected ranges, inclusive.
        fixed: Where the fix shipped, for people.
    """

    key: str
    releases: tuple[ReleaseRange, ...]
    fixed: str


@dataclass(frozen=True, slots=True)
class DetectorMeta:
    """What a detector says of itself.

    Args of the dataclass:
        id: Kebab-case id, also the name of its page.
        title: What it finds, in a few words.
        level: Kind of statement.
        severity: The highest it gets.
        kind: Event, condition or damage.
        scope: What it judges.
        needs: Settings without which it stays silent or unsure.
        refreshed: While a finding is open, a new summary replaces the old one, with its evidence.
        upstream: Issues it names.
        mechanism: What goes wrong, unless a verdict says something else; None = what this detector alone is about.
        next_action: What is safe to do next.
        consequence: What it means for the data, one or two sentences.
        lowers_risk: What makes damage from a lasting exposure less likely; empty = none of its verdicts lasts.
        exactly_once: It judges only applications that are known to run exactly-once (True) or at-least-once (False).
        alert_after_m: Minutes that a warning must last before its alert; None = by the level.
        twin: Its benign twin; None = no run looks like what it judges: a volume, or settings.
        silent_where: Answers of the release profile, each of which alone makes it silent.
        waits_us: How long after a change time alone can still bring a verdict: each deadline that it has, counted from
            the change; empty = time decides nothing. None = always: its verdict also depends on what has no transition
            of the same task (other tasks, for example).
    """

    id: str
    title: str
    level: Level
    severity: Severity
    kind: Kind
    scope: Scope
    next_action: str
    needs: tuple[str, ...] = ()
    refreshed: bool = False
    upstream: tuple[Upstream, ...] = ()
    mechanism: Mechanism | None = None
    consequence: str = ""
    lowers_risk: str = ""
    exactly_once: bool | None = None
    alert_after_m: int | None = None
    twin: Twin | None = None
    silent_where: tuple[tuple[Fact, Truth], ...] = ()
    waits_us: tuple[int, ...] | None = None

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
        return any(profile.says(fact) is answer for fact, answer in self.silent_where)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a detector says of one subject.

    Args of the dataclass:
        subject: Distinguishes episodes of one detector on one task or store (an incarnation, a session).
        opened_at_us: Time of the deciding operation.
        summary: One sentence.
        evidence: Ordered chain.
        severity: How severe.
        confidence: How sure.
        store: Store concerned.
        identity: RocksDB IDENTITY of the incarnation concerned.
        level: Overrides the meta's level.
        upstream: Keys; empty = those of the meta's that may affect the release, or none if it has its own mechanism.
        affected: Is this release affected?
        missing_facts: Settings that would decide more.
        next_action: Overrides the meta's.
        mechanism: Overrides the meta's, and its issues.
        lasting: It comes from release or settings and stays as long as they do: there is nothing to do at once, and
            the operator may accept it. Only for an exposure whose detector says what `lowers_risk`.
        gives_way: Of a law: it is not said where a detector of a known fault reports the same damage.
    """

    subject: str
    opened_at_us: int
    summary: str
    evidence: tuple[Evidence, ...]
    severity: Severity
    confidence: Confidence
    store: str | None = None
    identity: str | None = None
    level: Level | None = None
    upstream: tuple[str, ...] = ()
    affected: Affected = Affected.POSSIBLY
    missing_facts: tuple[str, ...] = ()
    next_action: str = ""
    mechanism: Mechanism | None = None
    lasting: bool = False
    gives_way: bool = True


@dataclass(frozen=True, slots=True)
class AgentCase:
    """What a detector of the agent itself may read: values only.

    Args of the dataclass:
        inventory: Everything known.
        now_us: Time of the judgement; never the wall clock.
        answers: What was asked `once` while the inventory stays as it is; cases of one batch may share it.
    """

    scope: ClassVar[Scope] = Scope.AGENT

    inventory: Inventory
    now_us: int
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
    return [
        (x.started_us, x.ended_us)
        for x in inventory.blind
        if x.cause == "clock-step" and x.ended_us is not None
    ]


@dataclass(frozen=True, slots=True)
class ApplicationCase(AgentCase):
    """What a detector of applications may read.

    Args of the dataclass:
        application: The one to judge.
        settings: What the operator said of it.
        profile: Which layout facts hold for its releases.
        decision: What is undecided of it, by settings that were not given.
    """

    scope: ClassVar[Scope] = Scope.APPLICATION

    application: Application
    settings: ApplicationSettings = field(default_factory=ApplicationSettings, kw_only=True)
    profile: Profile = field(default_factory=Profile, kw_only=True)
    decision: Decision | None = field(default=None, kw_only=True)

    def is_silent(self, meta: DetectorMeta) -> bool:
        """Return whether a detector says nothing of this application."""
        return meta.is_silent(self.settings, self.profile)

    def says(self, fact: Fact) -> Truth:
        """Ask the release profile."""
        return self.profile.says(fact)

    def affected(self, upstream: Upstream) -> Affected:
        """Return whether this application's releases are affected by an issue."""
        return self.profile.affected(upstream.releases)


@dataclass(frozen=True, slots=True)
class TaskCase(ApplicationCase):
    """What a detector of tasks may read.

    Args of the dataclass:
        task: The one to judge.
    """

    scope: ClassVar[Scope] = Scope.TASK

    task: Task

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
