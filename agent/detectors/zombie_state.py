"""Detector `zombie-state`: state that was unused for longer than tombstones live was used again.

Fires when a store was free, from a seen release to a seen open, for longer than `delete.retention.ms` and its old
offset was trusted: keys that were deleted meanwhile are still in it, and their tombstones are gone. A hazard: a
store whose keys are never deleted looks the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Confidence, Level, Severity
from agent.contract.units import Twin
from agent.inventory.model import Session, Store, Task
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict, seconds
from agent.judging.reopening import SETTLED_US, reopenings
from agent.judging.upstream import KAFKA_19943
from agent.judging.wording import assumptions, where
from agent.layout.facts import Fact
from agent.layout.profile import Truth
from agent.quantities.changelog import is_real

META = DetectorMeta(
    id="zombie-state",
    title="State reused after its tombstones expired",
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.DAMAGE,
    scope=Scope.TASK,
    needs=("delete_retention_ms",),
    upstream=(KAFKA_19943,),
    next_action=(
        "If keys of this store are ever deleted: stop, keep a copy, remove this task directory only, start again and"
        " let it restore in full. From 4.3 on state.cleanup.dir.max.age.ms purges such directories at start."
    ),
    consequence="Keys that were deleted while the directory was idle are back.",
    twin=Twin("N6, a quiet store was restarted soon", "benign-restart-eos-4.1.2"),
    waits_us=(SETTLED_US,),
)


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        KAFKA-19943, KIP-1259; docs/state-format.md#kafka-19943.
    """
    task = case.task
    retention_ms = case.settings.assumed("delete_retention_ms")
    if retention_ms is None:
        return
    for store in task.stores.values():
        if store.segmented:
            continue  # its changelog is deleted by time, and has no tombstones to lose
        for before, after in reopenings(store, case.now_us):
            if _is_zombie(case, before, after, retention_ms * 1_000):
                yield _verdict(case, task, store, before, after, retention_ms)
                return


def _is_zombie(case: TaskCase, before: Session, after: Session, retention_us: int) -> bool:
    in_store = case.says(Fact.OFFSETS_IN_STORE) is Truth.YES
    trusted = is_real(after.offset_at_open) or (in_store and is_real(after.stored_offset_at_open))
    return trusted and not after.created and after.opened_us - (before.released_us or 0) > retention_us


def _verdict(
    case: TaskCase, task: Task, store: Store, before: Session, after: Session, retention_ms: int
) -> Verdict:
    released_us = before.released_us or 0
    return Verdict(
        subject=f"{store.identity}@{after.opened_us}",
        opened_at_us=after.opened_us,
        summary=(
            f"Task {task.id}: store {store.name} was unused for {seconds(after.opened_us - released_us)}, longer than"
            f" tombstones live ({retention_ms / 1000:g} s), and is used again: keys deleted meanwhile are back."
        ),
        evidence=(
            Evidence(released_us, "released", where(task, store)),
            Evidence(
                after.opened_us, f"opened again at its old offset {after.offset_at_open}", where(task, store)
            ),
            *assumptions(case, after.opened_us, "delete_retention_ms"),
        ),
        severity=Severity.WARNING,
        confidence=Confidence.SUSPECTED,
        store=store.name,
        identity=store.identity,
        affected=case.affected(KAFKA_19943),
    )
