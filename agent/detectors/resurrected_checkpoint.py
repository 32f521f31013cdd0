"""Detector `resurrected-checkpoint`: an old offset is trusted on a store that was recreated.

Fires when a store was created while a checkpoint entry > 0 of an earlier owner was in force (on disk, or read before it
was deleted), or when the first checkpoint of a new store continues from the old offset although the store holds only
what was written since. At rest: when the checkpoint is older than its store, or nothing was ever written to the store.
Unknown, and said once per task, where file times are those of a copy.

Source:
    StandbyTask/ProcessorStateManager at 2.0.1 (reads before it locks); StateDirectory.cleanRemovedTasks;
    recorded as `kafka-8187-stage2-*` and `torn-clean-*`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from agent.contract.events import Affected, Confidence, Severity
from agent.contract.units import WRITTEN_SINCE, WRONG_RESULTS, Twin
from agent.inventory.copied import is_copied
from agent.inventory.model import CheckpointClaim, CheckpointFact, PastDatabase, Session, Shape
from agent.inventory.sessions import stored_offset
from agent.judging.at_rest import COPIED, EMPTY, OLDER, Copied, at_rest, wipes_stores
from agent.judging.base import DetectorMeta, Evidence, Fact, Mechanism, Remedy, TaskCase, Truth, seconds
from agent.judging.reopening import was_gone_before
from agent.judging.rule import (
    Docket,
    IncarnationStory,
    Loudness,
    Proof,
    Rule,
    derived,
    detector,
    first_of,
    graded,
)
from agent.judging.upstream import KAFKA_5998, KAFKA_8187, TORN_DELETION
from agent.judging.wording import checkpoint_of
from agent.judging.writers import as_of, writer_of
from agent.quantities.carried import continued_from
from agent.quantities.changelog import is_real
from agent.quantities.verdicts import held_before

META = DetectorMeta(
    id="resurrected-checkpoint",
    title="Old checkpoint trusted on a fresh store",
    mechanism=Mechanism.OFFSET_WITHOUT_DATA,
    upstream=(KAFKA_8187, KAFKA_5998, TORN_DELETION),
    remedy=Remedy.RESTORE,
    next_action=(
        "Stop this instance cleanly, keep a copy of the task directory, remove that task directory only, start again"
        " and watch the restoration begin at the first offset of the changelog."
        f" Leave the other pods' copies alone. {WRITTEN_SINCE}"
    ),
    consequence=WRONG_RESULTS,
    twin=Twin(
        "N8, the cleaner took the directory and the task came back with a full restoration",
        "control-8187-2.2.2",
    ),
)

SAME_PASS_US = 60_000_000
"""Re-creation this soon after the deletion is the hand-over of KAFKA-8187: the new owner waited for the lock.
No source for the minute; recorded: 0.01 to 22 s."""


MOVED = "a checkpoint was in force, and the first start on 4.3 moves its offset into the store"


class Fresh(IncarnationStory):
    """The store was made in a session that was seen."""

    session: Session
    opened_at_us = derived(lambda x: x.session.opened_us)

    @property
    def before(self) -> PastDatabase | None:
        """The incarnation before it."""
        return self.store.past[-1] if self.store.past else None


class OnDisk(Fresh):
    """A checkpoint was in force when the store was made."""

    upstream = derived(lambda x: (TORN_DELETION.key,) if x.is_torn else ())
    affected = derived(lambda x: x.case.affected(TORN_DELETION if x.is_torn else KAFKA_8187))

    @property
    def is_torn(self) -> bool:
        """Whether a deletion took the store before it, and not the checkpoint."""
        return self.before is not None and self.before.shape in (Shape.CLEANER_WALK, Shape.OWNER_WALK)

    @cached_property
    def fact(self) -> CheckpointFact | None:
        """The checkpoint; None = forgotten, the history of checkpoints is bounded."""
        return self.task.checkpoint_at(self.session.opened_us)


class InMemory(Fresh):
    """The checkpoint was deleted, and may have been read before."""

    issues = (KAFKA_8187,)
    upstream = (KAFKA_8187.key,)
    opened_at_us = derived(lambda x: x.session.first.at_us if x.session.first else x.session.opened_us)

    @cached_property
    def carried(self) -> CheckpointFact | None:
        """The checkpoint of the deleted store from which the new one continues."""
        return continued_from(self.task, self.store, self.session)


def _stories(case: TaskCase) -> Iterator[IncarnationStory]:
    for store in case.task.stores.values():
        if not store.sessions:
            yield from () if store.keeps_offsets else at_rest(as_of(case, writer_of(case, store)), store)
            continue
        created = [x for x in store.sessions if x.created]
        identities = store.identities if created else frozenset()
        session = next((x for x in created if x.identities & identities), None)
        if session is not None:
            yield OnDisk(case, store, session)
            if not _keeps_offsets(case):
                yield InMemory(case, store, session)


def _keeps_offsets(case: TaskCase) -> bool:
    """From 4.3 on only the first start reads a `.checkpoint`, and deletes it."""
    return case.says(Fact.OFFSETS_IN_STORE) is Truth.YES


def _was_copied(x: Fresh) -> bool:
    database = x.store.databases.get("")
    return database is not None and is_copied(database)


def _went_with_its_store(x: OnDisk) -> bool:
    """It found no checkpoint then, in whatever order the removals were read on a busy machine.

    Source:
        StateManagerUtil.closeStateManager deletes all of the directory before a revived task opens it (2.6.0 to 4.2.1).
    """
    before, fact = x.before, x.fact
    if x.case.says(Fact.WIPE_TASK_DIRECTORY) is Truth.NO or before is None or fact is None:
        return False
    if before.shape is not Shape.OWNER_WALK or not fact.deleted:
        return False
    return any(
        life.started_us <= before.ended_us and (life.ended_us is None or x.session.opened_us <= life.ended_us)
        for life in x.case.application.lives
    )


def _made_beside_it(x: OnDisk) -> Proof:
    """Not sure of segments, nor where the owner may have wiped it just before the reading: its checkpoint may stay.

    From 4.3 on the first start moves the offset into the new store: sure once it is on disk there, as a kill before
    that loses it, and the store is restored in full.

    Source:
        LegacyCheckpointingStateStore.migrateLegacyOffsets (4.3.0), RocksDBStore.commit.
    """
    started_us = x.case.inventory.started_us
    unseen = not x.store.past and x.fact is not None and x.fact.written_us < started_us
    wiped = unseen and wipes_stores(x.case) and started_us <= x.session.opened_us
    certain = not x.store.segmented and not wiped
    if certain and x.store.keeps_offsets:
        stored = stored_offset(x.store) if x.session.released_us is None else x.session.stored_offset
        if (stored or 0) < (x.session.offset_at_open or 0):
            return Proof(MOVED, certain=False)
    return Proof("a checkpoint was in force", certain=certain)


def _loudness_on_disk(_: OnDisk, proof: Proof | None) -> Loudness | None:
    likely = proof is not None and proof.why == MOVED
    return Loudness(Severity.CRITICAL, Confidence.SUSPECTED) if likely else graded(proof)


def _continues(x: InMemory) -> Proof | None:
    """A new owner that waited for the lock makes the store soon after the deletion."""
    if x.carried is None or x.before is None:
        return None
    heard = x.carried.deleted and (x.carried.ended_us or 0) < x.session.opened_us
    soon = x.session.opened_us - x.before.ended_us <= SAME_PASS_US
    why = "its first checkpoint continues from the old offset"
    return Proof(why, certain=heard and soon and x.affected is Affected.YES)


# What it says


def _evidence_on_disk(x: OnDisk, _: Proof | None) -> Iterator[Evidence]:
    made, age = "a new, empty store was made for it", ""
    yield from _past(x)
    if x.fact is not None:
        what = f"checkpoint says offset {x.session.offset_at_open} of {x.store.name}"
        yield Evidence(x.fact.written_us, what, checkpoint_of(x.task))
        age = f" {seconds(x.session.opened_us - x.fact.written_us)} after that checkpoint was written"
    yield Evidence(x.session.opened_us, f"{made}{age}", x.place)
    if x.session.first is not None:
        yield _first_mark(x, x.session.first)


def _summary_in_memory(x: InMemory, _: Proof | None) -> str:
    mark, fact = x.session.first, x.carried
    now = f"{mark.offset} with {mark.puts} puts" if mark else ""
    return (
        f"{x.named} was deleted and recreated, and its first checkpoint continues from the old offset"
        f" {fact.offsets[x.store.name] if fact else None} ({now}; the deleted store had {held_before(x.store)})."
    )


def _evidence_in_memory(x: InMemory, _: Proof | None) -> Iterator[Evidence]:
    yield from _past(x)
    if x.carried is not None:
        last = f"last checkpoint before the deletion: offset {x.carried.offsets[x.store.name]}"
        yield Evidence(x.carried.written_us, last, checkpoint_of(x.task))
    yield Evidence(x.session.opened_us, "a new, empty store was made", x.place)
    if x.session.first is not None:
        yield _first_mark(x, x.session.first)


def _past(x: Fresh) -> Iterator[Evidence]:
    before = x.before
    if before is None:
        return
    how = {
        Shape.OWNER_WALK: "by the process that had held it",
        Shape.CLEANER_WALK: "by a cleaner: no process held it",
    }.get(before.shape, "unseen")
    if before.released_us is not None:
        yield Evidence(before.released_us, f"released with {before.puts} puts on disk", x.place)
    yield Evidence(before.ended_us, f"its files were deleted {how}", x.place)


def _first_mark(x: Fresh, mark: CheckpointClaim) -> Evidence:
    what = f"first checkpoint of the new store: offset {mark.offset} with {mark.puts} puts"
    return Evidence(mark.at_us, what, checkpoint_of(x.task))


_NOT_MADE_ANEW = {
    "wiped by its owner under its lock (carried-checkpoint)": lambda x: x.session.wiped,
    "a copied store seems to be made by its first opening": _was_copied,
}

ON_DISK = Rule[OnDisk](
    "a store was made while a checkpoint of an earlier one was in force",
    about=OnDisk,
    innocents={
        **_NOT_MADE_ANEW,
        "a new topology added it: no checkpoint names it": lambda x: not is_real(x.session.offset_at_open),
        "a young segment of a windowed store": lambda x: (
            x.store.segmented and not (x.before is not None and x.before.shape is Shape.CLEANER_WALK)
        ),
        "one process wiped all of the directory and made it anew (2.6 and later)": _went_with_its_store,
        "store and checkpoint were found gone before it was made (2.6 and later)": lambda x: was_gone_before(
            x.case, x.store, x.session
        ),
    },
    proofs=(_made_beside_it,),
    loudness=_loudness_on_disk,
    summary=lambda x, _: (
        f"{x.named} was recreated, but continues from the old changelog offset"
        f" {x.session.offset_at_open}; what is below that offset is missing."
    ),
    evidence=_evidence_on_disk,
)

IN_MEMORY = Rule[InMemory](
    "the first checkpoint of a new store continues from the offset of a deleted one",
    about=InMemory,
    innocents={
        **_NOT_MADE_ANEW,
        "restored in full: its puts come with its offset": lambda x: (
            x.session.first is not None and x.carried is None
        ),
    },
    unknowns={"it wrote no checkpoint yet": lambda x: x.session.first is None},
    proofs=(_continues,),
    loudness=lambda x, proof: graded(
        proof, ("kafka_streams_version",) if x.affected is Affected.POSSIBLY else ()
    ),
    summary=_summary_in_memory,
    evidence=_evidence_in_memory,
)

DETECTOR = detector(
    META,
    Docket(
        _stories,
        (ON_DISK, IN_MEMORY, EMPTY, OLDER, COPIED),
        first_of(lambda x: "" if isinstance(x, Copied) else x.store.name),
    ),
)
