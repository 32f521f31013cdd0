"""Detector `regressed-checkpoint`: a changelog offset went backwards on the same store.

Fires when a checkpoint of the same incarnation says less than the one before within one session. Across sessions
it is told as info only: a restoration over old files (see `overlaid-store`) begins lower on purpose. So does a
standby up to 2.4 after every rebalance: it reads again from where it opened, and more is flushed meanwhile.
Stays quiet for the step of one that the upgrade from 2.5 to 2.6 makes, for "unknown" (-4), and across wipes.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from agent.contract.events import Confidence, Level, Severity
from agent.detectors.base import Case, DetectorMeta, Evidence, Kind, Scope, Verdict
from agent.detectors.telling import checkpoint_of
from agent.detectors.upstream import KAFKA_13249
from agent.inventory.model import CheckpointFact, Store, Task
from agent.layout.facts import Fact
from agent.layout.profile import Truth

META = DetectorMeta(
    id="regressed-checkpoint",
    title="Changelog offset went backwards on the same store",
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.EVENT,
    scope=Scope.TASK,
    upstream=(KAFKA_13249,),
    next_action=(
        "Nothing is lost by itself: the next start replays more than needed. Compare with the application's log; if"
        " nothing explains it, keep a copy of the directory and restore the task from its changelog."
    ),
)

_READ_AGAIN = {
    Truth.NO: "",
    Truth.YES: ": after a rebalance a standby reads again from where it opened",
    Truth.MAYBE: "; unknown, up to 2.4 a standby reads again from where it opened after every rebalance",
}
MEANING_CHANGED = 1
"""Up to 2.5 the offset is the next one to read, from 2.6 the last one applied."""


def judge(case: Case) -> Iterable[Verdict]:
    """Judge one task."""
    task = case.task
    assert task is not None
    for before, after in pairwise(task.checkpoints):
        if before.incarnation != after.incarnation:
            continue
        for name, offset in after.offsets.items():
            old = before.offsets.get(name)
            store = task.stores.get(name)
            if old is None or store is None or not 0 <= offset < old - MEANING_CHANGED:
                continue
            if _same_store(store, before):
                yield _tell(case, task, store, before, after)


def _same_store(store: Store, before: CheckpointFact) -> bool:
    born_us = max((x.born_us for x in store.databases.values()), default=0)
    return store.segmented or 0 < born_us < before.written_us


def _is_read_again(case: Case, store: Store, before: CheckpointFact, after: CheckpointFact) -> Truth:
    """Tell whether a standby has read its changelog again from where its session began, and flushed that.

    Source:
        StandbyTask.checkpointedOffsets (2.0.1 to 2.4.1: taken once; 2.5.0: the present ones); seen live at 2.0.1.
    """
    session = next((x for x in reversed(store.sessions) if x.opened_us <= before.written_us), None)
    began = (session.offset_at_open if session is not None else None) or 0
    grew = store.puts_at(after.written_us) > store.puts_at(before.written_us)
    if not grew or after.offsets[store.name] < began:
        return Truth.NO
    return case.says(Fact.STANDBY_READS_AGAIN)


def _tell(case: Case, task: Task, store: Store, before: CheckpointFact, after: CheckpointFact) -> Verdict:
    old, new = before.offsets[store.name], after.offsets[store.name]
    # LOG.old.* tells of a reopen that was too short for a lock poll to see
    opens = [x.opened_us for x in store.sessions]
    opens += [at_us for x in store.databases.values() for at_us in x.reopened_us]
    reopened = any(before.written_us < at_us <= after.written_us for at_us in opens)
    again = _is_read_again(case, store, before, after)
    how = " after it was opened again" if reopened else f" while it was open{_READ_AGAIN[again]}"
    return Verdict(
        subject=str(after.written_us),
        opened_at_us=after.written_us,
        summary=f"Task {task.id}: the offset of store {store.name} went back from {old} to {new}{how}.",
        evidence=(
            Evidence(before.written_us, f"checkpoint with offset {old}", checkpoint_of(task)),
            Evidence(after.written_us, f"checkpoint with offset {new}, same store", checkpoint_of(task)),
        ),
        severity=Severity.INFO if reopened or again is not Truth.NO else Severity.WARNING,
        confidence=Confidence.UNKNOWN if again is Truth.MAYBE and not reopened else Confidence.CONFIRMED,
        store=store.name,
        identity=store.identity,
        affected=case.affected(KAFKA_13249),
    )
