"""Detector `malformed-checkpoint`: a checkpoint that cannot be read, or a temporary one that was left behind.

Fires when `.checkpoint` is not in the form that Kafka Streams writes: it replaces the file whole, so this is never
a moment in between. A leftover `.checkpoint.tmp` of a task that no process holds is reported as info.

Source:
    OffsetCheckpoint.write: temporary name, fsync, rename (all releases).
"""

from __future__ import annotations

from collections.abc import Iterator

from agent.contract.events import Affected, Confidence, Severity
from agent.judging.base import DetectorMeta, Evidence, Kind, Remedy, TaskCase, Twin
from agent.judging.rule import Docket, Loudness, Rule, TaskStory, derived, detector
from agent.judging.wording import checkpoint_of
from agent.layout.names import CHECKPOINT_FILE, TEMP_SUFFIX

TEMPORARY = CHECKPOINT_FILE + TEMP_SUFFIX
LEFT_AFTER_US = 60_000_000
"""No source: a checkpoint is written and renamed within milliseconds, whoever holds the task."""

META = DetectorMeta(
    id="malformed-checkpoint",
    title="Checkpoint that cannot be read",
    severity=Severity.WARNING,
    kind=Kind.CONDITION,
    remedy=Remedy.CHECK_FIRST,
    next_action=(
        "First check whether the volume is full or failing. Then, with the instance stopped, keep a copy, remove this"
        " task directory only, and start: the task restores from its changelog."
    ),
    consequence="The next start fails or restores in full; the volume may be failing.",
    twin=Twin("a crash loop in the midst of starts", "benign-crash-loop-4.0.2"),
)


class Unreadable(TaskStory):
    """A checkpoint that cannot be read."""

    problem: str
    affected = Affected.NO
    subject = derived(lambda x: f"content@{x.opened_at_us}")
    opened_at_us = derived(lambda x: x.task.checkpoint_problem_us)


class LeftBehind(TaskStory):
    """A checkpoint under its temporary name."""

    subject = "temporary"
    affected = Affected.NO
    opened_at_us = derived(lambda x: x.task.mtime_us)


def _unreadable(case: TaskCase) -> Iterator[Unreadable]:
    if case.task.exists and case.task.checkpoint_problem is not None:
        yield Unreadable(case, case.task.checkpoint_problem)


def _left_behind(case: TaskCase) -> Iterator[LeftBehind]:
    if case.task.exists and TEMPORARY in case.task.names:
        yield LeftBehind(case)


UNREADABLE = Rule[Unreadable](
    "a checkpoint that cannot be read",
    loudness=lambda _x, _proof: Loudness(Severity.WARNING, Confidence.CONFIRMED),
    summary=lambda x, _: f"Task {x.task.id}: its checkpoint cannot be read ({x.problem}).",
    evidence=lambda x, _: [Evidence(x.opened_at_us, x.problem, checkpoint_of(x.task))],
)

LEFT_BEHIND = Rule[LeftBehind](
    "a temporary checkpoint that nobody will rename",
    innocents={"a process holds the task, and may be writing it": lambda x: x.task.held is True},
    unknowns={"changed less than a minute ago": lambda x: x.case.waited_us(x.task.mtime_us) <= LEFT_AFTER_US},
    loudness=lambda _x, _proof: Loudness(Severity.INFO, Confidence.CONFIRMED, next_action=_HARMLESS),
    summary=lambda x, _: (
        f"Task {x.task.id}: a temporary checkpoint was left behind by a kill in the middle of a write."
    ),
    evidence=lambda x, _: [
        Evidence(x.opened_at_us, "left behind; no process holds the task", f"{x.place}/{TEMPORARY}")
    ],
)
_HARMLESS = "Harmless: the next write replaces it. Up to 4.2 it makes the directory count as not empty."

DETECTOR = detector(META, Docket(_unreadable, (UNREADABLE,)), Docket(_left_behind, (LEFT_BEHIND,)))
