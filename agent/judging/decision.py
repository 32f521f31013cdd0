"""What is undecided of an application: what is wrong under which answer, and how the answer is found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agent.contract.events import Severity
from agent.contract.finding import Finding
from agent.contract.incidents import Incident

GUARANTEE = "processing_guarantee"
RELEASE = "kafka_streams_version"
STANDBYS = "num_standby_replicas"
TRANSACTIONAL = "enable_transactional_statestores"
ASKED = (GUARANTEE, RELEASE, STANDBYS, TRANSACTIONAL)
"""Settings that decide verdicts, the one first whose value an operator knows best."""


@dataclass(frozen=True, slots=True)
class Branch:
    """What holds under some answers.

    Args of the dataclass:
        answers: One setting after the other, in the order of the question: the values that lead here, in words.
        incidents: What is wrong then, the worst first; empty = nothing.
    """

    answers: tuple[tuple[str, ...], ...]
    incidents: tuple[Incident[Finding], ...]

    @property
    def severity(self) -> Severity | None:
        """The worst of it; None = nothing is wrong."""
        return max((x.severity for x in self.incidents), key=lambda x: x.rank, default=None)


@dataclass(frozen=True, slots=True)
class Decision:
    """What is undecided of an application.

    Args of the dataclass:
        application_id: The application.
        question: The one or two settings that decide, the most telling first.
        branches: What holds under which answers, the worst first. Findings that hold in every world are in none.
        least: The worst severity that every world has; None = in some world nothing is wrong.
        sure: Whether the question decides all of it.
        unasked: Tasks that look suspicious, too, and were not judged in every world.
    """

    application_id: str
    question: tuple[str, ...]
    branches: tuple[Branch, ...]
    least: Severity | None
    sure: bool
    unasked: int = 0

    @property
    def severity(self) -> Severity:
        """The worst that may be."""
        return max((x.severity for x in self.branches if x.severity), key=lambda x: x.rank)

    @property
    def since_us(self) -> int:
        """When the first of what may be wrong began."""
        return min(incident.since_us for branch in self.branches for incident in branch.incidents)

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks that may be damaged or exposed."""
        return tuple(sorted({x for branch in self.branches for one in branch.incidents for x in one.tasks}))


def summary(decision: Decision) -> str:
    """Say it in a few sentences: what is wrong under which answer, and how many questions decide."""
    said = [f"If {_condition(decision.question, x)}: {_what(x)}" for x in decision.branches if x.incidents]
    rest = " Otherwise nothing more is wrong." if any(not x.incidents for x in decision.branches) else ""
    names = " and ".join(_KAFKA_NAMES[x] for x in decision.question)
    decides = "decides" if len(decision.question) == 1 else "decide"
    more = "" if decision.sure else " It may take more settings."
    others = f" {decision.unasked} more tasks look suspicious." if decision.unasked else ""
    return f"{' '.join(said)}{rest} {names[:1].upper()}{names[1:]} {decides}.{more}{others}"


def next_action(decision: Decision) -> str:
    """Say how the answer is found, and what to do with it."""
    found = " ".join(_FOUND[x] for x in decision.question)
    told = " ".join(f"--set {decision.application_id}:{x}=VALUE" for x in decision.question)
    return f"{found} Then add {told}. Until you know, keep a copy of the task directory before any start."


def _condition(question: Iterable[str], branch: Branch) -> str:
    parts = (
        f"{_CONDITIONS[name]} {' or '.join(values)}"
        for name, values in zip(question, branch.answers, strict=True)
        if values
    )
    return " and ".join(parts)


def _what(branch: Branch) -> str:
    first, *others = branch.incidents
    issues = f" ({', '.join(first.upstream)})" if first.upstream else ""
    sentence = first.sentence.rstrip(".")
    more = f" And {len(others)} more {'incident' if len(others) == 1 else 'incidents'}." if others else ""
    return f"{first.severity.value}, {first.confidence.value}: {sentence}{issues}.{more}"


_KAFKA_NAMES: Mapping[str, str] = {
    GUARANTEE: "processing.guarantee",
    RELEASE: "the release of Kafka Streams",
    STANDBYS: "num.standby.replicas",
    TRANSACTIONAL: "enable.transactional.statestores",
}
_CONDITIONS: Mapping[str, str] = {
    GUARANTEE: "processing.guarantee is",
    RELEASE: "it runs Kafka Streams",
    STANDBYS: "num.standby.replicas is",
    TRANSACTIONAL: "enable.transactional.statestores is",
}
_FOUND: Mapping[str, str] = {
    GUARANTEE: "The application logs processing.guarantee at its start (grep 'processing.guarantee ='); if its"
    " properties do not have it, it is at_least_once.",
    RELEASE: "The name of the kafka-streams jar has the release.",
    STANDBYS: "The application logs num.standby.replicas at its start; if its properties do not have it, it is 0.",
    TRANSACTIONAL: "The application logs enable.transactional.statestores at its start; the default is false.",
}
