"""What the agents said: the loudest word of each finding, and which words any exposed application gets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agent.detectors.undecided import META as UNDECIDED
from tests.support.shipped import Data

LOUD = ("warning", "critical")
EXPOSURES = {"stale-eos-checkpoint", "skipped-eos-wipe"}
"""Every exactly-once application of a release with KAFKA-20685 is exposed, and suspect after every crash: a warning."""
AFTER_A_CRASH = {"skipped-eos-wipe"}
"""Of these: nothing is suspect before anything went wrong. An orderly restart that said so passed for right once."""
UNCLEAN = ("is killed", "is frozen", "timed out", "the broker goes on")
"""How marks of what goes wrong end."""


@dataclass(frozen=True, slots=True)
class Said:
    """The loudest word of one finding."""

    agent: str  # name of the agent, `POD-told` or `POD-untold`
    detector: str
    task: str
    store: str
    severity: str
    confidence: str
    affected: str
    summary: str
    when: str  # mark of the driver's timeline after which the finding opened
    opened_at_us: int
    incident: str = ""  # id of the incident that it is evidence of
    is_open: bool = True  # whether its last word was that it is open; what happened at a moment never is

    @property
    def is_loud(self) -> bool:
        """Whether it must be true: a question is no alarm."""
        return self.severity in LOUD and self.detector != UNDECIDED.id


def loudest(records: Iterable[Data], marks: Sequence[tuple[int, str]]) -> list[Said]:
    """Take each finding at its loudest, out of everything shipped."""
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


def is_exposure(said: Said, marks: Sequence[tuple[int, str]]) -> bool:
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
