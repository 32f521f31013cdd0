"""Detector `carried-checkpoint`: a half-restored store is trusted by the checkpoint of the owner before.

Fires under exactly-once up to 2.5 when an owner wiped a store under its lock while an older owner's checkpoint
stayed, let go of it without writing its own, and the next owner trusted the old offset on that store.
Stays quiet when the restoration was finished (its puts equal the offset, or, of a compacted changelog, what the
predecessor held live) or wrote its own checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import WRONG_RESULTS, Twin
from agent.inventory.model import Session, Store, Task
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict
from agent.judging.upstream import KAFKA_8574
from agent.judging.wording import checkpoint_of, where
from agent.layout.facts import Fact
from agent.layout.profile import Truth
from agent.quantities.changelog import is_real
from agent.quantities.verdicts import is_half_restored

META = DetectorMeta(
    id="carried-checkpoint",
    title="Partly restored store trusted because of an older owner's checkpoint",
    mechanism=Mechanism.OFFSET_WITHOUT_DATA,
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
    kind=Kind.DAMAGE,
    scope=Scope.TASK,
    needs=("processing_guarantee", "kafka_streams_version"),
    upstream=(KAFKA_8574,),
    next_action=(
        "Stop this instance, keep a copy of the task directory, remove that task directory only, start again and"
        " watch the restoration begin at the log start. Do not delete the other pods' copies first. What the task"
        " wrote to its changelog and output topics since the opening time must be reprocessed."
    ),
    consequence=WRONG_RESULTS,
    twin=Twin(
        "the second owner wiped and restored beside the old checkpoint, and finished",
        "benign-8574-finished-2.1.1",
    ),
    silent_where=((Fact.CHECKPOINT_READ_BEFORE_LOCK, Truth.NO),),
    waits_us=(),
)


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        ProcessorStateManager at 2.0.1 and 2.1.1 (reads the checkpoint in its constructor, wipes under the lock
        without deleting the file); recorded as `kafka-8574-2.1.1`, twin `benign-8574-finished-2.1.1`.
    """
    task = case.task
    if case.settings.exactly_once is False or case.is_silent(META):
        return
    for store in task.stores.values():
        sessions = list(store.sessions)
        for before, after in pairwise(sessions):
            if before.wiped and before.last is None and not after.wiped:
                verdict = _trusted(case, task, store, before, after)
                if verdict is not None:
                    yield verdict
                    break


def _trusted(case: TaskCase, task: Task, store: Store, before: Session, after: Session) -> Verdict | None:
    offset = after.offset_at_open
    fact = task.checkpoint_at(after.opened_us)
    database = store.databases.get("")
    if not is_real(offset) or offset is None or fact is None or database is None or not store.knows_puts:
        return None
    if fact.written_us >= database.born_us or not before.final_identities & after.identities:
        return None
    half = is_half_restored(before.puts_at_release, offset, store.past[-1] if store.past else None)
    if half is Truth.NO:
        return None
    affected = case.affected(KAFKA_8574)
    sure = half is Truth.YES and affected is Affected.YES and case.settings.exactly_once is True
    place = where(task, store)
    return Verdict(
        subject=store.identity or "",
        opened_at_us=after.opened_us,
        summary=(
            f"Task {task.id}: store {store.name} was wiped and restored only in part ({before.puts_at_release}"
            f" puts), then trusted at the old offset {offset}; the rest is missing."
        ),
        evidence=(
            Evidence(fact.written_us, f"an owner wrote offset {offset} and let go", checkpoint_of(task)),
            Evidence(database.born_us, "the next owner wiped the store; the checkpoint stayed", place),
            Evidence(
                before.released_us or database.born_us,
                f"it let go with {before.puts_at_release} puts restored, without its own checkpoint",
                place,
            ),
            Evidence(
                after.opened_us, f"opened again, without a wipe, to continue from offset {offset}", place
            ),
        ),
        severity=Severity.CRITICAL if sure else Severity.WARNING,
        confidence=Confidence.CONFIRMED if sure else Confidence.SUSPECTED,
        store=store.name,
        identity=store.identity,
        affected=affected,
        missing_facts=() if case.settings.exactly_once is not None else ("processing_guarantee",),
    )
