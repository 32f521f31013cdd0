"""Detector `skipped-eos-wipe`: under exactly-once a store with uncommitted data was reopened instead of wiped.

Fires when a session ended uncleanly with data flushed beyond its checkpoint and the next session opened the same
incarnation: suspected. The checkpoint at the end of the restoration decides: if the changelog cannot have given back
what had been flushed, the rest was never committed and is in the store. Confirmed once more than 10,000 records were
flushed after that checkpoint and commits went by without another; until then it may be that of a paused restoration.
Where the release deletes the checkpoint before the task runs, one that stays is a standby's, and committed: info beside
standbys, and nothing but 10,000 records flushed after it is a proof.
From 4.3 on the offset of such a checkpoint is moved into the store, and trusted there; with transactional stores
(4.4+) a store without an offset is not wiped at all (`agent.judging.unwiped`): critical before the next start, too.

Source:
    ProcessorStateManager.initializeStoreOffsetsFromCheckpoint (an entry suppresses the wipe), 2.0.0
    AbstractStateManager.reinitializeStateStoresForPartitions; recorded as `kafka-20685-*`,
    `kafka-7192-2.0.0`, `kafka-9891-2.5.0`, twin `exposure-20685-crash-committed-4.1.2`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from agent.contract.events import Affected, Confidence, Severity
from agent.contract.units import UNCOMMITTED_RESULTS, Twin
from agent.inventory.model import CLOSES_WITHIN_US, CheckpointClaim, Session, Shape, Store
from agent.inventory.sessions import stored_offset
from agent.judging.base import DetectorMeta, Evidence, Fact, Mechanism, Remedy, TaskCase, Truth
from agent.judging.reopening import SETTLED_US, encloses_restoration, eos_reopenings, ran_alos, replayed_puts
from agent.judging.restoration_end import restoration_end
from agent.judging.role import TaskRole, role_of
from agent.judging.rule import Docket, Loudness, Proof, Rule, StoreStory, derived, detector, worst_of
from agent.judging.unwiped import DOCKETS, kept_stores
from agent.judging.upstream import KAFKA_7192, KAFKA_9891, KAFKA_10362, KAFKA_20685, UNWIPED
from agent.judging.wording import assumptions, checkpoint_of, last_mark
from agent.judging.writers import as_of, writer_before
from agent.quantities.changelog import base_offset, is_real
from agent.quantities.flushed import flushed_beyond
from agent.quantities.kinds import puts_beside_records
from agent.quantities.verdicts import holds_uncommitted, is_mostly_skipped, replay_fell_short, skipped_offsets

META = DetectorMeta(
    id="skipped-eos-wipe",
    title="Store reopened after a crash without the wipe that exactly-once needs",
    mechanism=Mechanism.UNCOMMITTED_DATA,
    needs=("processing_guarantee", "num_standby_replicas", "kafka_streams_version"),
    upstream=(KAFKA_20685, KAFKA_10362, KAFKA_9891, KAFKA_7192, UNWIPED),
    exactly_once=True,
    remedy=Remedy.RESTORE,
    next_action=(
        "Stop this instance cleanly, keep a copy of the task directory, remove that task directory only, start"
        " again: the task is restored from committed records. Leave the other pods' copies alone. What"
        " this task wrote to its changelog and output topics since the store was opened may rest on uncommitted data"
        " and stays wrong on every pod until it is reprocessed."
    ),
    consequence=UNCOMMITTED_RESULTS,
    twin=Twin("N23, killed before the first flush since the open", "control-20685-4.1.2-unflushed"),
)


class Reopening(StoreStory):
    """A store that was let go and opened again, the same incarnation; the case has the profile of who let it go."""

    issues = (KAFKA_20685, KAFKA_10362, KAFKA_9891, KAFKA_7192)
    KEPT_WITHOUT = (KAFKA_7192, KAFKA_9891)  # a store without an entry was kept
    before: Session
    after: Session
    subject = derived(lambda x: f"crash@{x.before.released_us or 0}")
    opened_at_us = derived(lambda x: x.after.opened_us)

    @cached_property
    def flushed(self) -> int:
        """Puts on disk beyond the checkpoint: exactly-once has to wipe them, unless they were committed."""
        return flushed_beyond(self.before)

    @property
    def segments_made(self) -> int:
        """How many segments a versioned store may have had at its checkpoint: an opening knows none, a put makes one.

        The interval of its segments is free: one put may drop all of them. That deletes ranges, and then nobody knows
        how many entries live.

        Source:
            LogicalKeyValueSegments.openExisting, RocksDBVersionedStore.doPut (3.5.0, 3.8.0).
        """
        before, is_versioned = self.before, puts_beside_records(self.store, self.case.profile).high
        if before.last is None or not is_versioned or before.entries_at_release is not None:
            return 0
        return before.last.puts - before.puts_at_open

    @property
    def is_old(self) -> bool:
        """Up to 2.5: an active task has no checkpoint while it runs, and a restoration reopens its store twice."""
        return self.case.says(Fact.BULK_LOAD_REOPEN) is Truth.YES

    @property
    def trusted(self) -> int | None:
        """Offset that the opening trusted."""
        return self.before.last.offset if self.before.last else None

    @cached_property
    def role(self) -> TaskRole:
        """Whether the session before may have been a standby's."""
        return TaskRole.ACTIVE if self.is_old else role_of(self.case, self.store, self.before)


def _reopenings(case: TaskCase) -> Iterator[Reopening]:
    if case.task.is_global:
        return
    kept = kept_stores(case)
    for store in case.task.stores.values():
        if store.name in kept:
            continue
        for before, after in (*eos_reopenings(case, store), *_unwatched(case, store)):
            yield Reopening(as_of(case, writer_before(case, store, before)), store, before, after)


def _unwatched(case: TaskCase, store: Store) -> Iterator[tuple[Session, Session]]:
    """Give the opening that came first while the agent was away: it trusted what the session before it had left.

    Up to 2.5 an opening wipes later, and may have been cut short.
    """
    before, is_later = store.unwatched, case.says(Fact.BULK_LOAD_REOPEN) is Truth.NO
    if (
        not is_later
        or before is None
        or ran_alos(case, before)
        or not before.final_identities & store.identities
    ):
        return
    trusted = before.last.offset if before.last is not None else None
    yield (
        before,
        Session(store.unwatched_us, before.final_identities, before.puts_at_release, trusted, created=False),
    )


def _has_no_changelog(x: Reopening) -> bool:
    """Since KAFKA-7192 and 9891 were fixed, nothing but an entry keeps a store with a changelog from its wipe."""
    if not x.case.names_changelog_of(x.store.name):
        return True
    fixed = all(x.case.affected(issue) is Affected.NO for issue in x.KEPT_WITHOUT)
    if x.after.offset_at_open is not None or not (fixed or x.store.keeps_offsets):
        return False
    named = (one for one in x.task.checkpoints if x.store.name in one.offsets)
    # the opening before deleted what there was: an upgrade may have switched logging off
    return not any(
        one.written_us >= x.before.opened_us or (one.ended_us or x.after.opened_us) >= x.after.opened_us
        for one in named
    )


def _is_being_wiped(x: Reopening) -> bool:
    """Up to 2.5 the stores of a task are wiped one after another, as long as their files take: this may be the next.

    Source:
        AbstractStateManager.reinitializeStateStoresForPartitions (2.0.1); seen live on a slow volume: 10 s and more.
    """
    wipes = [
        y.ended_us for store in x.task.stores.values() for y in store.past if y.shape is Shape.OWNER_WALK
    ]
    newest_us = max(wipes, default=0)
    return newest_us > x.after.opened_us and x.case.waited_us(newest_us) < SETTLED_US


def _moved_without_an_offset(x: Reopening) -> bool:
    """The start-up pass of 4.3 neither gives such a store an offset nor wipes it; the assignment does, seconds later.

    What the store holds says so; of a checkpoint that was deleted or unknown (-4) nothing is moved into it.
    """
    none_moved = x.before.last is None or stored_offset(x.store) is None
    return x.store.keeps_offsets and not is_real(x.after.offset_at_open) and none_moved


def _was_old_standby(x: Reopening) -> bool:
    """Up to 2.5 the checkpoint of a standby stays to its end; a resumed task deletes the one of its suspension.

    Source:
        StreamTask.suspend and resume, StandbyTask.close (2.3.1, 2.4.1, 2.5.0).
    """
    return x.is_old and x.before.last is not None and x.after.offset_at_open is not None


def _closed_without_an_entry(x: Reopening) -> bool:
    """Up to 2.5 a task that was resumed and has not written since forgets what it restored: its close names no offset.

    A close that is not clean writes no checkpoint, or deletes it at once.

    Source:
        ProcessorStateManager.close, clearCheckpoints, StoreChangelogReader.reset (2.1.1, 2.3.1), remove (2.5.1).
    """
    released_us = x.before.released_us or 0
    return x.is_old and any(
        abs(fact.written_us - released_us) <= CLOSES_WITHIN_US
        and x.store.name not in fact.offsets
        and not (fact.deleted and (fact.ended_us or 0) <= released_us + CLOSES_WITHIN_US)
        for fact in x.task.checkpoints
    )


def _was_restored(x: Reopening) -> bool:
    """Up to 2.5 a store that was let go in the mode of bulk loading holds what its changelog gave it, and no more."""
    before, until_us = x.before, x.before.released_us or 0
    if not x.is_old or (before.wiped and before.reopens == 1):
        return x.is_old
    reopened = (y for one in x.store.databases.values() for y in one.reopened_us if y <= until_us)
    ended = before.release_unseen or any(at_us > before.bulk_load_us for at_us in reopened)
    return before.bulk_load_us > 0 and not ended and x.store.all_reopens


def _holds_what_was_restored(x: Reopening) -> bool:
    """Up to 2.5 a restoration ends with a reopening: its session wrote nothing else of what was on disk then.

    A store with timestamps is opened twice when it is made (RocksDBTimestampedStore.openRocksDB, 2.5.1).
    """
    before = x.before
    ended = x.is_old and before.reopens in (2, 3) and before.bulk_load_us == 0
    return ended and len(x.store.databases) == 1 and before.puts_at_release <= before.restored_puts


def _may_be_wiped_yet(x: Reopening) -> bool:
    """Up to 2.5, where every store is wiped: its process was killed before the wipe, or the restoration, could begin.

    A changelog that had records is not empty: an active task's store is wiped, too (2.5.1).
    """
    after = x.after
    if not x.is_old or after is not x.store.sessions[-1] or after.released_us is None or after.closed:
        return False
    named = any(is_real(one.offsets.get(x.store.name)) for one in x.task.checkpoints)
    untouched = after.reopens == 0 and after.first is None and flushed_beyond(after) <= 0
    in_time = x.case.passed_us(after.opened_us, after.released_us) < SETTLED_US
    return named and untouched and in_time and all(x.case.affected(y) is Affected.NO for y in x.KEPT_WITHOUT)


INNOCENTS = {
    "it kept its offsets in the store (4.3+)": lambda x: x.before.kept_offsets,
    "moved to 4.3 without an offset": _moved_without_an_offset,
    "let go by a process that lived on": lambda x: x.before.outlived,
    "closed in order": lambda x: bool(x.before.closed),
    "nothing was flushed beyond the checkpoint": lambda x: x.flushed <= 0,
    "a standby of up to 2.5": _was_old_standby,
    "killed in a restoration of up to 2.5": _was_restored,
    "killed after a restoration of up to 2.5, and nothing was flushed since": _holds_what_was_restored,
    "killed before it could be wiped, and not opened since": _may_be_wiped_yet,
    "a store without a changelog": _has_no_changelog,
    "closed in order up to 2.5, without an offset": _closed_without_an_entry,
}


def _whole_replay_fell_short(x: Reopening) -> Proof | None:
    """Up to 2.5 a restoration from the very start is seen whole: it puts every key that is not deleted."""
    before, after = x.before, x.after
    if not x.is_old or is_real(after.offset_at_open) or not encloses_restoration(x.store, after):
        return None
    restored = replayed_puts(before, after)
    if restored is None or replay_fell_short(before.entries_at_release, restored) is not Truth.YES:
        return None
    return Proof(
        f"the whole changelog gave back {restored} puts, the store had {before.entries_at_release} live entries or more"
    )


def _changelog_ended_below(x: Reopening) -> Proof | None:
    """The restoration ended where the changelog cannot have given back what had been flushed."""
    end = restoration_end(x.case, x.task, x.store, x.after)
    if end is None:
        return None
    holds, holds_beside_segments = (
        holds_uncommitted(x.store, x.case.profile, puts, x.trusted, end.offset) is Truth.YES
        for puts in (x.flushed, x.flushed - x.segments_made)
    )
    if not holds:
        return None
    moved = max(base_offset(end.offset) - base_offset(x.trusted), 0)
    why = f"the offset advanced by {moved}, {x.flushed} puts had been flushed beyond it"
    return Proof(why if end.certain else f"{why}{_OR_PAUSED}", certain=end.certain and holds_beside_segments)


def _as_many_were_aborted(x: Reopening) -> Proof | None:
    """As many offsets as had been flushed were not applied: aborted, or taken by compaction meanwhile."""
    base, case, store = base_offset(x.trusted), x.case, x.store
    moved = stored_offset(store) if store.keeps_offsets else None
    mark = x.after.first if moved is None else CheckpointClaim(case.now_us, moved, store.puts)
    if mark is None or mark.offset < 0 or not (moved is not None or KAFKA_10362.key in x.upstream):
        return None
    applied = mark.puts - x.before.puts_at_release
    skipped = skipped_offsets(case.settings, mark.offset - base, applied, mark.at_us - x.before.opened_us)
    if is_mostly_skipped(store, case.profile, x.flushed, skipped, base, mark.offset) is Truth.NO:
        return None
    why = f"of {mark.offset - base} offsets {skipped} were aborted, {x.flushed} puts had been flushed"
    return Proof(why, certain=False)


def _loudness(x: Reopening, proof: Proof | None) -> Loudness:
    if proof is not None:
        return Loudness(Severity.CRITICAL, Confidence.CONFIRMED if proof.certain else Confidence.SUSPECTED)
    return Loudness(
        Severity.INFO if x.role is TaskRole.STANDBY_LIKE else Severity.WARNING,
        Confidence.SUSPECTED,
        next_action=_CHECK_FIRST,
        remedy=Remedy.CHECK_FIRST,
        missing_facts=("num_standby_replicas",) if x.role is TaskRole.UNKNOWN else (),
    )


# What it says


def _summary(x: Reopening, proof: Proof | None) -> str:
    if proof is not None:
        holds = "holds" if proof.certain else "very likely holds"
        return (
            f"{x.named} {holds} uncommitted data: {x.flushed} puts had been"
            " flushed beyond its checkpoint when it crashed, and it was reopened without a wipe."
        )
    return (
        f"{x.named} was reopened after an unclean end with {x.flushed} puts"
        f" flushed beyond its checkpoint; uncommitted data may be in it (not proven{_ROLES.get(x.role, '')})."
    )


def _evidence(x: Reopening, proof: Proof | None) -> Iterable[Evidence]:
    """What was read and what it proves are two steps: a later proof adds its own to the evidence, and repeats none."""
    before, after, mark = x.before, x.after, x.after.first
    yield Evidence(before.opened_us, f"store {x.store.name} opened", x.place)
    yield last_mark(x.task, before)
    yield Evidence(before.released_us or 0, f"released with {x.flushed} puts flushed beyond that", x.place)
    yield Evidence(after.opened_us, "the same incarnation opened again, no wipe", x.place)
    if mark is not None:
        what = f"first checkpoint after the restart: offset {mark.offset}, {mark.puts} puts on disk"
        yield Evidence(mark.at_us, what, checkpoint_of(x.task))
        if proof is not None:
            yield Evidence(mark.at_us, f"proof: {proof.why}", checkpoint_of(x.task))
    if proof is None and x.role is TaskRole.UNKNOWN:
        yield from assumptions(x.case, after.opened_us, "num_standby_replicas")


_OR_PAUSED = " (it is not moving: unless the restoration was paused or held up there, that is the end)"
_ROLES = {
    TaskRole.UNLESS_PAUSED: "; a standby or a restoration that was paused may do this",
    TaskRole.UNKNOWN: "; role unknown, a standby may do this",
    TaskRole.STANDBY_LIKE: "; role unknown, a standby may do this",
    TaskRole.ASSUMED: "; a copy that warms up may do this",
}
_CHECK_FIRST = (
    "Check this task's changelog partition for an aborted transaction between the two offsets (kafka-dump-log, or a"
    " read_committed against a read_uncommitted consumer). If there is one, or if you cannot check: stop this instance"
    " cleanly, keep a copy of the task directory, remove that task directory only, start again."
)

RULE = Rule[Reopening](
    "a store with data beyond its checkpoint was opened again, not wiped",
    innocents=INNOCENTS,
    unknowns={"the stores of its task are being wiped": _is_being_wiped},
    proofs=(_whole_replay_fell_short, _changelog_ended_below, _as_many_were_aborted),
    loudness=_loudness,
    summary=_summary,
    evidence=_evidence,
)

DETECTOR = detector(META, *DOCKETS, Docket(_reopenings, (RULE,), worst_of()))
