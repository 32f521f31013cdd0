"""Detector `premature-cleanup`: a task directory was deleted sooner after its release than the delay allows.

Fires when the first removal comes earlier after the release than `state.cleanup.delay.ms` while the process goes on:
the cleaner's, or somebody's `rm -r`, which looks the same. The task then restores from the beginning where it comes
back. Info on releases without KAFKA-20805: there the cleaner counts from the last change of the directory, and a task
that was closed without writing its checkpoint may have been unchanged for long.

Source:
    StateDirectory.cleanRemovedTasksCalledByCleanerThread at 4.3.0 and 4.3.1 (judges by the age of the directory's
    creation), at 3.7.2 (by its last change); clearLocalStateForNamedTopology (3.0.0 to 3.9.0); recorded as
    `kafka-20805-4.3.1`, twin `control-20805-4.2.1`.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent.contract.events import Affected, Confidence, Severity
from agent.inventory.model import PastTask, Shape
from agent.inventory.sessions import OUTLIVES_BY_US
from agent.judging.base import DetectorMeta, Evidence, Kind, TaskCase, Twin, seconds
from agent.judging.rule import Docket, Loudness, Proof, Rule, TaskStory, derived, detector
from agent.judging.upstream import KAFKA_20805
from agent.judging.wording import assumptions

META = DetectorMeta(
    id="premature-cleanup",
    title="Task directory deleted before the cleanup delay had passed",
    severity=Severity.WARNING,
    kind=Kind.EVENT,
    needs=("state_cleanup_delay_ms", "processing_guarantee", "kafka_streams_version"),
    upstream=(KAFKA_20805,),
    next_action=(
        "The task restores what its changelogs hold: all, but for a store without one, or with one that retention"
        " cuts. Watch that restoration (it may find offsets out of range), raise state.cleanup.delay.ms well above the"
        " time between rebalances, and upgrade."
    ),
    consequence="A copy that should have been kept is gone: the task restores what its changelogs hold.",
    twin=Twin("N8, the cleaner waited for its delay", "control-20805-4.2.1"),
)

WIPES_WITHIN_US = 1_500_000
"""Under exactly-once a wipe follows the close within milliseconds (recorded: up to 60 ms)."""
SLOW_WIPE_US = 60_000_000
"""The same after a close that was not in order, which is what a wipe usually follows, in a pod that is short of CPU
(seen live: 2.0 s; no source for the minute)."""
POLL_SLACK_US = 500_000
"""A release is seen up to a lock poll late, so a deletion can seem a little earlier than it was."""


class Deleted(TaskStory):
    """A task directory that is gone; `delay_ms` = how long the cleaner has to wait."""

    issues = (KAFKA_20805,)
    past: PastTask
    delay_ms: int
    subject = derived(lambda x: f"incarnation {x.past.incarnation}")
    opened_at_us = derived(lambda x: x.past.started_us)

    @property
    def age_us(self) -> int:
        """How long after the release that was."""
        return self.past.started_us - (self.past.released_us or 0)


def _deleted(case: TaskCase) -> Iterator[Deleted]:
    delay_ms = case.settings.assumed("state_cleanup_delay_ms")
    for past in () if delay_ms is None else case.task.past:
        yield Deleted(case, past, delay_ms or 0)


def _has_no_cleaner(x: Deleted) -> bool:
    """Whether no process lived on that held other tasks then, or had released this one: an end is seen late."""
    past = x.past
    began_us, until_us = past.started_us - 1, past.ended_us
    if not past.siblings_held:
        began_us, until_us = past.released_us or 0, past.ended_us + OUTLIVES_BY_US
    return not any(
        life.started_us <= began_us and (life.ended_us is None or life.ended_us > until_us)
        for life in x.case.application.lives
    )


def _loudness(x: Deleted, _: Proof | None) -> Loudness:
    """A short delay is common, and nothing on disk shows it: a default alone is no reason to page anyone."""
    if not x.case.settings.is_configured("state_cleanup_delay_ms"):
        return Loudness(Severity.INFO, Confidence.SUSPECTED, missing_facts=("state_cleanup_delay_ms",))
    return Loudness(Severity.INFO if x.affected is Affected.NO else Severity.WARNING, Confidence.CONFIRMED)


# What it says


def _evidence(x: Deleted, _: Proof | None) -> Iterator[Evidence]:
    past = x.past
    yield Evidence(past.released_us or 0, "released: its stores are free", x.place)
    yield Evidence(past.started_us, "first file removed, while a process went on", x.place)
    yield Evidence(past.ended_us, "directory gone", x.place)
    yield from assumptions(x.case, past.ended_us, "state_cleanup_delay_ms")


RULE = Rule[Deleted](
    "a cleaner took a task directory before its delay had passed",
    innocents={
        "another delay, or guarantee, was told until later": lambda x: any(
            x.past.started_us < x.case.application.changed_us.get(name, 0) for name in META.needs[:2]
        ),
        "the cleaner waited for its delay": lambda x: x.age_us >= x.delay_ms * 1_000 - POLL_SLACK_US,
        "it was held to the end: its owner deleted it": lambda x: x.past.held,
        "exactly-once wipes a task right after its close": lambda x: (
            x.case.settings.exactly_once is True
            and x.age_us <= (WIPES_WITHIN_US if x.past.closed_in_order else SLOW_WIPE_US)
        ),
        "no process worked on beside it: cleanUp()": _has_no_cleaner,
    },
    unknowns={
        "the guarantee is not known: it may be a wipe": lambda x: x.case.settings.exactly_once is None,
        "its release, or its deletion, was not seen": lambda x: (
            x.past.released_us is None or x.past.shape is Shape.VANISHED_UNSEEN
        ),
        "its release was seen after its deletion began": lambda x: x.age_us < 0,
        "its process may be at its end, and call cleanUp()": lambda x: (
            not x.past.siblings_held and x.case.waited_us(x.past.ended_us) < OUTLIVES_BY_US
        ),
        "its named topology may have been removed, and its directory with it": lambda x: "/" in x.task.id,
    },
    loudness=_loudness,
    summary=lambda x, _: (
        f"Task {x.task.id} was deleted {seconds(x.age_us)} after its release; the cleanup delay is"
        f" {x.delay_ms / 1000:g} s. It restores from the beginning when it comes back."
    ),
    evidence=_evidence,
)

DETECTOR = detector(META, Docket(_deleted, (RULE,)))
