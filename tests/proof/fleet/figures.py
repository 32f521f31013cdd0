"""Judge classes of two pods: how far the fleet's words are from the best that the events allow, whole and disturbed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import cast

from spark_rollup.fleet.answers import KEEP
from spark_rollup.fleet.events import Event
from tests.proof.classes import Lives, Script, kind
from tests.proof.eras import Era
from tests.proof.figures import MORE_WRITES, Miss, let_pass
from tests.proof.fleet.lives import PODS, Fleet, FleetClasses, is_wrong
from tests.proof.fleet.losses import in_any_order, losses
from tests.proof.fleet.telling import Audit, Verdict, audit, told
from tests.proof.life import DAMAGED

MOST_WRITES = 2
AT_REST: tuple[Script, ...] = ((), (("open", False),), (("start",), ("open", False)))
"""What is still to come until a copy is opened."""


class FleetMiss(StrEnum):
    """What a class may miss; the goal of each is 0."""

    FALSE_CERTAINTY = "false certainty"
    SILENT_DAMAGE = "silent, all damaged"
    LOUD_BENIGN = "loud, all benign"
    SILENT_MIXED = "silent, mixed"
    FALSE_ALL_CLEAR = "false all-clear"
    SURER = "surer by a loss"
    SAFER = "safer by a loss"


@dataclass(frozen=True)
class FleetPlan:
    """Which classes are judged: at most so many, drawn, of those of at most `words` words.

    Args of the dataclass:
        words: With the six or so of the beginning.
        severe: Of the damaged and of the mixed ones, each.
        others: Of the exposed and of the benign ones, each.
        disturbed: Of each kind, of which every single event is lost in turn, and more.
        standbys: Configured; None = the operator does not say.
    """

    words: int
    severe: int
    others: int
    disturbed: int
    standbys: int | None = 0


@dataclass
class FleetFigures:
    """What came out for one era."""

    era: Era
    plan: FleetPlan
    lives: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    judged: Counter[str] = field(default_factory=Counter)
    tellings: int = 0
    misses: dict[FleetMiss, list[tuple[Script, str]]] = field(
        default_factory=lambda: {miss: [] for miss in FleetMiss}
    )

    def unsaid(self) -> list[tuple[FleetMiss, Script, str]]:
        """List misses that nothing excuses."""
        return [
            (miss, script, what) for miss, found in self.misses.items() for script, what in found
            if not is_let_pass(self.era, miss, script)
        ]  # fmt: skip


class Jury:
    """Judges scripts of one era."""

    def __init__(self, era: Era, plan: FleetPlan) -> None:
        """Begin with nothing found."""
        self.found = FleetFigures(era, plan)
        self.classes = FleetClasses(era, MOST_WRITES)
        self.more = FleetClasses(era, MOST_WRITES + MORE_WRITES)
        self.dice = random.Random(f"{era.name}{plan}")

    def draws(self) -> FleetFigures:
        """Judge the classes that the plan names."""
        plan = self.found.plan
        for what, scripts in _sorted_by_kind(self.classes, self.found).items():
            most = plan.severe if what in ("damaged", "mixed") else plan.others
            for number, script in enumerate(self.dice.sample(scripts, min(most, len(scripts)))):
                self.judges(script, disturbed=number < plan.disturbed)
        return self.found

    def judges(self, script: Script, *, disturbed: bool) -> None:
        """Judge one class, as its events are, and with some of them lost."""
        era, lives = self.found.era, self.classes.along(script)
        events = told(era, script, self.found.plan.standbys)
        whole = audit(events)
        self.found.judged[kind(lives)] += 1
        misses = set(missed(era, lives, whole))
        for miss, why in misses & set(missed(era, self.more.along(script), whole)) if misses else ():
            self.found.misses[miss].append((script, why))
        if disturbed:
            _disturb(self.found, script, events, whole, self.dice)


def _sorted_by_kind(classes: FleetClasses, found: FleetFigures) -> dict[str, list[Script]]:
    scripts: dict[str, list[Script]] = {}
    for script, lives in classes.up_to(found.plan.words):
        scripts.setdefault(kind(lives), []).append(script)
        found.classes[kind(lives)] += 1
        found.lives += len(lives)
    return scripts


def missed(era: Era, lives: Lives, said: Audit) -> Iterator[tuple[FleetMiss, str]]:
    """Tell which goals a class misses, and by which word."""
    what, fleets = kind(lives), [cast("Fleet", x) for x in lives]
    for one in said.verdicts:
        counts = one.is_certain or (one.detector, one.confidence) == ("split-owner", "confirmed")
        if counts and not all(_holds(one, fleet) for fleet in fleets):
            yield FleetMiss.FALSE_CERTAINTY, one.detector
        if what == "benign" and (one.level, one.status) == ("damage", "open"):  # exposures: with one pod
            yield FleetMiss.LOUD_BENIGN, one.detector
    if what in ("damaged", "mixed") and not said.verdicts:
        yield FleetMiss.SILENT_DAMAGE if what == "damaged" else FleetMiss.SILENT_MIXED, ""
    for answer in said.answers:
        for pod in (answer.pod, *answer.healthy) if answer.is_harmless else ():
            if any(_is_wrong(era, fleet, pod) for fleet in fleets):
                yield FleetMiss.FALSE_ALL_CLEAR, f"{answer.pod} {answer.worst}, {pod} may be damaged"


def _number(pod: str) -> int:
    return PODS.index(pod.removeprefix("pod-"))


def _holds(one: Verdict, fleet: Fleet) -> bool:
    """Damage must be there, an exposure must at least have been; two owners are no matter of one pod."""
    if one.detector == "split-owner":
        return fleet.split
    truths = [fleet.pods[_number(pod)].truth for pod in one.pods]
    return any(DAMAGED in truth if one.level == "damage" else truth for truth in truths)


def _is_wrong(era: Era, fleet: Fleet, pod: str) -> bool:
    """Tell whether a copy is damaged that its pod keeps; one that was expelled is thrown away when it asks."""
    number = _number(pod)
    return fleet.cut_off != number and is_wrong(era, fleet.pods[number])


def _disturb(
    found: FleetFigures, script: Script, events: Sequence[Event], whole: Audit, dice: random.Random
) -> None:
    """Lose what can be lost: nothing may become surer or safer; and in any order the same must be said."""
    assert audit(in_any_order(events, dice)) == whole
    sure = {(x.detector, x.pods, x.is_certain) for x in whole.verdicts if x.confidence == "confirmed"}
    harmless = {x.pod for x in whole.answers if x.is_harmless}
    # that a copy lags is seen by luck: an offset that no agent sees counts as recent
    lagging = {x.pod for x in whole.answers if x.worst == KEEP and x.by_lag}
    for what, left in losses(events, dice):
        found.tellings += 1
        said = audit(left)
        for x in said.verdicts:
            known = {(x.detector, x.pods, certain) for certain in {x.is_certain, True}}
            if x.confidence == "confirmed" and not known & sure:
                found.misses[FleetMiss.SURER].append((script, f"{x.detector}: {what}"))
        for answer in said.answers:
            if answer.is_harmless and answer.pod not in harmless | lagging:
                found.misses[FleetMiss.SAFER].append((script, f"{answer.pod} {answer.worst}: {what}"))


def is_let_pass(era: Era, miss: FleetMiss, script: Script) -> bool:
    """What no agent says, no fleet can: see `let_pass`; a process that does nothing between makes no difference."""
    if miss in (FleetMiss.SILENT_DAMAGE, FleetMiss.SILENT_MIXED, FleetMiss.FALSE_ALL_CLEAR):
        own = [_own(script, pod) for pod in PODS]
        return any(let_pass(era, Miss.SILENT_MIXED, (*x, *more)) for x in own for more in AT_REST)
    return False


def _own(script: Script, pod: str) -> Script:
    own = [word[1:] for word in script if word[0] == pod]
    idle = [
        number for number in range(len(own) - 1) if (own[number][0], own[number + 1][0]) == ("start", "kill")
    ]
    return tuple(word for number, word in enumerate(own) if number not in idle and number - 1 not in idle)
