"""Detector `data-beyond-changelog`: a store holds more than its changelog gave it.

A law: it holds on every release, and no known fault is behind it. What is on disk beyond an offset is either in the
changelog behind that offset, where the next opening reads it again, or was never committed, and then the store must
be wiped.
Fires when a store was opened again, the same incarnation, and the offset at which its restoration ended is too low
for what had been flushed beyond the last one; or when a replay from the very start gave back fewer puts than the
store had live entries. Confirmed where that offset is known to be the end. Under either guarantee, up to 4.2, when a
store that was made empty took more puts, in its first opening, than its checkpoint counts records. From 4.3 on, under
exactly-once, when such a store was closed in order with more entries than its offset counts records, and opened
again. From 3.8 to 4.2 when its last checkpoint knew no offset at all, and it was opened again.
Clears when the store is gone.
Stays quiet where a detector of a known fault reports the same damage.

Source:
    docs/state-format.md#wipes (exactly-once wipes what may hold uncommitted records); ProcessorStateManager.restore
    applies what is behind the trusted offset, up to the end of the changelog.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial

from agent.contract.units import UNCOMMITTED_RESULTS, Twin
from agent.inventory.model import CheckpointClaim, Session, Store
from agent.inventory.sessions import OPENED_TWICE_WITHIN_US
from agent.judging.base import DetectorMeta, Evidence, Fact, Mechanism, Remedy, TaskCase, Truth
from agent.judging.reopening import encloses_restoration, eos_reopenings, present_sessions, replayed_puts
from agent.judging.restoration_end import RestorationEnd, restoration_end
from agent.judging.rule import Docket, NamedStoreStory, Proof, Rule, derived, detector, first_of
from agent.judging.source_topic import names_source
from agent.judging.wording import checkpoint_of
from agent.layout.checkpoint import UNKNOWN_OFFSET
from agent.quantities.changelog import is_real, records_between
from agent.quantities.flushed import dirty_puts, dirty_since, flushed_beyond
from agent.quantities.verdicts import holds_uncommitted, replay_fell_short

META = DetectorMeta(
    id="data-beyond-changelog",
    title="Store holds records that its changelog does not",
    mechanism=Mechanism.UNCOMMITTED_DATA,
    needs=("processing_guarantee",),
    remedy=Remedy.RESTORE,
    next_action=(
        "Stop this instance cleanly, keep a copy of the task directory, remove that task directory only, start again:"
        " the task is restored from committed records. Leave the other pods' copies alone. What this task wrote"
        " since the opening may rest on uncommitted data. No known fault explains it: keep the copy, and report it."
    ),
    consequence=UNCOMMITTED_RESULTS,
    twin=Twin(
        "killed with flushes beyond the checkpoint, and everything was committed",
        "exposure-20685-crash-committed-4.1.2",
    ),
)


class Filled(NamedStoreStory):
    """A store of up to 4.2 in the only session on its incarnation, and the checkpoint that was written last."""

    session: Session
    mark: CheckpointClaim
    subject = derived(lambda x: f"made@{x.session.opened_us}")
    opened_at_us = derived(lambda x: x.mark.at_us)

    @property
    def is_first(self) -> bool:
        """It was made empty by the opening, and never opened again: its changelog gave, or got, all that it took."""
        session, made = self.session, self.store.databases.values()
        once = session.created and not (session.attached or session.wiped or self.store.forgotten_us)
        # Up to 3.7 a timestamped store is made by two openings.
        again = any(at_us > x.born_us + OPENED_TWICE_WITHIN_US for x in made for at_us in x.reopened_us)
        return once and self.store.all_reopens and not again

    @property
    def why(self) -> str:
        """What is too much."""
        most = records_between(None, self.mark.offset).high
        return f"{self.mark.puts} puts since it was made, from {most} records at most"


class Reopened(NamedStoreStory):
    """A store that was opened again under exactly-once, the same incarnation."""

    before: Session
    after: Session
    subject = derived(lambda x: f"opening@{x.after.opened_us}")
    opened_at_us = derived(lambda x: x.after.opened_us)

    @cached_property
    def flushed(self) -> int:
        """Puts on disk beyond the checkpoint."""
        return flushed_beyond(self.before)

    @property
    def base(self) -> int | None:
        """Offset of that checkpoint."""
        return self.before.last.offset if self.before.last is not None else None

    @cached_property
    def end(self) -> RestorationEnd | None:
        """Where the restoration ended."""
        return restoration_end(self.case, self.task, self.store, self.after)

    @cached_property
    def dirty(self) -> int:
        """Puts on disk, at least, behind the stored offset (4.3+)."""
        return dirty_puts(self.store, self.before, self.case.settings)

    def exceeds(self, puts: int, base: int | None, end: int) -> bool:
        """Return whether so many puts are more than the changelog can have given between two offsets."""
        return holds_uncommitted(self.store, self.case.profile, puts, base, end) is Truth.YES


def _filled(case: TaskCase) -> Iterator[Filled]:
    for store in _stores(case):
        sessions = case.once(present_sessions, store)
        mark = sessions[0].last if len(sessions) == 1 else None
        if mark is not None and not (store.segmented or store.keeps_offsets):
            yield Filled(case, store, sessions[0], mark)


def _all_reopened(case: TaskCase) -> Iterator[Reopened]:
    for store in _stores(case) if case.settings.exactly_once is True else ():
        yield from (Reopened(case, store, before, after) for before, after in eos_reopenings(case, store))


def _reopened(case: TaskCase) -> Iterator[Reopened]:
    return (x for x in _all_reopened(case) if not x.store.keeps_offsets)


def _reopened_4_3(case: TaskCase) -> Iterator[Reopened]:
    """4.3+: each segment has an offset of its own, so windowed stores are left out."""
    return (x for x in _all_reopened(case) if x.store.keeps_offsets and not x.store.segmented)


def _stores(case: TaskCase) -> list[Store]:
    return [] if case.task.is_global else list(case.task.stores.values())


def _had_offset(x: Reopened) -> bool:
    """Return whether an offset may have been trusted: up to 2.5 it is read, and deleted, before the lock is free.

    That of a table whose source topic stands in for its changelog does not name the store; as the topic goes on, a
    restoration begins, and ends at once where the group had committed (StateRestorer.hasCompleted, 2.1.1).
    """
    return is_real(x.after.offset_at_open) or any(
        (is_real(fact.offsets.get(x.store.name)) or names_source(x.task, fact))
        and fact.written_us <= x.after.opened_us
        and (fact.ended_us is None or fact.ended_us > x.before.opened_us)
        for fact in x.task.checkpoints
    )


def _is_ahead(x: Reopened) -> bool:
    """What transactional stores read from the changelog goes past their buffer, and ahead of the offset.

    Source:
        RocksDBStore.restoreBatch (4.4.0).
    """
    sure = x.before.transactional is False or x.case.profile.transactional is Truth.NO
    return bool(x.before.transactional) or not sure


def _replayed(x: Reopened) -> Proof | None:
    live, restored = x.before.entries_at_release, replayed_puts(x.before, x.after)
    if restored is None or replay_fell_short(live, restored) is not Truth.YES:
        return None
    why = f"{live} live entries or more, and the whole changelog gave back {restored} puts"
    return Proof(why, at_us=x.after.opened_us, place=x.place)


def _checkpointed(x: Reopened) -> Proof | None:
    if x.end is None:
        return None
    at_us = max((y.at_us for y in (x.after.first, x.after.last) if y is not None), default=x.after.opened_us)
    since = "without an offset" if x.base is None else f"beyond offset {x.base}"
    why = f"{x.flushed} puts had been flushed {since}, and the restoration ended at {x.end.offset}"
    return Proof(why, x.end.certain, max(at_us, x.after.opened_us), checkpoint_of(x.task))


def _stored(x: Reopened) -> Proof | None:
    base = dirty_since(x.before)
    since = "since it was made" if base is None else f"behind stored offset {base}"
    why = f"{x.dirty} puts or more were flushed {since}, and the next one is {x.after.stored_offset}"
    return Proof(why, False, max(x.after.released_us or 0, x.after.opened_us), x.place)


def _holds_more_entries(x: Reopened) -> Proof | None:
    """Each entry of a store that was made empty needs a record of its own."""
    entries, offset = x.before.entries_at_release, x.before.stored_offset
    if entries is None or offset is None or not is_real(offset) or not x.exceeds(entries, None, offset):
        return None
    why = f"{entries} live entries or more since it was made, and closed in order at stored offset {offset}"
    return Proof(why, False, x.before.released_us or x.before.opened_us, x.place)


def _never_sent(x: Reopened) -> Proof | None:
    """Whatever a task writes or restores has an offset: what was put without one never reached the changelog.

    Source:
        StreamTask.maybeCheckpoint (3.8.0): one that is forced has the offsets of all that was acknowledged;
        in 2.8.0 only where something was processed since the last commit. A task whose records were not
        acknowledged (RecordCollectorImpl.recordSendError) is closed with a checkpoint all the same.
    """
    mark = x.before.last
    if mark is None:
        return None
    why = f"{mark.puts} puts since it was made, and a checkpoint that knows no offset"
    return Proof(why, False, mark.at_us, checkpoint_of(x.task))


# What it says


def _summary(x: Reopened, proof: Proof | None) -> str:
    why = proof.why if proof is not None else ""
    return f"{x.named} holds records that were never committed: {why}."


def _evidence(x: Reopened, proof: Proof | None) -> Iterator[Evidence]:
    released_us = x.before.released_us or x.before.opened_us
    yield Evidence(released_us, f"released with {x.before.puts_at_release} puts on disk", x.place)
    yield Evidence(x.after.opened_us, "the same incarnation opened again, no wipe", x.place)
    if proof is not None:
        yield Evidence(proof.at_us, proof.why, proof.place)


ANOTHER_MADE_IT = "another session made the store"
NOTHING_FLUSHED = "nothing was flushed beyond the checkpoint"
READS_AGAIN = "a standby of up to 2.4 may have read the same records again"

_rule = partial(Rule[Reopened], summary=_summary, evidence=_evidence)

REPLAYED = _rule(
    "a whole replay gave back less than the store held",
    innocents={
        NOTHING_FLUSHED: lambda x: x.flushed <= 0,
        "an offset was trusted, the replay was not whole": _had_offset,
    },
    # up to 2.5 a pair of reopens encloses a whole restoration, so what it put is known
    unknowns={
        "nobody saw its end: an offset may have been written there, and read by the next owner": lambda x: (
            x.before.release_unseen
        ),
        "the restoration is not seen as a whole": lambda x: (
            x.case.says(Fact.BULK_LOAD_REOPEN) is not Truth.YES or not encloses_restoration(x.store, x.after)
        ),
    },
    proofs=(_replayed,),
)

CHECKPOINTED = _rule(
    "a restoration ended too low for what had been flushed",
    innocents={
        NOTHING_FLUSHED: lambda x: x.flushed <= 0,
        "all that had been flushed may have been committed": lambda x: (
            x.end is not None and not x.exceeds(x.flushed, x.base, x.end.offset)
        ),
    },
    unknowns={
        READS_AGAIN: lambda x: x.case.says(Fact.STANDBY_READS_AGAIN) is not Truth.NO,
        "where the restoration ended": lambda x: x.end is None,
    },
    proofs=(_checkpointed,),
)

NEVER_SENT = _rule(
    "a new store was filled, and its checkpoint knows no offset",
    innocents={
        ANOTHER_MADE_IT: lambda x: not x.before.created or x.before.attached or x.before.wiped,
        "its last checkpoint knows an offset, or there was none": lambda x: (
            x.before.last is None or x.before.last.offset != UNKNOWN_OFFSET
        ),
        "nothing was in it at its last checkpoint": lambda x: (
            x.before.last is not None and x.before.last.puts <= 0
        ),
    },
    unknowns={
        "an older release may not know the offset of what it committed": lambda x: (
            x.case.says(Fact.CHECKPOINT_AT_CORRUPTED_CLOSE) is not Truth.YES
        ),
        "whether the store took it before that checkpoint": lambda x: (
            x.before.last is not None and x.before.last.unsure
        ),
    },
    proofs=(_never_sent,),
)

STORED = _rule(
    "the next stored offset is too low for what had been flushed",
    innocents={
        "nothing was flushed behind the stored offset": lambda x: x.dirty <= 0,
        "the next stored offset may cover all that had been flushed": lambda x: (
            x.after.stored_offset is not None
            and not x.exceeds(x.dirty, dirty_since(x.before), x.after.stored_offset)
        ),
    },
    unknowns={
        "a transactional store may be ahead of its offset": _is_ahead,
        "an older release let go of the store": lambda x: not x.before.kept_offsets,
        "the next stored offset, as long as the store is open": lambda x: (
            x.after.stored_offset is None or x.after.released_us is None
        ),
    },
    proofs=(_stored,),
)

CLOSED = _rule(
    "a new store was closed with more than its changelog gave it",
    innocents={
        ANOTHER_MADE_IT: lambda x: not x.before.created or x.before.attached,
        "not closed with its offset": lambda x: not (x.before.closed and x.before.closed_with_offset),
    },
    unknowns={"a transactional store may be ahead of its offset": _is_ahead},
    proofs=(_holds_more_entries,),
)

OVERFILLED = Rule[Filled](
    "a new store took more than its changelog gave it",
    innocents={
        "the store was not new, or was opened again": lambda x: not x.is_first,
        "the checkpoint claims nothing": lambda x: not is_real(x.mark.offset),
        "as many puts as there may be records": lambda x: (
            holds_uncommitted(x.store, x.case.profile, x.mark.puts, None, x.mark.offset) is not Truth.YES
        ),
    },
    unknowns={
        READS_AGAIN: lambda x: x.case.says(Fact.STANDBY_READS_AGAIN) is not Truth.NO,
        "whether the store took them before the checkpoint": lambda x: x.mark.unsure,
    },
    summary=lambda x, _: f"{x.named} took more than its changelog gave it: {x.why}.",
    evidence=lambda x, _: (
        Evidence(x.session.opened_us, "made empty, and not opened again since", x.place),
        Evidence(x.mark.at_us, x.why, checkpoint_of(x.task)),
    ),
)

ONE_A_STORE = first_of(lambda x: x.store.name)

DETECTOR = detector(
    META,
    Docket(_filled, (OVERFILLED,)),
    Docket(_reopened, (REPLAYED, CHECKPOINTED, NEVER_SENT), ONE_A_STORE),
    Docket(_reopened_4_3, (STORED, CLOSED), ONE_A_STORE),
)
