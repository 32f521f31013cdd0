"""Which of two incidents about the same task gives its instruction first. Pure.

Two processes on one directory make every repair vain; where the changelog lacks records, a copy that another incident
says to remove may be the only complete one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agent.contract.events import Level, Severity, Status
from agent.contract.finding import Finding
from agent.contract.mechanisms import ONLY_OF_DAMAGE, comes_first

_EVERYWHERE, _SOMEWHERE = "*", None
"""Beside pods: what names none concerns all, and what is about any of them concerns it."""


@dataclass(frozen=True, slots=True)
class Precedence:
    """What an open incident asks for, and where."""

    incident_id: str
    home: tuple[str, ...]  # namespace and application; of one agent the application
    tasks: tuple[str, ...]  # tasks; none: the application as a whole
    pods: tuple[str, ...]  # pods; none: all
    detector: str  # whose instruction it is
    comes_first: int  # its place before the instructions of others, from 1; 0 = none
    since_us: int  # when the incident began


def claim(
    incident_id: str,
    home: tuple[str, ...],
    tasks: tuple[str, ...],
    pods: tuple[str, ...],
    says: Finding,
    since_us: int,
) -> Precedence:
    """Make the claim of an incident from the finding whose instruction is its own."""
    place = comes_first(says.detector) if asks_first(says) else 0
    return Precedence(incident_id, home, tasks, pods, says.detector, place, since_us)


def asks_first(one: Finding) -> bool:
    """Return whether a finding's instruction comes before others. A remark is no instruction."""
    if one.detector in ONLY_OF_DAMAGE and one.level is not Level.DAMAGE:
        return False
    return comes_first(one.detector) > 0 and one.status is Status.OPEN and one.severity is not Severity.INFO


def precedents(claims: Iterable[Precedence]) -> dict[Precedence, Precedence]:
    """Find for each incident the one about the same task whose instruction must come first.

    One about the application as a whole comes first on its own pods.

    Gives by claim; without those that nothing precedes.
    """
    every = list(claims)
    first: dict[tuple[object, ...], Precedence] = {}
    for one in sorted((x for x in every if x.comes_first), key=_urgency):
        for place in _offered(one):
            first.setdefault(place, one)
    found = {}
    for one in every:
        before = min((first[x] for x in _sought(one) if x in first), key=_urgency, default=one)
        if before != one:
            found[one] = before
    return found


def after(first: Precedence) -> str:
    """Write the next step of an incident that another one precedes."""
    return f"First do what incident {first.incident_id} ({first.detector}) asks for; remove nothing before."


def _urgency(one: Precedence) -> tuple[int, int, str]:
    return one.comes_first, one.since_us, one.incident_id


def _offered(one: Precedence) -> list[tuple[object, ...]]:
    """List the places at which an instruction comes first: its tasks, and its pods for what names no task."""
    kind = "any" if one.tasks else "whole"
    pods = (*one.pods, _SOMEWHERE) if one.pods else (_EVERYWHERE, _SOMEWHERE)
    return [*_of_tasks(one), *((kind, one.home, x) for x in pods)]


def _sought(one: Precedence) -> list[tuple[object, ...]]:
    """List the places at which something could come before it."""
    kinds = ("whole",) if one.tasks else ("whole", "any")
    pods = (*one.pods, _EVERYWHERE) if one.pods else (_SOMEWHERE,)
    return [*_of_tasks(one), *((kind, one.home, x) for kind in kinds for x in pods)]


def _of_tasks(one: Precedence) -> list[tuple[object, ...]]:
    return [("task", one.home, x) for x in one.tasks]
