"""Detector `unowned-task`: no process holds a task directory although the process lives and standbys are configured.

Fires up to 2.2.1 with standby replicas when a directory that was held is free for longer than a hand-off while the
process shows that it lives. A suspicion: a task that really moved looks the same; the rollup confirms or explains.
Clears when a process takes the task or the directory is gone.

Source:
    StreamThread/TaskManager up to 2.2.1: RUNNING without initialised standbys; KafkaStreams.start and close
    (2.1.1): when the cleaner runs; recorded as `kafka-8187-stage1-2.2.1`, `kafka-8187-stage1-mixed-2.1.1`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from agent.contract.codec import moment
from agent.contract.events import Affected, Confidence, Level, Severity
from agent.inventory.model import Application
from agent.judging.base import DetectorMeta, Evidence, Fact, Kind, Mechanism, TaskCase, Truth, Twin
from agent.judging.rule import Docket, Loudness, Proof, Rule, TaskStory, derived, detector
from agent.judging.upstream import KAFKA_8187
from agent.judging.wording import assumptions

META = DetectorMeta(
    id="unowned-task",
    title="Task directory that no process holds while its instance runs",
    mechanism=Mechanism.OFFSET_WITHOUT_DATA,
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.CONDITION,
    needs=("num_standby_replicas", "kafka_streams_version", "state_cleanup_delay_ms"),
    upstream=(KAFKA_8187,),
    next_action=(
        "Ask the fleet audit whether another pod took the task. If none did, stop this instance cleanly and start it"
        " again before the cleaner deletes the directory: the standby is then initialised again."
    ),
    consequence="The cleaner may soon delete a directory that is still needed.",
    alert_after_m=5,
    twin=Twin("N7, an ordinary move, the cleaner comes later", "benign-move-3.9.2"),
    silent_where=((Fact.UNINITIALIZED_STANDBY_RUNS, Truth.NO),),
)

HANDED_OFF_BY_US = 5_000_000
"""Recorded hand-offs between threads take 20 ms; a rebalance between pods a few seconds."""
PROBED_AFTER_US = 1_000_000
"""A release is itself announced as a lock that was let go; what comes a second later is another hand. Up to 2.2.1 that
can only be the cleaner: it runs while the client is RUNNING, so after the rebalance, and never in an orderly stop."""


class Released(TaskStory):
    """A task whose release was seen, and that is free; `standbys` = as configured, None = not known."""

    issues = (KAFKA_8187,)
    released_us: int
    standbys: int | None
    subject = derived(lambda x: f"incarnation {x.task.incarnation}@{x.released_us}")
    opened_at_us = derived(lambda x: x.released_us)

    @cached_property
    def alive_us(self) -> int | None:
        """When the process was seen alive after it: a held sibling, or the cleaner's own lock probes; None = never."""
        case = self.case
        probed, held_us = case.once(_signs_of_life, case.application)
        signs = [at_us for at_us in probed if at_us > self.released_us + PROBED_AFTER_US]
        # after a restart tasks are taken one by one: one that was just taken is no sign that this one is late
        if held_us is not None and case.waited_us(held_us) > HANDED_OFF_BY_US:
            signs.append(max(held_us, self.released_us))
        return min(signs, default=None)


def _released(case: TaskCase) -> Iterator[Released]:
    task, standbys = case.task, case.settings.number("num_standby_replicas")
    concerns = case.affected(KAFKA_8187) is Affected.YES if standbys is None else standbys > 0
    if concerns and task.exists and task.held is False and task.released_us is not None and task.stores:
        yield Released(case, task.released_us, standbys)


def _signs_of_life(application: Application) -> tuple[list[int], int | None]:
    """List when locks of tasks were tried, and since when a task has been held at the longest."""
    tasks = application.tasks.values()
    held = [task.held_since_us for task in tasks if task.held]
    return [task.lock_probed_us for task in tasks if task.lock_probed_us], min(held, default=None)


# What it says


def _summary(x: Released, _: Proof | None) -> str:
    delay_ms = x.case.settings.number("state_cleanup_delay_ms")
    due_us = x.task.mtime_us + (delay_ms or 0) * 1_000
    forecast = "" if delay_ms is None else f"; the cleaner may take it from {moment(due_us)} on"
    return (
        f"Task {x.task.id}: no process has held it since it was released, although the instance runs; if it was not"
        f" moved to another pod, its standby is lost here{forecast}."
    )


def _evidence(x: Released, _: Proof | None) -> Iterator[Evidence]:
    alive_us = x.alive_us or 0
    yield Evidence(x.released_us, "released: its lock and stores are free", x.place)
    yield Evidence(alive_us, "the process lives: it works on other tasks or tries this lock", x.place)
    yield from assumptions(x.case, alive_us, "num_standby_replicas")


RULE = Rule[Released](
    "nobody took a task that was released, and its process lives",
    innocents={"its process ended, or has just begun to take its tasks": lambda x: x.alive_us is None},
    unknowns={"it may be handed over yet": lambda x: x.case.waited_us(x.released_us) <= HANDED_OFF_BY_US},
    # By default there are no standbys, and then this is an ordinary move.
    loudness=lambda x, _: (
        (Loudness(Severity.INFO, Confidence.SUSPECTED, missing_facts=("num_standby_replicas",)))
        if (x.standbys is None)
        else (Loudness(Severity.WARNING, Confidence.SUSPECTED))
    ),
    summary=_summary,
    evidence=_evidence,
)

DETECTOR = detector(META, Docket(_released, (RULE,)))
