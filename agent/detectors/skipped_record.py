"""Detector `skipped-record`: after an upgrade from 2.5 or earlier a copy went on one record too far.

Up to 2.5 a checkpoint holds the next offset to read; 2.6 and later take it for the last one that was applied, and read
on behind it. Where another pod wrote a record at that offset meanwhile, this copy never gets it.
Fires when a store that 2.5 or earlier let go of is opened by 2.6 or later with the offset that it had then, and the
next offset, that of its last record now, has moved by exactly as much as was put: there was one record more to put.
Clears when the incarnation is gone: the copy was removed, and restored from empty.
Stays quiet for an offset at the end of the changelog: it is out of range, and everything is replayed
(`overlaid-store`), or the task writes that record itself; for a store that had flushed more than its checkpoint covers
when it ended: it has the record; under exactly-once, where a marker is at that offset.
Blind spots: 4.3 and later, which write no checkpoint; a changelog of which compaction removed records behind the old
offset, and windowed stores that passed over expired records; until the first checkpoint that shows more than the old
one (from 2.7 on a close, or 10,000 records); a RocksDB version that Kafka does not ship.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from agent.inventory.model import Store, Task
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict
from agent.judging.upstream import OFFSET_MEANING
from agent.judging.wording import checkpoint_of, where
from agent.layout.facts import Fact
from agent.layout.profile import Truth
from agent.quantities.skipped import Skip, skips

META = DetectorMeta(
    id="skipped-record",
    title="Upgrade from 2.5 skipped one record",
    mechanism=Mechanism.OFFSET_WITHOUT_DATA,
    level=Level.DAMAGE,
    severity=Severity.WARNING,
    kind=Kind.DAMAGE,
    scope=Scope.TASK,
    needs=("processing_guarantee", "kafka_streams_version"),
    upstream=(OFFSET_MEANING,),
    exactly_once=False,
    next_action=(
        "Soon, before this copy becomes the active one, and one pod at a time: stop the instance, keep a copy of this"
        " task directory, remove it, start, and wait until it is restored from empty."
    ),
    consequence=(
        "This copy lacks one record until its key is written again. An active task counts or joins on without it."
    ),
    twin=Twin(
        "N22, an upgrade with the offset at the end of the changelog: out of range, and all is replayed",
        "benign-upgrade-2.3.1-to-2.5.1-to-2.8.2",
    ),
    silent_where=((Fact.OFFSET_IS_LAST, Truth.NO), (Fact.OFFSET_IS_LAST, Truth.MAYBE)),
)


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        ProcessorStateManager.updateCheckpointFileCache and updateStandbyStates (2.0.1 to 2.5.1: the offset and one);
        ProcessorStateManager.initializeStoreOffsetsFromCheckpoint, StoreChangelogReader.prepareChangelogs (2.6.0 to
        2.8.2: a seek to the offset and one), hasRestoredToEnd; docs/state-format.md#d4; seen live from 2.5.1 to 2.8.2
        and to 3.6.2.
    """
    if case.task.is_global or case.is_silent(META):
        return
    for store in case.task.stores.values():
        for skip in skips(case.application, case.task, store):
            yield _verdict(case, case.task, store, skip)


def _verdict(case: TaskCase, task: Task, store: Store, skip: Skip) -> Verdict:
    put = skip.put
    return Verdict(
        subject=f"incarnation {task.incarnation}.{store.incarnation}",
        opened_at_us=skip.after.opened_us,
        summary=(
            f"Task {task.id}: after the upgrade store {store.name} goes on behind offset {skip.offset}, which the old"
            f" release had yet to read: {put} puts for {put + 1} records."
        ),
        evidence=(
            Evidence(
                skip.before.released_us or skip.after.opened_us,
                f"released by 2.5 or earlier with {skip.after.puts_at_open} puts; next to read: {skip.offset}",
                where(task, store),
            ),
            Evidence(
                skip.after.opened_us,
                f"opened by 2.6 or later, which takes offset {skip.offset} for read",
                where(task, store),
            ),
            Evidence(
                skip.mark.at_us,
                f"checkpoint with offset {skip.mark.offset}, the last one read, after {put} puts",
                checkpoint_of(task),
            ),
        ),
        severity=Severity.WARNING,
        confidence=Confidence.SUSPECTED,
        store=store.name,
        identity=store.identity,
        affected=case.affected(OFFSET_MEANING),
    )
