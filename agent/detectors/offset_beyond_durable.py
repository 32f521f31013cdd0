"""Detector `offset-beyond-durable`: a store reads on from an offset that not every database of it held durably.

A law: it holds on every release, and no known fault is behind it. What an opening trusts, without a wipe, was written
for the database that is there, and each database had flushed everything up to it; a replay from there never brings
back the rest.
Fires when a key-value store was made by the very opening that trusts an offset: confirmed, nothing can be in it. When
it was there, and held fewer entries than when it last claimed an offset as high, less one for each offset since. From
2.6 on also when its offset moves though nothing is put, or nothing ever was. When a segment of a windowed store (4.3
and later) claims, after an opening, the offset of another one, although it was not flushed since it last took records,
and nothing was flushed to it since.
Clears when the store or segment is gone.
Stays quiet where a detector of a known fault reports the same damage.

Source:
    ProcessorStateManager.initializeStoreOffsetsFromCheckpoint (2.6.0 to 4.2.1) and initializeStoreOffsets (4.3.0): a
    restoration begins behind the offset that is found; docs/state-format.md#rocksdb-files (durability).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from agent.contract.codec import rfc3339
from agent.contract.units import WRONG_RESULTS, Twin
from agent.inventory.copied import is_copied
from agent.inventory.model import Session, Store
from agent.inventory.openings import is_read_since
from agent.inventory.segments import Opening
from agent.inventory.sessions import SEEN_BEFORE_BORN_US
from agent.judging.base import DetectorMeta, Evidence, Fact, Mechanism, Remedy, TaskCase, Truth
from agent.judging.reopening import is_settled, present_sessions, was_gone_before
from agent.judging.rule import Docket, IncarnationStory, Proof, Rule, derived, detector, first_of
from agent.judging.segment_loss import Grade, Loss, Picture, losses
from agent.judging.wording import checkpoint_of
from agent.quantities.claims import (
    Knowledge,
    OffsetClaim,
    claim_of_opening,
    claims_before,
    is_countable,
    lacks_entries,
)
from agent.quantities.unmoved import Jump, jump_without_put

META = DetectorMeta(
    id="offset-beyond-durable",
    title="Store resumed from an offset that it had not reached",
    mechanism=Mechanism.OFFSET_WITHOUT_DATA,
    remedy=Remedy.RESTORE,
    next_action=(
        "Stop this instance cleanly, keep a copy of the task directory, remove that task directory only, start again"
        " and check that the restoration begins at the first offset of the changelog."
        " Leave the other pods' copies alone. What the"
        " task wrote since the opening was computed on missing state. No known fault explains it: keep the copy, and"
        " report it."
    ),
    consequence=WRONG_RESULTS,
    twin=Twin(
        "the second owner wiped and restored beside the old checkpoint, and finished",
        "benign-8574-finished-2.1.1",
    ),
)


class KeyValue(IncarnationStory):
    """A key-value store; one verdict for each incarnation, the surest."""

    @property
    def is_copy(self) -> bool:
        """Its files have the times of a copy."""
        return any(is_copied(x) for x in self.store.databases.values())


class Jumped(KeyValue):
    """An offset that may have moved although nothing was put."""

    opened_at_us = derived(lambda x: x.jump.end_us if x.jump else x.case.now_us)

    @cached_property
    def jump(self) -> Jump | None:
        """From where to where."""
        born_us = min((x.born_us for x in self.store.databases.values()), default=0)
        birth_seen = born_us >= self.task.first_seen_us - SEEN_BEFORE_BORN_US
        return jump_without_put(
            self.store, self.case.profile, self.case.inventory.volume, birth_seen=birth_seen
        )


class Opened(KeyValue):
    """An opening, and what it trusted."""

    session: Session
    trusted: OffsetClaim
    opened_at_us = derived(lambda x: x.session.opened_us)

    @cached_property
    def before(self) -> OffsetClaim | None:
        """An earlier claim with more entries than can have ended since."""
        knowledge = Knowledge(self.case.settings, self.case.profile)
        known = claims_before(self.task, self.store, self.session, knowledge)
        return next((x for x in known if lacks_entries(x, self.trusted) is Truth.YES), None)


class Segments(Picture):
    """A windowed store that was opened again: its segments as they were before."""

    opening: Opening
    subject = derived(lambda x: f"opening@{x.opening.at_us}")
    opened_at_us = derived(lambda x: x.opening.at_us)
    identity = derived(lambda x: x.worst.segment.identity)

    @cached_property
    def lacking(self) -> list[list[Loss]]:
        """What its segments lacked, whichever of them answers for the store."""
        each = [losses(self.weighed(oldest=x)).values() for x in (False, True)]
        return [[loss for loss in one if loss.grade > Grade.POSSIBLE] for one in each]

    @cached_property
    def lost(self) -> list[Loss]:
        """What they lacked, and say that they have."""
        found = ([loss for loss in one if self._claims_it_all(loss)] for one in self.lacking)
        return next((one for one in found if one), [])

    def _claims_it_all(self, loss: Loss) -> bool:
        """Return whether a segment says the offset of the one that answers, and nothing was flushed to it since.

        Its offset reaches the disk together with its data, so no replay has brought it anything.
        """
        there = (x for x in self.store.databases.values() if x.identity == loss.segment.identity)
        database = next(there, None)
        if database is None or database.offsets is None or database.offsets_unread:
            return False
        stored = next((offset for name, offset, _ in database.offsets.offsets if name == self.changelog), -1)
        flushed_us = database.flushed[-1][1] if database.flushed else 0
        return stored >= loss.offset and flushed_us <= self.opened_at_us

    @property
    def worst(self) -> Loss:
        """The surest, of the newest segment."""
        return max(self.lost, key=lambda loss: (loss.grade, loss.segment.starts))


def _key_value(case: TaskCase) -> Iterator[tuple[Store, list[Session]]]:
    for store in () if case.task.is_global else case.task.stores.values():
        if not store.segmented:
            yield store, case.once(present_sessions, store)


def _trusted(case: TaskCase, store: Store, session: Session) -> OffsetClaim | None:
    gone = session.created and was_gone_before(case, store, session)
    return None if gone else claim_of_opening(session)


def _made(case: TaskCase) -> Iterator[Opened]:
    """List the openings that made the store and trusted an offset."""
    for store, sessions in _key_value(case):
        for session in sessions:
            trusted = _trusted(case, store, session) if session.created else None
            if trusted is not None:
                yield Opened(case, store, session, trusted)


def _jumped(case: TaskCase) -> Iterator[Jumped]:
    return (Jumped(case, store) for store, _ in _key_value(case))


def _opened(case: TaskCase) -> Iterator[Opened]:
    for store, sessions in _key_value(case):
        trusted = _trusted(case, store, sessions[-1]) if sessions else None
        if trusted is not None:
            yield Opened(case, store, sessions[-1], trusted)


def _segments(case: TaskCase) -> Iterator[Segments]:
    for store in () if case.task.is_global else case.task.stores.values():
        for opening in store.openings if store.segmented else ():
            story = Segments(case, store, opening.segments, opening)
            if story.changelog is not None:
                yield story


def _nothing_can_be_in_it(x: Opened) -> Proof:
    """Up to 2.5 the owner wipes single stores and leaves the checkpoint: one that was not seen looks the same."""
    seen = bool(x.store.past) and x.case.inventory.started_us < x.session.opened_us
    wiped = x.case.settings.exactly_once is not False and x.case.says(Fact.WIPE_STORE) is not Truth.NO
    return Proof("a new, empty store was made for it", certain=seen or not wiped)


# What it says


def _evidence_of_made(x: Opened, proof: Proof | None) -> Iterator[Evidence]:
    fact = x.task.checkpoint_at(x.session.opened_us)
    written_us = x.session.opened_us if fact is None else fact.written_us
    yield Evidence(written_us, f"offset {x.trusted.offset} of {x.store.name}", checkpoint_of(x.task))
    yield Evidence(x.session.opened_us, proof.why if proof else "", x.place)


def _summary_of_jump(x: Jumped, _: Proof | None) -> str:
    start, end = (x.jump.start, x.jump.end) if x.jump else (None, 0)
    since = "but nothing was ever put into it"
    if start is not None:
        since = f"but nothing was put into it since offset {start}"
    return f"{x.named} says offset {end}, {since}; records may be missing."


def _evidence_of_jump(x: Jumped, _: Proof | None) -> Iterator[Evidence]:
    if x.jump is not None:
        start = x.jump.start
        yield Evidence(x.jump.start_us, "made empty" if start is None else f"offset {start}", x.place)
        yield Evidence(x.jump.end_us, f"offset {x.jump.end}, and no put since", x.place)


def _summary_of_less(x: Opened, _: Proof | None) -> str:
    offset, least = (x.before.offset, x.before.entries.low) if x.before else (0, 0)
    return (
        f"{x.named} reads on from offset {x.trusted.offset} with"
        f" {x.trusted.entries.high} entries at most; at offset {offset} it held {least} at least."
    )


def _evidence_of_less(x: Opened, _: Proof | None) -> Iterator[Evidence]:
    before, trusted = x.before, x.trusted
    if before is not None:
        what = f"offset {before.offset}, {before.entries.low} live entries or more"
        yield Evidence(before.at_us, what, x.place)
    what = f"opened at offset {trusted.offset}, {trusted.entries.high} live entries or fewer"
    yield Evidence(trusted.at_us, what, x.place)


def _evidence_of_segments(x: Segments, _: Proof | None) -> Iterator[Evidence]:
    for one in (loss.segment for loss in x.lost):
        what = f"last flushed {rfc3339(one.flushed_us)}" if one.has_data else "no record on disk"
        yield Evidence(x.opened_at_us, what, one.path)
    opened = f"opened without a wipe at offset {x.worst.offset}"
    yield Evidence(x.opened_at_us, opened, x.worst.speaker.path)


COPIED = "the files have the times of a copy"

MADE = Rule[Opened](
    "a store was made by the opening that trusted an offset",
    innocents={COPIED: lambda x: x.is_copy},
    proofs=(_nothing_can_be_in_it,),
    summary=lambda x, _: (
        f"{x.named} reads on from offset {x.trusted.offset}, but was made empty by that"
        " opening; what is below that offset is missing."
    ),
    evidence=_evidence_of_made,
)

JUMPED = Rule[Jumped](
    "an offset moved though nothing was put",
    innocents={
        COPIED: lambda x: x.is_copy,
        "another release was told then: up to 2.5 offsets move like that": lambda x: (
            x.jump is not None
            and x.opened_at_us < x.case.application.changed_us.get("kafka_streams_version", 0)
        ),
    },
    proofs=(lambda x: Proof("nothing was put, and the offset moved", certain=False) if x.jump else None,),
    summary=_summary_of_jump,
    evidence=_evidence_of_jump,
)

LESS = Rule[Opened](
    "a store holds fewer entries than when it claimed an offset as high",
    innocents={COPIED: lambda x: x.is_copy},
    unknowns={
        "how many entries a record of the store adds or ends": lambda x: (
            not is_countable(x.store, x.case.profile)
        ),
        "the opening may end in a wipe": lambda x: not is_settled(x.case, x.session),
    },
    proofs=(
        lambda x: Proof("more entries are gone than there were offsets", certain=False) if x.before else None,
    ),
    summary=_summary_of_less,
    evidence=_evidence_of_less,
)

UNFLUSHED = Rule[Segments](
    "a segment claims an offset up to which it was not flushed",
    innocents={
        "no segment lacked anything for sure": lambda x: not any(x.lacking),
        "what a segment lacked was read again": lambda x: not x.lost,
    },
    unknowns={"not every segment was read again": lambda x: not is_read_since(x.store, x.opening)},
    summary=lambda x, _: (
        f"{x.named} reads on from offset {x.worst.offset} of segment {x.worst.speaker.name};"
        f" {', '.join(loss.segment.name for loss in x.lost)} had not been flushed up to it, and got nothing since."
    ),
    evidence=_evidence_of_segments,
)

DETECTOR = detector(
    META,
    Docket(_made, (MADE,)),
    Docket(_jumped, (JUMPED,)),
    Docket(_opened, (LESS,)),
    Docket(_segments, (UNFLUSHED,)),
    keep=first_of(lambda x: (x.store.name, x.subject)),
)
