"""Detector `stale-eos-checkpoint`: under exactly-once a checkpoint outlives the start of processing.

Fires when data was flushed beyond the checkpoint while the store is open (or was left so by an unclean end): a
crash now would make the next start trust that data, committed or not.
Clears when the checkpoint is written again or the store is wiped.
Stays quiet for a flush that a clean close is about to checkpoint, and under at-least-once.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.detectors.base import Case, DetectorMeta, Evidence, Kind, Scope, Verdict
from agent.detectors.puts import ROLE_PROOF_RECORDS, base_offset
from agent.detectors.telling import checkpoint_of, most_affected, where
from agent.detectors.upstream import KAFKA_10362, KAFKA_20685
from agent.inventory.model import CheckpointFact, Mark, Store, Task
from agent.layout.facts import Fact
from agent.layout.profile import Truth

META = DetectorMeta(
    id="stale-eos-checkpoint",
    title="Checkpoint kept while processing under exactly-once",
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.CONDITION,
    scope=Scope.TASK,
    needs=("processing_guarantee", "num_standby_replicas", "kafka_streams_version"),
    upstream=(KAFKA_20685, KAFKA_10362),
    next_action=(
        "Nothing is lost yet. Stop this instance only in an orderly way (a clean stop is safe): give it a grace"
        " period longer than a commit, never SIGKILL. After a kill, delete this task's directory before the next"
        " start. Upgrade to a release with the fix."
    ),
)

COPIED_WITHIN_US = 500_000
HOLD_US = 1_000_000
"""A clean close flushes and writes the checkpoint within milliseconds; a flush alone for a second is not one."""

RESTORING_US = 30_000_000
"""A restoration of more than 10,000 offsets writes checkpoints on its way, one per commit interval and 10,000 offsets:
what it flushed in between is committed (seen live). One that stands for so long was the last."""


def judge(case: Case) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        DefaultStateUpdater.maybeCompleteRestoration (3.8+), StreamTask.suspend/resume at 2.6.0; recorded as
        `kafka-20685-*`, `exposure-20685-*`.
    """
    task = case.task
    assert task is not None
    if case.settings.exactly_once is not True or task.is_global:
        return
    kept = (case.says(Fact.CHECKPOINT_KEPT_IN_RUNNING), case.says(Fact.CHECKPOINT_KEPT_AT_RESUME))
    fact = task.checkpoint
    if fact is None or kept == (Truth.NO, Truth.NO):
        return
    worst: Verdict | None = None
    for store in task.stores.values():
        verdict = _judge_store(case, task, store, fact)
        if verdict is not None and (worst is None or verdict.severity.rank > worst.severity.rank):
            worst = verdict
    if worst is not None:
        yield worst


def _judge_store(case: Case, task: Task, store: Store, fact: CheckpointFact) -> Verdict | None:
    session = store.sessions[-1] if store.sessions else None
    mark = session.last if session is not None else _mark_from_artefacts(store, fact)
    if mark is None or not store.databases:
        return None
    released = session is None or session.released_us is not None
    puts = session.puts_at_release if session is not None and released else store.puts
    beyond, flushed_us = puts - mark.puts, _flushed_since(store, mark)
    hold_us = (
        RESTORING_US if session is not None and not released and _on_the_way(task, store, mark) else HOLD_US
    )
    if beyond <= 0 or case.now_us - flushed_us < hold_us:
        return None
    standbys = case.settings.number("num_standby_replicas")
    is_active = standbys == 0 or beyond > ROLE_PROOF_RECORDS
    exposed = most_affected(case, (KAFKA_20685, KAFKA_10362))
    role = "" if is_active else " (role unknown: a standby may look like this for a while)"
    state = (
        "it ended uncleanly, so the next start trusts them, committed or not"
        if released
        else "a crash would make the next start trust them, committed or not"
    )
    opened = (
        [Evidence(session.opened_us, f"store {store.name} opened", where(task, store))] if session else []
    )
    written = f"checkpoint written with offset {mark.offset}, {mark.puts} puts on disk"
    return Verdict(
        subject=f"incarnation {task.incarnation}",
        opened_at_us=flushed_us,
        summary=(
            f"Task {task.id}: {beyond} puts of store {store.name} were flushed beyond its checkpoint; {state}{role}."
        ),
        evidence=(
            *opened,
            Evidence(mark.at_us, written, checkpoint_of(task)),
            Evidence(flushed_us, f"flush beyond it: {puts} puts on disk", where(task, store)),
        ),
        severity=Severity.WARNING if is_active else Severity.INFO,
        confidence=(Confidence.CONFIRMED if is_active and exposed is Affected.YES else Confidence.SUSPECTED),
        store=None,
        identity=store.identity,
        upstream=(_issue(case),),
        affected=exposed,
        missing_facts=() if standbys is not None else ("num_standby_replicas",),
    )


def _on_the_way(task: Task, store: Store, mark: Mark) -> bool:
    """Tell whether a restoration may have written a checkpoint before its end: it moved by more than 10,000."""
    before = 0
    for fact in task.checkpoints:
        if fact.written_us >= mark.at_us:
            break
        if fact.incarnation == task.incarnation:
            before = base_offset(fact.offsets.get(store.name))
    return base_offset(mark.offset) - before > ROLE_PROOF_RECORDS


def _mark_from_artefacts(store: Store, fact: CheckpointFact) -> Mark | None:
    """From one look at a store that nobody holds: what its file times say was on disk at the checkpoint.

    None where the times tell nothing: on a volume that was copied without them everything is about equally old.
    """
    offset = fact.offsets.get(store.name)
    times = [at_us for database in store.databases.values() for _, at_us in database.flushed]
    if offset is None or not times or max(times) - fact.written_us < COPIED_WITHIN_US:
        return None
    return Mark(fact.written_us, offset, store.puts_at(fact.written_us))


def _issue(case: Case) -> str:
    older = case.affected(KAFKA_10362) is not Affected.NO and case.affected(KAFKA_20685) is Affected.NO
    return KAFKA_10362.key if older else KAFKA_20685.key


def _flushed_since(store: Store, mark: Mark) -> int:
    """When the first flush beyond a checkpoint was written."""
    times = [
        at_us
        for database in store.databases.values()
        for puts, at_us in database.flushed
        if at_us > mark.at_us
    ]
    return min(times, default=mark.at_us)
