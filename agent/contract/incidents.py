"""What names an incident, what its findings are for it, and whose instruction comes first: the agent's and the fleet's.

Pure: values in, values out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

from agent.contract.events import Confidence, Level, Severity, Status
from agent.contract.mechanisms import ONLY_OF_DAMAGE, comes_first

NAMED = 6
"""Tasks or pods that a sentence names; of more it gives the number."""

ALSO = 2
"""Other sentences of the same detector that an incident's sentence repeats, the worst first."""


class EvidenceRole(StrEnum):
    """What a finding is for its incident."""

    CAUSE = "cause"
    CONSEQUENCE = "consequence"
    CONFIRMATION = "confirmation"
    REFUTATION = "refutation"


class Statement(Protocol):
    """What incidents ask of a finding, the agent's or the fleet's."""

    @property
    def detector(self) -> str:
        """Id of the detector or rule."""
        ...

    @property
    def level(self) -> Level:
        """Kind of statement."""
        ...

    @property
    def severity(self) -> Severity:
        """How severe."""
        ...

    @property
    def confidence(self) -> Confidence:
        """How sure."""
        ...

    @property
    def status(self) -> Status:
        """Open or resolved."""
        ...

    @property
    def task_id(self) -> str | None:
        """Task; None for the application."""
        ...

    @property
    def store(self) -> str | None:
        """Store; None for the task."""
        ...

    @property
    def opened_at_us(self) -> int:
        """When it opened."""
        ...

    @property
    def summary(self) -> str:
        """One sentence."""
        ...


_AROUND = ".,:;`'()"

_EVERYWHERE, _SOMEWHERE = "*", None
"""Beside pods: what names none concerns all, and what is about any of them concerns it."""

S = TypeVar("S", bound="Statement")

Weight = tuple[bool, bool, int, bool, int]


def incident_of(finding_id: str) -> str:
    """Make the id of the incident that begins with this finding."""
    return f"i-{finding_id[:12]}"


def weight(one: Statement) -> Weight:
    """Order what can name an incident, the first first: no remark, what is open, worst, about damage, surest.

    So what was severe and is over is not hidden behind a remark that is still open.
    """
    return (
        one.severity is Severity.INFO,
        one.status is not Status.OPEN,
        -one.severity.rank,
        one.level is not Level.DAMAGE,
        -one.confidence.rank,
    )


def role(lead: Statement, one: Statement) -> EvidenceRole:
    """The same detector says the same of other tasks and stores; what opened before the lead led to it."""
    if one.detector == lead.detector:
        return EvidenceRole.CAUSE if one is lead else EvidenceRole.CONFIRMATION
    return EvidenceRole.CAUSE if one.opened_at_us < lead.opened_at_us else EvidenceRole.CONSEQUENCE


def sentence(
    lead: S, group: Iterable[S], names: Callable[[S], Collection[str | None]] = lambda x: (x.task_id, x.store)
) -> str:
    """Say what is wrong, of which other tasks the same is true, and what else the same detector says of others.

    The same is what has the same sentence, but for names and numbers: one detector may say good and bad of two tasks.

    Args:
        lead: Whose sentence it is.
        group: All findings of the incident.
        names: Names that differ from one to the next in sentences that mean the same.
    """
    others = [x for x in group if x.detector == lead.detector and x.task_id and x.status is lead.status]
    every = {name for x in (lead, *others) for name in names(x)}
    said = {meaning(lead.summary, every)}
    same = {x.task_id or "" for x in others if meaning(x.summary, every) in said}
    parts = [with_other_tasks(lead.summary, "task", same - {lead.task_id})]
    remark = lead.severity is Severity.INFO
    for one in sorted(others, key=lambda x: (weight(x), x.opened_at_us, x.task_id or "")):
        means = meaning(one.summary, every)
        if means not in said and (remark or one.severity is not Severity.INFO) and len(parts) <= ALSO:
            said.add(means)
            parts.append(f"Also: {one.summary}")
    return " ".join(parts)


def meaning(text: str, names: Collection[str | None]) -> str:
    """Give a sentence without what differs from one task to the next: names, and each word with a digit in it."""
    return " ".join(
        "#" if word.strip(_AROUND) in names or any(x.isdigit() for x in word) else word
        for word in text.split()
    )


def with_other_tasks(summary: str, kind: str, others: Collection[str]) -> str:
    """Add to a summary what else it is true of: `task` or `pod`, and their names."""
    if not others:
        return summary
    stop = "" if summary.endswith(".") else "."
    among = f"{'in' if kind == 'task' else 'on'} {kind}{'' if len(others) == 1 else 's'}"
    return f"{summary}{stop} The same {among} {named(sorted(others))}."


def repeat_for(asked: str, task_id: str | None, here: Collection[str], elsewhere: Sequence[str] = ()) -> str:
    """Add to the instruction about one task for which others it is to be followed.

    One process has several tasks: who removes the directory of one of them and starts again is too late for the rest.

    Args:
        asked: The instruction.
        task_id: Task of which it is.
        here: Other tasks of the same process.
        elsewhere: Tasks of other pods, with the pods.

    Returns:
        The instruction as it is where it is about no single task's directory.
    """
    if not task_id or (task_id not in asked and "task directory" not in asked):
        return asked
    first = "Before the start do the same" if "remove t" in asked and "start" in asked else "Do the same"
    # a command at the end stays one that can be copied
    parts = [asked if asked.endswith(".") else f"{asked} ."]
    if here:
        parts.append(f"{first} for {named(sorted(here))}.")
    if elsewhere:
        parts.append(f"Then the same for {named(elsewhere)}.")
    return " ".join(parts) if len(parts) > 1 else asked


def named(names: Sequence[str]) -> str:
    """List tasks or pods for a line of text, at most `NAMED`; the rest is a number."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def instruction(lead: S, group: Iterable[S]) -> S:
    """Choose the finding whose next step is the incident's: the lead, but for an open one whose step comes first."""
    urgent = [] if _asks(lead) else [x for x in group if _asks(x)]
    return min(
        urgent,
        key=lambda x: (comes_first(x.detector), weight(x), x.opened_at_us, x.task_id or ""),
        default=lead,
    )


@dataclass(frozen=True, slots=True)
class Precedence:
    """What an open incident asks for, and where.

    Args of the dataclass:
        incident_id: The incident.
        home: Namespace and application; of one agent the application.
        tasks: Tasks; none: the application as a whole.
        pods: Pods; none: all.
        detector: Whose instruction it is.
        comes_first: Its place before the instructions of others, from 1; 0 = none.
        since_us: When the incident began.
    """

    incident_id: str
    home: tuple[str, ...]
    tasks: tuple[str, ...]
    pods: tuple[str, ...]
    detector: str
    comes_first: int
    since_us: int


def claim(
    incident_id: str,
    home: tuple[str, ...],
    tasks: tuple[str, ...],
    pods: tuple[str, ...],
    says: Statement,
    since_us: int,
) -> Precedence:
    """Make the claim of an incident from the finding whose instruction is its own."""
    place = comes_first(says.detector) if _asks(says) else 0
    return Precedence(incident_id, home, tasks, pods, says.detector, place, since_us)


def _asks(one: Statement) -> bool:
    """Return whether a finding's instruction comes before others. A remark is no instruction."""
    if one.detector in ONLY_OF_DAMAGE and one.level is not Level.DAMAGE:
        return False
    return comes_first(one.detector) > 0 and one.status is Status.OPEN and one.severity is not Severity.INFO


def precedents(claims: Iterable[Precedence]) -> dict[Precedence, Precedence]:
    """Find for each incident the one about the same task whose instruction must come first.

    One about the application as a whole comes first on its own pods.

    Returns:
        By claim; without those that nothing precedes.
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
