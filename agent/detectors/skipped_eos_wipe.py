"""Detector `skipped-eos-wipe`: under exactly-once a store with uncommitted data was reopened instead of wiped.

Fires when a session ended uncleanly with data flushed beyond its checkpoint and the next session opened the same
incarnation: suspected. The checkpoint at the end of the restoration decides: if the changelog cannot have given back
what had been flushed, the rest was never committed and is in the store. Confirmed once more than 10,000 records were
flushed after that checkpoint and commits went by without another; until then it may be that of a paused restoration.
Stays quiet for a clean close, a crash without a flush, a crash in the middle of a restoration, a wipe, and for a
store without a changelog. Where the release deletes the checkpoint before the task runs, one that stays is a
standby's, and committed: info beside standbys, and nothing but 10,000 records flushed after it is a proof.
From 4.3 on the offset of such a checkpoint is moved into the store, and trusted there; with transactional stores
(4.4+) a store without an offset is not wiped at all (`agent.judging.unwiped`): critical before the next start, too.
Blind spots: beside standbys, a crash on a release with KAFKA-20685 before an upgrade to one with the fix: info.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import UNCOMMITTED_RESULTS, Twin
from agent.inventory.model import CheckpointClaim, Session, Shape, Store, Task
from agent.inventory.sessions import stored_offset
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict
from agent.judging.reopening import SETTLED_US, encloses_restoration, reopenings
from agent.judging.restoration_end import restoration_end
from agent.judging.unwiped import corrupted_and_kept, switched_on_and_kept
from agent.judging.upstream import KAFKA_7192, KAFKA_9891, KAFKA_10362, KAFKA_20685, UNWIPED
from agent.judging.wording import assumptions, checkpoint_of, concerned, last_mark, most_affected, where
from agent.judging.writers import writer_before
from agent.layout.facts import Fact
from agent.layout.profile import Truth
from agent.quantities.changelog import base_offset, is_real
from agent.quantities.flushed import flushed_beyond
from agent.quantities.role import TaskRole, role_of
from agent.quantities.verdicts import holds_uncommitted, is_mostly_skipped, replay_fell_short, skipped_offsets

META = DetectorMeta(
    id="skipped-eos-wipe",
    title="Store reopened after a crash without the wipe that exactly-once needs",
    mechanism=Mechanism.UNCOMMITTED_DATA,
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
    kind=Kind.DAMAGE,
    scope=Scope.TASK,
    needs=("processing_guarantee", "num_standby_replicas", "kafka_streams_version"),
    upstream=(KAFKA_20685, KAFKA_10362, KAFKA_9891, KAFKA_7192, UNWIPED),
    exactly_once=True,
    next_action=(
        "Stop this instance cleanly, keep a copy of the task directory, remove that task directory only, start"
        " again: the task is restored from committed records. Do not delete the other pods' copies first. What"
        " this task wrote to its changelog and output topics since the opening time may rest on uncommitted data"
        " and stays wrong on every pod until it is reprocessed."
    ),
    consequence=UNCOMMITTED_RESULTS,
    twin=Twin("N23, killed before the first flush since the open", "control-20685-4.1.2-unflushed"),
)


@dataclass(frozen=True, slots=True)
class _Reopening:
    """An unclean end and the opening after it; `flushed` = puts on disk beyond the checkpoint."""

    before: Session
    after: Session
    flushed: int


@dataclass(frozen=True, slots=True)
class _Proof:
    """What shows that flushed data was never committed; `certain` = no other life looks like this."""

    why: str
    certain: bool


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        ProcessorStateManager.initializeStoreOffsetsFromCheckpoint (an entry suppresses the wipe), 2.0.0
        AbstractStateManager.reinitializeStateStoresForPartitions; recorded as `kafka-20685-*`,
        `kafka-7192-2.0.0`, `kafka-9891-2.5.0`, twin `exposure-20685-crash-committed-4.1.2`.
    """
    task = case.task
    if task.is_global or case.is_silent(META):
        return
    worst: Verdict | None = None
    for store in task.stores.values():
        kept = [*corrupted_and_kept(case, task, store), *switched_on_and_kept(case, task, store)]
        if kept:
            yield from kept
            continue
        for reopening in _reopenings(case, task, store):
            old = replace(case, profile=writer_before(case, store, reopening.before))
            verdict = _judge_reopening(old, task, store, reopening)
            if worst is None or verdict.severity.rank > worst.severity.rank:
                worst = verdict
    if worst is not None:
        yield worst


def _reopenings(case: TaskCase, task: Task, store: Store) -> Iterable[_Reopening]:
    for before, after in reopenings(case, store):
        flushed = flushed_beyond(before)
        if (
            before.kept_offsets
            or (store.keeps_offsets and not is_real(after.offset_at_open) and before.last is None)
            or before.outlived
            or before.closed
            or flushed <= 0
            or _was_standby(case, before)
            or _was_restoring(case, before)
            or _is_being_wiped(case, task, after)
        ):
            continue
        old = replace(case, profile=writer_before(case, store, before))
        if not _needs_reason(old, task, store, after):
            continue
        yield _Reopening(before, after, flushed)


def _needs_reason(case: TaskCase, task: Task, store: Store, session: Session) -> bool:
    """Return whether an opening without a wipe is anything but normal.

    Since KAFKA-7192 and 9891 were fixed, nothing but an entry keeps a store with a changelog from its wipe: one that is
    opened without an entry, and that no checkpoint ever named, has no changelog.
    """
    if not case.names_changelog_of(store.name):
        return False
    fixed = all(case.affected(issue) is Affected.NO for issue in (KAFKA_7192, KAFKA_9891))
    named = session.offset_at_open is not None or any(store.name in fact.offsets for fact in task.checkpoints)
    return named or not (fixed or store.keeps_offsets)


def _is_being_wiped(case: TaskCase, task: Task, session: Session) -> bool:
    """Up to 2.5 the stores of a task are wiped one after another, as long as their files take: this may be the next.

    Source:
        AbstractStateManager.reinitializeStateStoresForPartitions (2.0.1); seen live on a slow volume: 10 s and more.
    """
    wipes = [x.ended_us for store in task.stores.values() for x in store.past if x.shape is Shape.OWNER_WALK]
    newest_us = max(wipes, default=0)
    return newest_us > session.opened_us and case.waited_us(newest_us) < SETTLED_US


def _was_restoring(case: TaskCase, session: Session) -> bool:
    """Up to 2.5 a restoration that ended has switched bulk-load mode on and off: an odd number of reopens."""
    return case.says(Fact.BULK_LOAD_REOPEN) is Truth.YES and session.wiped and session.reopens == 1


def _was_standby(case: TaskCase, session: Session) -> bool:
    """Up to 2.5 an active task under exactly-once has no checkpoint while it runs, a standby always has."""
    return case.says(Fact.BULK_LOAD_REOPEN) is Truth.YES and session.last is not None


def _judge_reopening(case: TaskCase, task: Task, store: Store, reopening: _Reopening) -> Verdict:
    before, after = reopening.before, reopening.after
    proof = _proof(case, task, store, reopening)
    old = case.says(Fact.BULK_LOAD_REOPEN) is Truth.YES
    role = TaskRole.ACTIVE if old else _role(case, task, store, before)
    quiet = proof is None and role is TaskRole.STANDBY_LIKE
    certain = proof is not None and proof.certain
    return Verdict(
        subject=f"crash@{before.released_us or 0}",
        opened_at_us=after.opened_us,
        summary=_summary(task, store, reopening, proof, role),
        evidence=_chain(case, task, store, reopening, proof, role),
        severity=Severity.CRITICAL if proof else Severity.INFO if quiet else Severity.WARNING,
        confidence=Confidence.CONFIRMED if certain else Confidence.SUSPECTED,
        store=None,
        identity=store.identity,
        upstream=concerned(case, _ALL),
        affected=most_affected(case, _ALL),
        missing_facts=() if proof or role is not TaskRole.UNKNOWN else ("num_standby_replicas",),
        next_action="" if proof else _CHECK_FIRST,
    )


def _role(case: TaskCase, task: Task, store: Store, session: Session) -> TaskRole:
    return role_of(
        case.application, task, store, session, case.settings, case.profile, case.now_us, case.passed_us
    )


def _chain(
    case: TaskCase, task: Task, store: Store, reopening: _Reopening, proof: _Proof | None, role: TaskRole
) -> tuple[Evidence, ...]:
    before, after = reopening.before, reopening.after
    beyond = f"released with {reopening.flushed} puts flushed beyond that"
    chain = [
        Evidence(before.opened_us, f"store {store.name} opened", where(task, store)),
        last_mark(task, before),
        Evidence(before.released_us or 0, beyond, where(task, store)),
        Evidence(after.opened_us, "the same incarnation opened again, no wipe", where(task, store)),
    ]
    if after.first is not None:
        chain += _first_mark(task, after.first, proof)
    if proof is None and role is TaskRole.UNKNOWN:
        chain += assumptions(case, after.opened_us, "num_standby_replicas")
    return tuple(chain)


def _proof(case: TaskCase, task: Task, store: Store, reopening: _Reopening) -> _Proof | None:
    """Say what shows that flushed data was never committed; None = not proven."""
    before, after, flushed = reopening.before, reopening.after, reopening.flushed
    base = before.last.offset if before.last else None
    from_the_start = not is_real(after.offset_at_open)
    is_whole = from_the_start and encloses_restoration(store, after)
    if case.says(Fact.BULK_LOAD_REOPEN) is Truth.YES and is_whole:
        restored = max(after.restored_puts - before.puts_at_release, 0)
        if replay_fell_short(before.entries_at_release, restored) is Truth.YES:
            return _Proof(
                f"the whole changelog gave back {restored} puts,"
                f" the store had {before.entries_at_release} live entries or more",
                certain=True,
            )
    end = restoration_end(case, task, store, after)
    if end is not None and holds_uncommitted(store, case.profile, flushed, base, end.offset) is Truth.YES:
        moved = max(base_offset(end.offset) - base_offset(base), 0)
        why = f"the offset advanced by {moved}, {flushed} puts had been flushed beyond it"
        return _Proof(why if end.certain else f"{why}{_OR_PAUSED}", certain=end.certain)
    return _aborted(case, store, reopening, base_offset(base))


def _aborted(case: TaskCase, store: Store, reopening: _Reopening, base: int) -> _Proof | None:
    """As many offsets as had been flushed were not applied: aborted, or taken by compaction meanwhile."""
    before, after = reopening.before, reopening.after
    moved = stored_offset(store) if store.keeps_offsets else None
    mark = after.first if moved is None else CheckpointClaim(case.now_us, moved, store.puts)
    known = moved is not None or KAFKA_10362.key in concerned(case, _ALL)
    if mark is None or mark.offset < 0 or not known:
        return None
    applied = mark.puts - before.puts_at_release
    skipped = skipped_offsets(case.settings, mark.offset - base, applied, mark.at_us - before.opened_us)
    if is_mostly_skipped(store, case.profile, reopening.flushed, skipped, base, mark.offset) is Truth.NO:
        return None
    why = f"of {mark.offset - base} offsets {skipped} were aborted, {reopening.flushed} puts had been flushed"
    return _Proof(why, certain=False)


def _summary(task: Task, store: Store, reopening: _Reopening, proof: _Proof | None, role: TaskRole) -> str:
    if proof is not None:
        holds = "holds" if proof.certain else "very likely holds"
        return (
            f"Task {task.id}: store {store.name} {holds} uncommitted data: {reopening.flushed} puts had been"
            " flushed beyond its checkpoint when it crashed, and it was reopened without a wipe."
        )
    about = _ROLES.get(role, "")
    return (
        f"Task {task.id}: store {store.name} was reopened after an unclean end with {reopening.flushed} puts"
        f" flushed beyond its checkpoint; uncommitted data may be in it (not proven{about})."
    )


def _first_mark(task: Task, mark: CheckpointClaim, proof: _Proof | None) -> Iterable[Evidence]:
    """What was read and what it proves are two steps: a later proof adds its own to the evidence, and repeats none."""
    place = checkpoint_of(task)
    what = f"first checkpoint after the restart: offset {mark.offset}, {mark.puts} puts on disk"
    yield Evidence(mark.at_us, what, place)
    if proof is not None:
        yield Evidence(mark.at_us, f"proof: {proof.why}", place)


_ALL = (KAFKA_20685, KAFKA_10362, KAFKA_9891, KAFKA_7192)
_OR_PAUSED = " (it is not moving: unless the restoration was paused or held up there, that is the end)"
_ROLES = {
    TaskRole.UNLESS_PAUSED: "; a standby or a restoration that was paused may do this",
    TaskRole.UNKNOWN: "; role unknown, a standby may do this",
    TaskRole.STANDBY_LIKE: "; role unknown, a standby may do this",
    TaskRole.ASSUMED: "; a copy that warms up may do this",
}
_CHECK_FIRST = (
    "Nothing is proved yet. Check for an aborted transaction of this task's changelog partition between the two"
    " offsets (kafka-dump-log, or a read_committed against a read_uncommitted consumer). If there is one, or if"
    " you cannot check: stop this instance cleanly, keep a copy of the task directory, remove that task directory"
    " only, start again."
)
