"""Detector `foreign-checkpoint`: a checkpoint lists changelog partitions of other tasks.

Normal noise up to 2.2.1 and on 2.3.0 (KAFKA-5998): info. On a later release nothing writes such entries: a warning
if they were written after the process that lives now started.
Stays quiet for topics that are no changelogs (source topics under topology optimisation).
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Confidence, Level, Severity
from agent.contract.units import Twin
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict
from agent.judging.upstream import KAFKA_5998
from agent.judging.wording import checkpoint_of
from agent.layout.facts import Fact
from agent.layout.names import changelog_store
from agent.layout.profile import Truth

META = DetectorMeta(
    id="foreign-checkpoint",
    title="Checkpoint lists partitions of other tasks",
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.CONDITION,
    scope=Scope.TASK,
    needs=("kafka_streams_version",),
    upstream=(KAFKA_5998,),
    next_action="Nothing to do up to 2.2.1 and on 2.3.0: the entries are ignored. Upgrade to get rid of them.",
    consequence="A bug of the release wrote it; on this release it may decide a restoration.",
    twin=Twin("the normal noise of releases up to 2.2.1", "benign-eos-crash-2.1.1", Severity.INFO),
    waits_us=(),
)


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        ProcessorStateManager.checkpoint up to 2.2.1 (KAFKA-5998).
    """
    task, application = case.task, case.application
    fact = task.checkpoint
    if fact is None or task.is_global:
        return
    foreign = [
        x
        for x in fact.foreign
        if x.partition != task.partition and changelog_store(x.topic, application.id) is not None
    ]
    if not foreign:
        return
    life = application.life
    odd = (
        case.says(Fact.FOREIGN_ENTRIES) is Truth.NO and life is not None and fact.written_us > life.started_us
    )
    yield Verdict(
        subject=f"incarnation {task.incarnation}",
        opened_at_us=fact.written_us,
        summary=f"Task {task.id}: its checkpoint lists {len(foreign)} changelog partitions of other tasks.",
        evidence=(
            Evidence(
                fact.written_us, f"for example {foreign[0].topic}-{foreign[0].partition}", checkpoint_of(task)
            ),
        ),
        severity=Severity.WARNING if odd else Severity.INFO,
        confidence=Confidence.SUSPECTED if odd else Confidence.CONFIRMED,
        affected=case.affected(KAFKA_5998),
    )
