"""What a detector is: metadata, a pure function, and the case that it judges, by its scope."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from agent.inventory.model import Application, Inventory, Task
from agent.inventory.settings import ApplicationSettings
from agent.layout.facts import Fact
from agent.layout.profile import Profile, Truth
from agent.layout.releases import ReleaseRange


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


class Maturity(StrEnum):
    """How much evidence of quiet and of detection there is."""

    EXPERIMENTAL = "experimental"
    STABLE = "stable"


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
        maturity: Experimental or stable.
        mechanism: What goes wrong; None = what this detector alone is about.
        is_law: It is about no known fault: it holds on every release, and yields to those that are about one.
        next_action: What is safe to do next.
        consequence: What it means for the data, one or two sentences.
        alert_after_m: Minutes that a warning must last before its alert; None = by the level.
        twin: Its benign twin; None = no run looks like what it judges: a volume, or settings.
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
    maturity: Maturity = Maturity.EXPERIMENTAL
    mechanism: Mechanism | None = None
    is_law: bool = False
    consequence: str = ""
    alert_after_m: int | None = None
    twin: Twin | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """One observation in the chain that decided a verdict."""

    at_us: int
    what: str
    where: str


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
        upstream: Keys; empty = all of the meta's.
        affected: Is this release affected?
        missing_facts: Settings that would decide more.
        next_action: Overrides the meta's.
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


@dataclass(frozen=True, slots=True)
class AgentCase:
    """What a detector of the agent itself may read: values only.

    Args of the dataclass:
        inventory: Everything known.
        now_us: Time of the judgement; never the wall clock.
    """

    scope: ClassVar[Scope] = Scope.AGENT

    inventory: Inventory
    now_us: int

    def waited_us(self, since_us: int) -> int:
        """Return for how long something has lasted: by how much the clock was set forward meanwhile is no waiting."""
        jumped_us = sum(
            x.ended_us - x.started_us
            for x in self.inventory.blind
            if x.cause == "clock-step" and x.ended_us is not None
            if since_us <= x.started_us and x.ended_us <= self.now_us
        )
        return self.now_us - since_us - jumped_us


@dataclass(frozen=True, slots=True)
class ApplicationCase(AgentCase):
    """What a detector of applications may read.

    Args of the dataclass:
        application: The one to judge.
        settings: What the operator said of it.
        profile: Which layout facts hold for its releases.
        silenced: Setting -> ids of the detectors that need it (for the finding on missing facts).
    """

    scope: ClassVar[Scope] = Scope.APPLICATION

    application: Application
    settings: ApplicationSettings = field(default_factory=ApplicationSettings, kw_only=True)
    profile: Profile = field(default_factory=Profile, kw_only=True)
    silenced: Mapping[str, tuple[str, ...]] = field(default_factory=dict, kw_only=True)

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
    """A registered detector."""

    meta: DetectorMeta
    judge: Judge


def silenced_by(detectors: Iterable[Detector]) -> dict[str, tuple[str, ...]]:
    """List by setting, in the order of their names, the detectors that cannot decide everything without it."""
    wanted = sorted((name, detector.meta.id) for detector in detectors for name in detector.meta.needs)
    return {name: tuple(id_ for _, id_ in group) for name, group in groupby(wanted, key=itemgetter(0))}


def seconds(microseconds: int) -> str:
    """Write a duration for people: `0.4 s`, `12 s`."""
    value = microseconds / 1_000_000
    return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"
