"""Compare what the agents said with what is true of a scenario."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tests.live.plan import EOS, is_exposed
from tests.live.stage import Stage
from tests.support.shipped import Data

if TYPE_CHECKING:
    from tests.live.scenario import Scenario

LOUD = ("warning", "critical")
EXPOSURES = {"stale-eos-checkpoint", "skipped-eos-wipe"}
"""Every exactly-once application of a release with KAFKA-20685 is exposed, and suspect after every crash: a warning."""
AFTER_A_CRASH = {"skipped-eos-wipe"}
"""Of these: nothing is suspect before anything went wrong. An orderly restart that said so passed for right once."""
UNCLEAN = ("is killed", "is frozen", "timed out", "the broker goes on")
"""How marks of what goes wrong end."""


@dataclass(frozen=True, slots=True)
class Said:
    """The loudest word of one finding.

    Args of the dataclass:
        agent: Name of the agent, `POD-told` or `POD-untold`.
        when: Mark of the driver's timeline after which the finding opened.
        incident: Id of the incident that it is evidence of.
        is_open: Whether its last word was that it is open; what happened at a moment never is.
    """

    agent: str
    detector: str
    task: str
    store: str
    severity: str
    confidence: str
    affected: str
    summary: str
    when: str
    opened_at_us: int
    incident: str = ""
    is_open: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one run."""

    scenario: str
    release: str
    guarantee: str
    missed: tuple[str, ...]
    false_alarms: tuple[Said, ...]
    loud: tuple[Said, ...]
    quiet: tuple[Said, ...]
    proof: tuple[str, ...]
    marks: tuple[tuple[int, str], ...] = field(default=())
    problem: str = ""
    incidents: tuple[str, ...] = ()
    """Where the bug is not exactly one incident."""

    @property
    def is_wrong(self) -> bool:
        """Whether a verdict, or the run itself, was not as it must be."""
        return bool(self.missed or self.false_alarms or self.incidents or self.problem)

    def line(self) -> str:
        """One line for people."""
        verdict = (
            "PROBLEM"
            if self.problem
            else "MISSED"
            if self.missed
            else "FALSE ALARM"
            if self.false_alarms
            else "INCIDENTS"
            if self.incidents
            else "right"
        )
        found = sorted({said.detector for said in self.loud})
        return f"{verdict:12}{self.release:7} {self.guarantee:14} {self.scenario:28} {' '.join(found) or '-'}"

    def details(self) -> list[str]:
        """What stands behind the line."""
        lines = [f"problem: {self.problem}"] if self.problem else []
        lines += [f"missed: {what}" for what in self.missed]
        lines += [f"incidents: {what}" for what in self.incidents]
        lines += [f"proof: {what}" for what in self.proof]
        for word, saids in (("FALSE", self.false_alarms), ("loud", self.loud)):
            for said in saids:
                if word == "loud" and said in self.false_alarms:
                    continue
                lines.append(
                    f"{word}: {said.agent} {said.detector} {said.task}/{said.store} {said.severity} {said.confidence} "
                    f"{said.affected} after «{said.when}»: {said.summary}"
                )
        names = sorted({(said.detector, said.agent) for said in self.quiet})
        lines.append("info: " + ", ".join(f"{name} ({agent})" for name, agent in names))
        return lines

    def as_json(self) -> dict[str, Any]:
        """For a results file."""
        keep = ("agent", "detector", "task", "store", "severity", "confidence", "affected", "summary", "when")
        rows = [{name: getattr(said, name) for name in keep} for said in (*self.loud, *self.quiet)]
        return {
            "scenario": self.scenario,
            "release": self.release,
            "guarantee": self.guarantee,
            "missed": list(self.missed),
            "false_alarms": len(self.false_alarms),
            "incidents": list(self.incidents),
            "problem": self.problem,
            "proof": list(self.proof),
            "findings": rows,
        }


def judge(name: str, scenario: Scenario, stage: Stage, records: list[Data], problem: str) -> Outcome:
    """Take each finding at its loudest and compare.

    Args:
        name: Of the scenario.
        scenario: What must and what may be found.
        stage: With its marks.
        records: Everything shipped.
        problem: Why the scenario broke off; empty = it did not.
    """
    words = loudest(records, stage.marks)
    loud = tuple(said for said in words if said.severity in LOUD)
    quiet = tuple(said for said in words if said.severity not in LOUD)
    told = {
        said.detector
        for said in loud
        if said.agent.endswith("-told") and scenario.severity in ("", said.severity)
    }
    is_affected = scenario.affected(stage.plan)
    must = scenario.must(stage.plan)
    missed = () if not must or told & set(must) else (" or ".join(must),)
    allowed = {*scenario.always, *must, *(scenario.allow if is_affected else ())}
    ran = (stage.plan.release, *filter(None, [stage.plan.before]))
    exposed = stage.plan.guarantee == EOS and any(map(is_exposed, ran))
    false_alarms = tuple(
        said
        for said in loud
        if said.detector not in allowed and not (exposed and is_exposure(said, stage.marks))
    )
    plan = stage.plan
    return Outcome(
        name,
        plan.release,
        plan.guarantee,
        missed,
        false_alarms,
        loud,
        quiet,
        tuple(stage.proof),
        tuple(stage.marks),
        problem,
    )


def loudest(records: Iterable[Data], marks: Sequence[tuple[int, str]]) -> list[Said]:
    """Take each finding at its loudest.

    Args:
        records: Everything shipped.
        marks: The driver's timeline.
    """
    found: dict[tuple[str, str], Said] = {}
    is_open: dict[tuple[str, str], bool] = {}
    for data in records:
        if data["kind"] != "finding":
            continue
        said = _said(data, marks)
        key = (said.agent, data["finding_id"])
        is_open[key] = data["status"] == "open"
        before = found.get(key)
        if before is None or rank(said) > rank(before):
            found[key] = said
    return [replace(said, is_open=is_open[key]) for key, said in found.items()]


def is_exposure(said: Said, marks: list[tuple[int, str]]) -> bool:
    """Tell whether a word about an exposed application is what must be said of any such application."""
    if said.detector not in EXPOSURES or said.severity != "warning":
        return False
    went_wrong = any(at_us <= said.opened_at_us and what.endswith(UNCLEAN) for at_us, what in marks)
    return went_wrong or said.detector not in AFTER_A_CRASH


def rank(said: Said) -> tuple[int, bool]:
    """Of two words as loud as each other the surer one counts."""
    loudness = ("info", *LOUD).index(said.severity) if said.severity in ("info", *LOUD) else 0
    return loudness, said.confidence == "confirmed"


def _said(data: Data, marks: Sequence[tuple[int, str]]) -> Said:
    when = next((what for at_us, what in reversed(marks) if at_us <= data["opened_at_us"]), "the beginning")
    return Said(
        data["pod"],
        data["detector"],
        str(data.get("task_id") or "-"),
        str(data.get("store") or "-"),
        data["severity"],
        data["confidence"],
        str(data.get("affected") or "-"),
        data["summary"],
        when,
        data["opened_at_us"],
        str(data.get("incident_id") or ""),
    )
