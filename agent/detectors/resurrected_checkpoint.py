"""Detector `resurrected-checkpoint`: an old offset is trusted on a store that was recreated.

Fires when a store was created while a checkpoint entry > 0 of an earlier owner was in force (on disk, or read
before it was deleted), or when the first checkpoint of a new store continues from the old offset although the
store holds only what was written since.
Stays quiet for a full restoration (its puts come with its offset), for a store that a new topology added (no
entry), for young segments of a windowed store, for a wipe by the owner under its lock (`carried-checkpoint`), or of
the whole directory by the process that goes on (2.6 and later).
Unknown, and said once per task, where file times are those of a copy.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import WRITTEN_SINCE, WRONG_RESULTS, Twin
from agent.inventory.copied import is_birth_known, is_copied, times_are_copied
from agent.inventory.model import (
    CheckpointClaim,
    CheckpointFact,
    Database,
    PastDatabase,
    Session,
    Shape,
    Store,
    Task,
)
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict, seconds
from agent.judging.upstream import KAFKA_5998, KAFKA_8187, TORN_DELETION
from agent.judging.wording import checkpoint_of, where
from agent.layout import names
from agent.layout.facts import Fact
from agent.layout.profile import Truth
from agent.quantities.carried import continued_from
from agent.quantities.changelog import is_real
from agent.quantities.verdicts import held_before

META = DetectorMeta(
    id="resurrected-checkpoint",
    title="Old checkpoint trusted on a fresh store",
    mechanism=Mechanism.OFFSET_WITHOUT_DATA,
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
    kind=Kind.DAMAGE,
    scope=Scope.TASK,
    needs=(),
    upstream=(KAFKA_8187, KAFKA_5998, TORN_DELETION),
    next_action=(
        "Stop this instance, keep a copy of the task directory, remove that task directory only, start again and"
        " watch the restoration begin at the log start. Do not delete the other pods' copies first. "
        f"{WRITTEN_SINCE}"
    ),
    consequence=WRONG_RESULTS,
    twin=Twin(
        "N8, the cleaner took the directory and the task came back with a full restoration",
        "control-8187-2.2.2",
    ),
    silent_where=((Fact.OFFSETS_IN_STORE, Truth.YES),),
    waits_us=(),
)

JUDGE_THE_ORIGINAL = (
    "Check the original, or a copy that kept its file times (cp -a, rsync -a, tar). Before an application runs on a"
    " copy that did not keep them, remove its task directories: it then restores."
)

SAME_PASS_US = 60_000_000
"""Re-creation this soon after the deletion is the hand-over of KAFKA-8187: the new owner waited for the lock."""


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        StandbyTask/ProcessorStateManager at 2.0.1 (reads before it locks); StateDirectory.cleanRemovedTasks;
        recorded as `kafka-8187-stage2-*` and `torn-clean-*`.
    """
    task = case.task
    if case.is_silent(META):
        return
    is_unknown_reported = False
    for store in task.stores.values():
        created = [x for x in store.sessions if x.created]
        identities = store.identities if created else frozenset()
        session = next((x for x in created if x.identities & identities), None)
        if session is not None and not session.wiped and not _is_copied(store):
            verdict = _carried_on_disk(case, task, store, session) or _carried_in_memory(
                case, task, store, session
            )
        else:
            verdict = _left_behind(case, task, store)
        if verdict is not None and not (is_unknown_reported and verdict.confidence is Confidence.UNKNOWN):
            is_unknown_reported |= verdict.confidence is Confidence.UNKNOWN
            yield verdict


def _carried_on_disk(case: TaskCase, task: Task, store: Store, session: Session) -> Verdict | None:
    offset = session.offset_at_open
    if not is_real(offset):
        return None
    born_us = session.opened_us
    before = store.past[-1] if store.past else None
    if store.segmented and (before is None or before.shape is not Shape.CLEANER_WALK):
        return None
    fact = task.checkpoint_at(born_us)
    if _went_with_its_store(case, before, fact, born_us):
        return None
    chain = [*_past_chain(task, store, before)]
    is_sure = not store.segmented and not _may_have_been_wiped(case, store, session, fact)
    if fact is not None:  # the history of checkpoints is bounded
        what = f"checkpoint says offset {offset} of {store.name}"
        chain.append(Evidence(fact.written_us, what, checkpoint_of(task)))
    age = f" {_age(fact, born_us)}" if fact is not None else ""
    chain.append(Evidence(born_us, f"a new, empty store was made for it{age}", where(task, store)))
    if session.first is not None:
        chain.append(_first_mark(task, session.first))
    return Verdict(
        subject=store.identity or "",
        opened_at_us=born_us,
        summary=(
            f"Task {task.id}: store {store.name} was recreated, but continues from the old changelog offset"
            f" {offset}; what is below that offset is missing."
        ),
        evidence=tuple(chain),
        severity=Severity.CRITICAL if is_sure else Severity.WARNING,
        confidence=Confidence.CONFIRMED if is_sure else Confidence.SUSPECTED,
        store=store.name,
        identity=store.identity,
        upstream=(TORN_DELETION.key,) if _torn(before) else (),
        affected=case.affected(TORN_DELETION if _torn(before) else KAFKA_8187),
    )


def _went_with_its_store(
    case: TaskCase, before: PastDatabase | None, fact: CheckpointFact | None, born_us: int
) -> bool:
    """Return whether one process wiped the store and its checkpoint, and made the new one.

    It found no checkpoint then, in whatever order the removals were read on a busy machine.

    Source:
        StateManagerUtil.closeStateManager deletes all of the directory before a revived task opens it (2.6.0 to 4.2.1).
    """
    if case.says(Fact.WIPE_TASK_DIRECTORY) is Truth.NO or before is None or fact is None:
        return False
    if before.shape is not Shape.OWNER_WALK or not fact.deleted:
        return False
    return any(
        life.started_us <= before.ended_us and (life.ended_us is None or born_us <= life.ended_us)
        for life in case.application.lives
    )


def _may_have_been_wiped(case: TaskCase, store: Store, session: Session, fact: CheckpointFact | None) -> bool:
    """Return whether the owner may have wiped the store just before the reading: up to 2.5 its checkpoint may stay."""
    unseen = not store.past and fact is not None and fact.written_us < case.inventory.started_us
    wipes = case.says(Fact.WIPE_STORE) is not Truth.NO and case.settings.exactly_once is not False
    return unseen and wipes and case.inventory.started_us <= session.opened_us


def _carried_in_memory(case: TaskCase, task: Task, store: Store, session: Session) -> Verdict | None:
    fact, mark = continued_from(task, store, session), session.first
    if fact is None or mark is None:
        return None
    before, old = store.past[-1], fact.offsets[store.name]
    handed_over = session.opened_us - before.ended_us <= SAME_PASS_US
    affected = case.affected(KAFKA_8187)
    sure = handed_over and affected is Affected.YES
    chain = (
        *_past_chain(task, store, before),
        Evidence(fact.written_us, f"last checkpoint before the deletion: offset {old}", checkpoint_of(task)),
        Evidence(session.opened_us, "a new, empty store was made", where(task, store)),
        _first_mark(task, mark),
    )
    return Verdict(
        subject=store.identity or "",
        opened_at_us=mark.at_us,
        summary=(
            f"Task {task.id}: store {store.name} was deleted and recreated, and its first checkpoint continues"
            f" from the old offset {old} ({mark.offset} with {mark.puts} puts; {held_before(store)} were there before)."
        ),
        evidence=chain,
        severity=Severity.CRITICAL if sure else Severity.WARNING,
        confidence=Confidence.CONFIRMED if sure else Confidence.SUSPECTED,
        store=store.name,
        identity=store.identity,
        upstream=(KAFKA_8187.key,),
        affected=affected,
        missing_facts=() if affected is not Affected.POSSIBLY else ("kafka_streams_version",),
    )


def _left_behind(case: TaskCase, task: Task, store: Store) -> Verdict | None:
    """From artefacts alone: the checkpoint on disk is older than the store that it names."""
    fact = task.checkpoint
    database = store.databases.get("")
    if fact is None or database is None or store.sessions or not is_real(fact.offsets.get(store.name)):
        return None
    birth = is_birth_known(task, database)
    if birth is not True and _was_never_written(database):
        return _empty(case, task, store, fact)
    if birth is False:
        return _copied(case, task, store, fact) if times_are_copied(task, fact.written_us) else None
    if fact.written_us < database.born_us:
        return _older_than_its_store(case, task, store, fact, is_sure=birth is True)
    return _empty(case, task, store, fact) if _was_never_written(database) else None


def _older_than_its_store(
    case: TaskCase, task: Task, store: Store, fact: CheckpointFact, *, is_sure: bool
) -> Verdict:
    database = store.databases[""]
    wiped_by_owner = case.says(Fact.WIPE_STORE) is not Truth.NO and case.settings.exactly_once is not False
    is_sure &= not wiped_by_owner
    offset = fact.offsets[store.name]
    return Verdict(
        subject=store.identity or "",
        opened_at_us=database.born_us,
        summary=(
            f"Task {task.id}: the checkpoint (offset {offset}) is older than store {store.name}, which was made"
            f" {seconds(database.born_us - fact.written_us)} later."
        ),
        evidence=_written_and_born(task, store, fact),
        severity=Severity.CRITICAL if is_sure else Severity.WARNING,
        confidence=Confidence.CONFIRMED if is_sure else Confidence.SUSPECTED,
        store=store.name,
        identity=store.identity,
        affected=case.affected(TORN_DELETION),
    )


def _copied(case: TaskCase, task: Task, store: Store, fact: CheckpointFact) -> Verdict | None:
    """Where the file times are those of a copy nothing can be said; which is said once, for all stores of the task."""
    if any(x.sessions for x in task.stores.values()):
        return None
    return Verdict(
        subject=store.identity or "",
        opened_at_us=store.databases[""].born_us,
        summary=(
            f"Task {task.id}: it is unknown whether its checkpoint is older than its stores: their file times are"
            " those of a copy that kept none."
        ),
        evidence=_written_and_born(task, store, fact),
        severity=Severity.INFO,
        confidence=Confidence.UNKNOWN,
        store=store.name,
        identity=store.identity,
        affected=case.affected(TORN_DELETION),
        next_action=JUDGE_THE_ORIGINAL,
    )


def _written_and_born(task: Task, store: Store, fact: CheckpointFact) -> tuple[Evidence, ...]:
    database, offset = store.databases[""], fact.offsets[store.name]
    data = Evidence(
        database.oldest_data_us, "oldest data of the store, by its own properties", where(task, store)
    )
    return (
        *((data,) if database.oldest_data_us and is_copied(database) else ()),
        Evidence(fact.written_us, f"file time of the checkpoint with offset {offset}", checkpoint_of(task)),
        Evidence(
            database.born_us, "file time of the store's IDENTITY", f"{database.path}/{names.IDENTITY_FILE}"
        ),
    )


def _was_never_written(database: Database) -> bool:
    """Return whether no file ever held a record; what could not be read held anything."""
    is_read = bool(database.manifest) and not database.manifest_problem and not database.problems
    return is_read and not database.puts and (not database.files or database.entries_high == 0)


def _empty(case: TaskCase, task: Task, store: Store, fact: CheckpointFact) -> Verdict:
    """Nothing was ever put, yet the checkpoint claims an offset; how that came about, one reading cannot show."""
    offset = fact.offsets[store.name]
    return Verdict(
        subject=store.identity or "",
        opened_at_us=fact.written_us,
        summary=(
            f"Task {task.id}: the checkpoint says offset {offset}, but nothing was ever written to store"
            f" {store.name}; unless every key was deleted, state is missing."
        ),
        evidence=(
            Evidence(fact.written_us, f"checkpoint with offset {offset}", checkpoint_of(task)),
            Evidence(fact.seen_us, "no file of the store ever held a record", where(task, store)),
        ),
        severity=Severity.WARNING,
        confidence=Confidence.SUSPECTED,
        store=store.name,
        identity=store.identity,
        affected=case.affected(TORN_DELETION),
    )


def _is_copied(store: Store) -> bool:
    """Without old logs a copied store seems to be made by its first opening."""
    database = store.databases.get("")
    return database is not None and is_copied(database)


def _torn(before: PastDatabase | None) -> bool:
    return before is not None and before.shape in (Shape.CLEANER_WALK, Shape.OWNER_WALK)


def _past_chain(task: Task, store: Store, before: PastDatabase | None) -> tuple[Evidence, ...]:
    if before is None:
        return ()
    how = {
        Shape.OWNER_WALK: "by the process that had held it",
        Shape.CLEANER_WALK: "by a cleaner: no process held it",
    }.get(before.shape, "unseen")
    steps = []
    if before.released_us is not None:
        steps.append(
            Evidence(before.released_us, f"released with {before.puts} puts on disk", where(task, store))
        )
    steps.append(Evidence(before.ended_us, f"its files were deleted {how}", where(task, store)))
    return tuple(steps)


def _first_mark(task: Task, mark: CheckpointClaim) -> Evidence:
    what = f"first checkpoint of the new store: offset {mark.offset} with {mark.puts} puts"
    return Evidence(mark.at_us, what, checkpoint_of(task))


def _age(fact: CheckpointFact, born_us: int) -> str:
    return f"{seconds(born_us - fact.written_us)} after that checkpoint was written"
