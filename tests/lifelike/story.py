"""A story, read: settings and wishes from its head, then its steps. The language is described in README.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

HEAD = "#!"
Want = tuple[str, ...]
"""A finding that must be told: detector, severity, task, and confidence if it matters."""


class StoryError(Exception):
    """A story says something that nobody understands; the message names file and line."""


class Said(NamedTuple):
    """One word of the agent, or of `scan`; what a `Want` asks for comes first."""

    detector: str
    severity: str
    task: str | None
    confidence: str
    text: str
    finding: str = ""

    @classmethod
    def of(cls, line: Mapping[str, Any]) -> Said:
        """Read it from a line of the log (`message`) or of `scan --json` (`summary`)."""
        text = str(line.get("message") or line.get("summary") or "")
        finding = line.get("finding_id") or line["id"]
        return cls(line["detector"], line["severity"], line.get("task_id"), line["confidence"], text, finding)

    def __str__(self) -> str:
        """Write it as one line for people."""
        return f"{self.severity} {self.detector} {self.task}: {self.text[:110]}"


@dataclass(slots=True)
class Story:
    """What is played, and what must come of it."""

    name: str  # name of its file
    steps: tuple[str, ...] = ()  # its lines without head and comments
    settings: dict[str, str] = field(default_factory=dict)  # what the agent is told
    # `late`: the agent starts at the step `@agent`, not before the story. `quiet`: no critical may be said at any
    # time, and no warning but those of `allowed`.
    flags: set[str] = field(default_factory=set)
    wants: list[Want] = field(default_factory=list)  # what must be said
    allowed: set[str] = field(default_factory=set)  # detectors whose warnings a quiet story lets pass
    never: set[str] = field(default_factory=set)  # detectors that must not speak at all
    most: dict[str, int] = field(default_factory=dict)  # detector -> how many findings it may have at most

    def faults(self, said: Iterable[Said]) -> list[str]:
        """Compare what was said with what had to be; empty = all well."""
        everything = list(said)
        faults = {str(one) for one in everything if one.detector in self.never or self._is_too_loud(one)}
        for want in self.wants:
            if not any(one[: len(want)] == want for one in everything):
                told = sorted({f"{one.detector} {one.severity} {one.confidence}" for one in everything})
                faults.add(f"no {' '.join(want)}; said: {', '.join(told) or 'nothing'}")
        for detector, most in self.most.items():
            found = {one.finding for one in everything if one.detector == detector}
            if len(found) > most:
                faults.add(f"{len(found)} findings of {detector}, at most {most} wanted")
        return sorted(faults)

    def _is_too_loud(self, said: Said) -> bool:
        is_allowed = said.severity == "warning" and said.detector in self.allowed
        return "quiet" in self.flags and said.severity in ("critical", "warning") and not is_allowed


def read_story(path: Path) -> Story:
    """Read a story; `StoryError`: a line of its head is not understood, or it wants nothing."""
    lines = path.read_text(encoding="utf-8").splitlines()
    steps = tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))
    story = Story(path.stem, steps)
    for number, line in enumerate(lines, start=1):
        match line.removeprefix(HEAD).split() if line.startswith(HEAD) else ():
            case []:
                pass
            case ["set", *pairs] if all("=" in pair for pair in pairs):
                story.settings |= dict(pair.split("=", 1) for pair in pairs)
            case ["late" as flag] | ["want", "quiet" as flag]:
                story.flags.add(flag)
            case ["want", *want] if len(want) in (3, 4):
                story.wants.append(tuple(want))
            case ["allow", *detectors]:
                story.allowed |= set(detectors)
            case ["never", *detectors]:
                story.never |= set(detectors)
            case ["most", count, detector] if count.isdecimal():
                story.most[detector] = int(count)
            case _:
                raise StoryError(f"{path.name}:{number}: not understood: {line}")
    if not (story.wants or story.never or story.most or "quiet" in story.flags):
        raise StoryError(f"{path.name}: wants nothing")
    return story
