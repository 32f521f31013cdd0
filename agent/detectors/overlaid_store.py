"""Detector `overlaid-store`: the changelog is replayed from its start over old files.

Fires when a store with data is opened without a valid offset: everything is replayed on top (out of range, the
2.5 to 2.6 change of the offset's meaning, a crash before the first checkpoint, a 4.3 close while restoring). The
values come out right if the changelog still reaches as far as the store did (what does not: `changelog-truncated`).
Keys that were deleted meanwhile can be back if their tombstones expired, so it is a warning only if the store was
unused for longer than tombstones live, else info.
Stays quiet for a store without a changelog, and one whose changelog is a source topic: checkpoints never name it.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from agent.inventory.model import Session, Store, Task
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict, seconds
from agent.judging.reopening import SETTLED_US, reopenings
from agent.judging.upstream import OVERLAY
from agent.judging.wording import where
from agent.layout.checkpoint import UNKNOWN_OFFSET
from agent.layout.facts import Fact
from agent.layout.profile import Truth

META = DetectorMeta(
    id="overlaid-store",
    title="Changelog replayed over old files",
    mechanism=Mechanism.SHORT_CHANGELOG,
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.EVENT,
    scope=Scope.TASK,
    needs=("delete_retention_ms",),
    upstream=(OVERLAY,),
    next_action=(
        "Usually nothing. If `changelog-truncated` follows, do what that finding says."
        " If keys that were deleted are back (their tombstones are gone from the changelog): stop,"
        " keep a copy, remove this task directory only, start again and let it restore from empty."
    ),
    consequence="Keys that were deleted may be back.",
    twin=Twin(
        "N22, a crash under at-least-once, replayed over the old files",
        "benign-crash-alos-2.8.2",
        Severity.INFO,
    ),
    silent_where=((Fact.OFFSETS_IN_STORE, Truth.YES), (Fact.OFFSETS_IN_STORE, Truth.MAYBE)),
    waits_us=(SETTLED_US,),
)


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        docs/state-format.md#n22, docs/state-format.md#d3, docs/state-format.md#d4; recorded in
        `benign-upgrade-2.3.1-to-2.5.1-to-2.8.2`,
        `benign-close-while-restoring-4.3.1`.
    """
    task = case.task
    if case.is_silent(META):
        return
    for store in task.stores.values():
        for before, after in reopenings(case, store):
            if _is_overlaid(before, after) and case.names_changelog_of(store.name):
                yield _verdict(case, task, store, before, after)


def _is_overlaid(before: Session, after: Session) -> bool:
    return not after.created and before.puts_at_release > 0 and after.offset_at_open in (None, UNKNOWN_OFFSET)


def _verdict(case: TaskCase, task: Task, store: Store, before: Session, after: Session) -> Verdict:
    retention_ms = case.settings.assumed("delete_retention_ms")
    idle_us = after.opened_us - (before.released_us or after.opened_us)
    expired = retention_ms is not None and idle_us > retention_ms * 1_000
    return Verdict(
        subject=str(after.opened_us),
        opened_at_us=after.opened_us,
        summary=(
            f"Task {task.id}: store {store.name} was opened with {before.puts_at_release} puts on disk and no valid"
            " offset: its changelog is replayed from the start over them."
        ),
        evidence=(
            Evidence(
                before.released_us or 0, f"released with {before.puts_at_release} puts", where(task, store)
            ),
            Evidence(
                after.opened_us, f"opened {seconds(idle_us)} later, no valid offset", where(task, store)
            ),
        ),
        severity=Severity.WARNING if expired else Severity.INFO,
        confidence=Confidence.SUSPECTED if expired else Confidence.CONFIRMED,
        store=store.name,
        identity=store.identity,
        affected=case.affected(OVERLAY),
    )
