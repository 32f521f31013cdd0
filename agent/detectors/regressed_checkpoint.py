"""Detector `regressed-checkpoint`: a changelog offset went backwards on the same store, and that may be meant so.

Fires, as information, when a checkpoint of the same incarnation says less than the one before after the store was
opened again: a restoration over old files (see `overlaid-store`) begins lower on purpose. So does a standby up to 2.4
after every rebalance: it reads again from where it opened, and more is flushed meanwhile.
Stays quiet for the step of one that the upgrade from 2.5 to 2.6 makes, for "unknown" (-4), across wipes, and where
nothing explains the fall: that is `changelog-truncated`.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from agent.inventory.model import Task
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict
from agent.judging.falls import Fall, checkpoint_falls
from agent.judging.upstream import KAFKA_13249
from agent.judging.wording import checkpoint_of
from agent.layout.profile import Truth

META = DetectorMeta(
    id="regressed-checkpoint",
    title="Changelog offset went backwards on the same store",
    mechanism=Mechanism.SHORT_CHANGELOG,
    level=Level.EXPOSURE,
    severity=Severity.INFO,
    kind=Kind.EVENT,
    scope=Scope.TASK,
    upstream=(KAFKA_13249,),
    next_action=(
        "Nothing, if the offset comes back to where it was: the replay is only longer than needed. If it stays"
        " below (finding `changelog-truncated`), the changelog ends before what the store holds."
    ),
    consequence="If the offset comes back, the start only replays more than needed.",
    twin=Twin(
        "the step of one that the upgrade from 2.5 to 2.6 makes", "benign-upgrade-2.3.1-to-2.5.1-to-2.8.2"
    ),
    waits_us=(),
)

_READ_AGAIN = {
    Truth.NO: "",
    Truth.YES: ": after a rebalance a standby reads again from where it opened",
    Truth.MAYBE: "; unknown, up to 2.4 a standby reads again from where it opened after every rebalance",
}


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task."""
    task = case.task
    for fall in checkpoint_falls(case):
        if fall.is_explained:
            yield _verdict(case, task, fall)


def _verdict(case: TaskCase, task: Task, fall: Fall) -> Verdict:
    before, after, name = fall.before, fall.after, fall.store.name
    how = " after it was opened again" if fall.reopened else f" while it was open{_READ_AGAIN[fall.again]}"
    unsure = fall.again is Truth.MAYBE and not fall.reopened
    return Verdict(
        subject=str(after.written_us),
        opened_at_us=after.written_us,
        summary=f"Task {task.id}: the offset of store {name} went back from {fall.old} to {fall.new}{how}.",
        evidence=(
            Evidence(before.written_us, f"checkpoint with offset {fall.old}", checkpoint_of(task)),
            Evidence(after.written_us, f"checkpoint with offset {fall.new}, same store", checkpoint_of(task)),
        ),
        severity=Severity.INFO,
        confidence=Confidence.UNKNOWN if unsure else Confidence.CONFIRMED,
        store=name,
        identity=fall.store.identity,
        affected=case.affected(KAFKA_13249),
    )
