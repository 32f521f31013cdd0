"""What is undecided of an application: what is wrong under which answer, and how the answer is found."""

from __future__ import annotations

from collections.abc import Mapping
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
    """What holds under some answers."""

    answers: tuple[str, ...]  # in words, one setting after the other: "exactly-once", "without standbys"
    incidents: tuple[Incident[Finding], ...]  # what is wrong then, the worst first; empty = nothing

    @property
    def severity(self) -> Severity | None:
        """The worst of it; None = nothing is wrong."""
        return max((x.severity for x in self.incidents), key=lambda x: x.rank, default=None)


@dataclass(frozen=True, slots=True)
class Decision:
    """What is undecided of an application."""

    application_id: str  # the application
    question: tuple[str, ...]  # the one or two settings that decide, the most telling first
    # what holds under which answers, the worst first. Findings that hold in every world are in none.
    branches: tuple[Branch, ...]
    least: Severity | None  # the worst severity that every world has; None = in some world nothing is wrong
    sure: bool  # whether the question decides all of it
    unasked: int = 0  # tasks that look suspicious, too, and were not judged in every world

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
    said: list[str] = []
    before: tuple[str, str] | None = None
    for branch in decision.branches:
        if branch.incidents:
            what = issues, sentence = _issues(branch), _sentence(branch)
            sure = f"{'a ' if branch.severity is Severity.WARNING else ''}{branch.severity}"
            sure += f" ({branch.incidents[0].confidence}"
            given = f"If it runs {', '.join(branch.answers)}" if branch.answers else "Otherwise"
            said.append(
                f"{given}, the same is {sure})"
                if what == before
                else f"{given}, this is {sure}{issues}): {sentence}"
            )
            before = what
    other_is = "it is no incident" if decision.least is None else "nothing more is reported"
    none = any(not x.incidents for x in decision.branches)
    rest = f" With any other answer {other_is}." if none else ""
    more = "" if decision.sure else " Other settings may matter, too."
    others = f" {decision.unasked} more tasks look suspicious." if decision.unasked else ""
    return f"{'. '.join(said)}.{rest}{more}{others}"


def in_kafkas_words(question: tuple[str, ...]) -> str:
    """Name the settings that decide: `processing.guarantee and num.standby.replicas`."""
    return " and ".join(_KAFKA_NAMES[x] for x in question)


def next_action(decision: Decision) -> str:
    """Say how the answer is found, and what to do with it."""
    names = in_kafkas_words(tuple(x for x in decision.question if x != RELEASE))
    found = [f"The application logs its settings at its start (`{_grep(decision)}`)."] if names else []
    found += ["The name of the kafka-streams jar has the release."] if RELEASE in decision.question else []
    told = " ".join(f"--set {decision.application_id}:{x}=VALUE" for x in decision.question)
    return (
        f"Find out {in_kafkas_words(decision.question)}. {' '.join(found)} Then give statewarden {told}."
        " Until you know, do not start or restart the application; if you must, copy the task directory to a safe"
        " place first."
    )


def _grep(decision: Decision) -> str:
    """Give what finds the settings in the log that the application writes at its start."""
    return f"grep -E '{'|'.join(_KAFKA_NAMES[x] for x in decision.question if x != RELEASE)}' LOG"


def _sentence(branch: Branch) -> str:
    first, *others = branch.incidents
    more = f", and {len(others)} more {'incident' if len(others) == 1 else 'incidents'}" if others else ""
    return f"{first.sentence.rstrip('.')}{more}"


def _issues(branch: Branch) -> str:
    return "".join(f", {x}" for x in branch.incidents[0].upstream if x.startswith("KAFKA-"))


_KAFKA_NAMES: Mapping[str, str] = {
    GUARANTEE: "processing.guarantee",
    RELEASE: "the Kafka Streams release",
    STANDBYS: "num.standby.replicas",
    TRANSACTIONAL: "enable.transactional.statestores",
}
