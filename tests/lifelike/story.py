"""A story, read: settings and wishes from its head, then its steps. The language is described in README.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HEAD = "#!"
LOUD = ("critical", "warning")
_SHOWN_CHARACTERS = 110


class StoryError(Exception):
    """A story says something that nobody understands; the message names file and line."""


@dataclass(frozen=True, slots=True)
class Said:
    """One word of the agent, or of `scan`."""

    detector: str
    severity: str
    confidence: str
    task: str | None
    text: str
    finding: str = ""

    @classmethod
    def of(cls, line: Mapping[str, Any]) -> Said:
        """Read it from a line of the log (`message`) or of `scan --json` (`summary`)."""
        text = line.get("message") or line.get("summary") or ""
        finding = line.get("finding_id") or line["id"]
        return cls(
            line["detector"], line["severity"], line["confidence"], line.get("task_id"), str(text), finding
        )

    def __str__(self) -> str:
        """Write it as one line for people."""
        return f"{self.severity} {self.detector} {self.task}: {self.text[:_SHOWN_CHARACTERS]}"


@dataclass(frozen=True, slots=True)
class Want:
    """A finding that must be told, at this severity at least once; `confidence` None = any."""

    detector: str
    severity: str
    task: str
    confidence: str | None = None

    def is_met_by(self, said: Said) -> bool:
        """Tell whether this is it."""
        return (self.detector, self.severity, self.task) == (said.detector, said.severity, said.task) and (
            self.confidence in (None, said.confidence)
        )

    def __str__(self) -> str:
        """Write it as in the story."""
        return " ".join(x for x in (self.detector, self.severity, self.task, self.confidence) if x)


@dataclass(frozen=True, slots=True)
class Story:
    """What is played, and what must come of it.

    Args of the dataclass:
        name: Name of its file.
        steps: Its lines without head and comments.
        settings: What the agent is told.
        late: The agent starts at the step `@agent`, not before the story.
        quiet: No critical may be said at any time, and no warning but those of `allowed`.
        wants: What must be said.
        allowed: Detectors whose warnings a quiet story lets pass.
        never: Detectors that must not speak at all.
        most: Detector -> how many findings it may have at most.
    """

    name: str
    steps: tuple[str, ...]
    settings: Mapping[str, str]
    late: bool = False
    quiet: bool = False
    wants: tuple[Want, ...] = ()
    allowed: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    most: Mapping[str, int] = field(default_factory=dict)

    def faults(self, said: Iterable[Said]) -> list[str]:
        """Compare what was said with what had to be; empty = all well."""
        everything = list(said)
        faults = [str(one) for one in everything if self._is_wrong(one)]
        for want in self.wants:
            if not any(want.is_met_by(one) for one in everything):
                told = sorted({f"{one.detector} {one.severity} {one.confidence}" for one in everything})
                faults.append(f"no {want}; said: {', '.join(told) or 'nothing'}")
        for detector, most in self.most.items():
            found = {one.finding for one in everything if one.detector == detector}
            if len(found) > most:
                faults.append(f"{len(found)} findings of {detector}, at most {most} wanted")
        return sorted(set(faults))

    def _is_wrong(self, said: Said) -> bool:
        return said.detector in self.never or (self.quiet and self._is_loud(said))

    def _is_loud(self, said: Said) -> bool:
        return said.severity == "critical" or (
            said.severity == "warning" and said.detector not in self.allowed
        )


def read_story(path: Path) -> Story:
    """Read a story from its file.

    Raises:
        StoryError: a line of its head is not understood, or it wants nothing.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    settings: dict[str, str] = {}
    wants: list[Want] = []
    allowed: set[str] = set()
    never: set[str] = set()
    most: dict[str, int] = {}
    flags: set[str] = set()
    for number, line in enumerate(lines, start=1):
        match line.removeprefix(HEAD).split() if line.startswith(HEAD) else ():
            case []:
                pass
            case ["set", *pairs] if all("=" in pair for pair in pairs):
                settings |= dict(pair.split("=", 1) for pair in pairs)
            case ["late"] | ["want", "quiet"] as words:
                flags.add(words[-1])
            case ["want", detector, severity, task]:
                wants.append(Want(detector, severity, task))
            case ["want", detector, severity, task, confidence]:
                wants.append(Want(detector, severity, task, confidence))
            case ["allow", *detectors]:
                allowed |= set(detectors)
            case ["never", *detectors]:
                never |= set(detectors)
            case ["most", count, detector] if count.isdecimal():
                most[detector] = int(count)
            case _:
                raise StoryError(f"{path.name}:{number}: not understood: {line}")
    if not (wants or never or most or "quiet" in flags):
        raise StoryError(f"{path.name}: wants nothing")
    steps = tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))
    return Story(
        path.stem,
        steps,
        settings,
        "late" in flags,
        "quiet" in flags,
        tuple(wants),
        frozenset(allowed),
        frozenset(never),
        most,
    )
