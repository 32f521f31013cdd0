"""Detector `store-shrank`: a store holds less than it did at a lower offset, and no deletion explains it.

A law: it holds on every release, and no known fault is behind it. A changelog record ends one entry at most, and a
restoration gives back every entry that is live at its end, however the changelog was compacted; segments of a windowed
store go in order of age.
Fires when a store claims an offset as high as an earlier one, or higher, with fewer live entries than there were,
less one for each offset between; when a store that was recreated claims one after fewer puts than there were live
entries, as long as no deletion can have gone from the changelog (`delete.retention.ms`); when a segment is gone
while an older one, made before, is still there; and when one was deleted while no process held the store, which was
opened again with the others and with their offset; and when one that is there was not opened with them: a deploy that
changes retention, window or grace changes the names of segments.
A remark names a store of which RocksDB itself drops entries, as the application configured it.
Clears when the store is gone.
Stays quiet where a detector of a known fault reports the same damage, for an offset that went back, for a store in the
middle of its restoration, for compaction, deletions and expiry, for what was flushed beyond an offset, for what an
owner wiped right after it wrote its offset under exactly-once, for versioned and global stores, and for a source
topic in place of a changelog.

Source:
    docs/state-format.md#puts; LogCleaner keeps the newest record of each key; AbstractSegments.cleanupExpiredSegments
    (2.0.1 to 4.3.1) and Segments.cleanupEarlierThan (2.0.1): all that are older than the retention, oldest first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.inventory.disk import LockState
from agent.inventory.model import Database, PastDatabase, Session, Shape, Store
from agent.judging.base import DetectorMeta, Evidence, Mechanism, Remedy, TaskCase, Truth, Twin
from agent.judging.reopening import is_settled
from agent.judging.rule import Docket, Loudness, NamedStoreStory, Proof, Rule, derived, detector, first_of
from agent.judging.segment_loss import removed_segments
from agent.quantities.changelog import is_real
from agent.quantities.claims import (
    Knowledge,
    OffsetClaim,
    claim_now,
    claims_before,
    got_too_little,
    has_seen_it_all,
    is_countable,
    lacks_entries,
    puts_since_birth,
)

GONE_FOR_US = 10_000_000
"""A deletion of the whole store removes its segments in any order, one after the other (recorded: up to 1 s a file)."""
OPENS_WITHIN_US = 60_000_000
"""No source: segments are opened one after the other, each in 10 to 50 ms (recorded), on a slow volume longer."""
REPLACED_WITHIN_US = 100_000
"""Both times are that of the new database's first file; half made, the old one was read once at most."""
_OF_ANOTHER_HAND = (Shape.CLEANER_WALK, Shape.VANISHED_UNSEEN)
_STARTS = re.compile(r"\.(\d+)\Z", re.ASCII)

META = DetectorMeta(
    id="store-shrank",
    title="Store holds less than it did before",
    mechanism=Mechanism.OFFSET_WITHOUT_DATA,
    severity=Severity.WARNING,
    remedy=Remedy.KEEP,
    next_action=(
        "Compare the store with its changelog before anything is removed. If the changelog has the missing keys: stop"
        " this instance cleanly, keep a copy of the task directory, remove that task directory only, start again. If"
        " not, keep every copy: another pod's may be the only complete one. No known fault explains it: report it."
    ),
    consequence="Entries are gone from the store: what is computed from it may be wrong.",
    twin=Twin(
        "N8, the cleaner took the directory and the task came back with a full restoration",
        "control-8187-2.2.2",
    ),
)


class Dropping(NamedStoreStory):
    """A store of which RocksDB drops entries: FIFO compaction the oldest files, up to 1 GB, a filter what it wants."""

    database: Database
    affected = Affected.NO
    subject = derived(lambda x: f"drops {x.store.name}@{x.task.incarnation}")
    opened_at_us = derived(lambda x: x.database.options_written_us or x.database.seen_us)


class Compared(NamedStoreStory):
    """What a key-value store claims now, and what it claimed before."""

    session: Session
    later: OffsetClaim
    earlier: OffsetClaim
    subject = derived(lambda x: f"incarnation {x.task.incarnation}.{x.store.incarnation}")
    opened_at_us = derived(lambda x: x.later.at_us)

    @cached_property
    def puts(self) -> int | None:
        """What it put since it was made, where that was after the earlier claim."""
        return puts_since_birth(self.store, self.session, self.earlier)

    @property
    def keeps_deletions(self) -> bool:
        """The changelog still has every deletion that came after the earlier claim."""
        retention_ms = self.case.assumed_at("delete_retention_ms", self.later.at_us)
        return retention_ms is not None and self.later.at_us - self.earlier.at_us < retention_ms * 1_000


class Gone(NamedStoreStory):
    """A segment that is gone."""

    gone: PastDatabase
    subject = derived(lambda x: f"segment {x.gone.identity}")
    opened_at_us = derived(lambda x: x.gone.ended_us)

    @property
    def went(self) -> Evidence:
        """When it went."""
        return Evidence(self.gone.ended_us, "its files were deleted", f"{self.place}/{self.gone.segment}")


class Dropped(Gone):
    """It went, and a process has the store open."""

    identity = derived(lambda x: x.kept[-1].identity)

    @cached_property
    def older(self) -> list[Database]:
        """Older segments that are there and were made before it went, oldest first."""
        mine, there = _start(self.gone.segment) or 0, self.store.databases.values()
        before = [x for x in there if 0 < x.born_us < self.gone.ended_us]
        found = [(starts, x) for x in before if (starts := _start(x.segment)) is not None and starts < mine]
        return [x for _, x in sorted(found, key=lambda row: row[0])]

    @cached_property
    def kept(self) -> list[Database]:
        """Those that were there themselves: a copy that took the place of one keeps its times."""
        return [x for x in self.older if x.found_us < self.gone.ended_us and not self._is_copy(x)]

    def _is_copy(self, database: Database) -> bool:
        since_us = self.gone.ended_us - GONE_FOR_US
        return any(x.segment == database.segment and x.ended_us >= since_us for x in self.store.past)


class LeftOut(Gone):
    """It was deleted while no process held the store; the session is the one that is there now."""

    session: Session
    opened_at_us = derived(lambda x: x.session.opened_us)

    @property
    def trusted(self) -> int | None:
        """Offset that the opening trusted for what was left."""
        session = self.session
        return session.stored_offset_at_open if self.store.keeps_offsets else session.offset_at_open


class PassedOver(NamedStoreStory):
    """A segment that is there and closed, and the open one that has its place: the nearest that begins earlier.

    Source:
        AbstractSegments.openExisting and segmentName (2.1.0 to 4.3.1; Segments, 2.0.0): a directory's time by the
        segment interval is the segment that is opened, under the name that this interval gives it. The interval is half
        the retention (Stores.persistentWindowStore), that is of window and grace.
    """

    segment: Database
    instead: Database
    subject = derived(lambda x: f"passed over {x.identity}")
    identity = derived(lambda x: x.segment.identity)
    opened_at_us = derived(lambda x: x.passed_us)

    @property
    def passed_us(self) -> int:
        """When the other one was first opened without it; 0 = never."""
        last_us = _openings(self.segment)[-1] + OPENS_WITHIN_US
        return next((x for x in _openings(self.instead) if x > last_us), 0)

    @property
    def newest_us(self) -> int:
        """When a segment of the store was opened last."""
        return max(_openings(x)[-1] for x in self.store.databases.values())


def _openings(database: Database) -> list[int]:
    return sorted((database.born_us, *database.reopened_us))


def _passed_over(case: TaskCase) -> Iterator[PassedOver]:
    for store, _ in _stores(case):
        instead: Database | None = None
        there = [(starts, x) for x in store.databases.values() if (starts := _start(x.segment)) is not None]
        for _, x in sorted(there, key=lambda row: row[0]) if store.lock is LockState.HELD else ():
            if x.lock is LockState.HELD:
                instead = x
            elif x.lock is LockState.FREE and instead is not None:
                yield PassedOver(case, store, x, instead)


def _stores(case: TaskCase) -> Iterator[tuple[Store, Session | None]]:
    """List the stores that have a changelog of their own, each with its last session if that is on what is there."""
    for store in case.task.stores.values() if case.task.exists and not case.task.is_global else ():
        session = store.sessions[-1] if store.sessions else None
        yield store, session if session is not None and session.is_of(store.identities) else None


def _dropping(case: TaskCase) -> Iterator[Dropping]:
    for store, _ in _stores(case):
        yield from [Dropping(case, store, x) for x in store.databases.values() if x.forgets][:1]


def _compared(case: TaskCase) -> Iterator[Compared]:
    known = Knowledge(case.settings, case.profile)
    for store, session in _stores(case):
        countable = session is not None and is_countable(store, case.profile)
        later = claim_now(store, session, case.inventory.volume) if session and countable else None
        if session is not None and later is not None:
            for earlier in claims_before(case.task, store, session, known):
                yield Compared(case, store, session, later, earlier)


def _dropped(case: TaskCase) -> Iterator[Dropped]:
    for store, _ in _stores(case):
        if store.segmented and store.lock is LockState.HELD:
            yield from (Dropped(case, store, gone) for gone in store.past)


def _left_out(case: TaskCase) -> Iterator[LeftOut]:
    for store, session in _stores(case):
        if session is not None:
            yield from (LeftOut(case, store, gone, session) for gone in removed_segments(case.task, store))


def _start(segment: str | None) -> int | None:
    match = _STARTS.search(segment or "")
    return None if match is None else int(match[1])


def _was_half_made(x: Dropped) -> bool:
    """An opening replaced a database that a kill had left half made: nothing was ever flushed to it.

    Source: RocksDB's DB::Open makes a new one where there is no CURRENT; seen live on 4.3.1 and 3.5.2.
    """
    gone = x.gone
    # the opening that replaced it may have begun already, and then its maker's end is that of the session before
    ends = (gone.released_us, *(y.released_us for y in x.store.sessions))
    if gone.puts or gone.unread or not any(gone.born_us < (y or 0) <= gone.ended_us for y in ends):
        return False  # data, or the process that made it took it away itself
    same = [y for y in x.store.databases.values() if y.segment == gone.segment]
    return any(abs(y.born_us - gone.ended_us) <= REPLACED_WITHIN_US for y in same)


def _fewer_entries(x: Compared) -> Proof | None:
    """Even if every offset between ended an entry."""
    lacks = lacks_entries(x.earlier, x.later) is Truth.YES
    return Proof(f"{x.later.entries.high} live entries or fewer", certain=False) if lacks else None


def _too_few_puts(x: Compared) -> Proof | None:
    """Every key that was live is put once at least, or its deletion is."""
    if x.puts is None or not x.keeps_deletions or got_too_little(x.earlier, x.later, x.puts) is not Truth.YES:
        return None
    return Proof(f"been recreated, and got only {x.puts} puts", certain=False)


# What it says


def _evidence_of_claims(x: Compared, proof: Proof | None) -> Iterator[Evidence]:
    before = f"offset {x.earlier.offset}, {x.earlier.entries.low} live entries or more"
    yield Evidence(x.earlier.at_us, before, x.place)
    yield Evidence(x.later.at_us, f"offset {x.later.offset}, {proof.why if proof else ''}", x.place)


_AS_IT_WANTS = (
    "Nothing, if this is intended. Otherwise remove it from the RocksDBConfigSetter: the changelog still"
    " has what was dropped. A restoration (stop, copy that task directory, remove it only, start) brings it back."
)

DROPPING = Rule[Dropping](
    "RocksDB itself drops entries, as it is configured",
    loudness=lambda _, __: Loudness(Severity.INFO, Confidence.CONFIRMED, Level.EXPOSURE, _AS_IT_WANTS),
    summary=lambda x, _: (
        f"Task {x.task.id}: RocksDB drops entries of store {x.store.name} by configuration (FIFO compaction, or a"
        " compaction filter of a RocksDBConfigSetter): whether entries are missing is not judged."
    ),
    evidence=lambda x, _: (
        Evidence(
            x.opened_at_us,
            "OPTIONS: compaction_style=kCompactionStyleFIFO, or a compaction filter",
            x.database.path,
        ),
    ),
)

DROPPED = Rule[Dropped](
    "a segment went while an older one stayed",
    innocents={
        "an opening renamed the segment": lambda x: _start(x.gone.segment) is None,
        "the segment is there again": lambda x: x.gone.identity in x.store.identities,
        "no running store took the segment": lambda x: x.gone.shape in _OF_ANOTHER_HAND,
        "an opening replaced a segment that a kill had left half made": _was_half_made,
        "the segment was the oldest, and expired": lambda x: not x.older,
        "the older segment came with another volume": lambda x: not x.kept,
    },
    unknowns={"the whole store may be on its way": lambda x: x.case.waited_us(x.gone.ended_us) < GONE_FOR_US},
    summary=lambda x, _: (
        f"Task {x.task.id}: segment {x.gone.segment} of store {x.store.name} is gone, although the older"
        f" {x.kept[-1].segment} is still there: it did not expire."
    ),
    evidence=lambda x, _: (
        x.went,
        Evidence(x.kept[-1].seen_us, "older, made before, and there", x.kept[-1].path),
    ),
)

LEFT_OUT = Rule[LeftOut](
    "a store reads on without a segment that was deleted",
    innocents={
        "the store was not opened since the segment went": lambda x: x.session.opened_us < x.gone.ended_us,
        "the opening trusted no offset, and all is restored": lambda x: not is_real(x.trusted),
    },
    unknowns={"the opening may end in a wipe": lambda x: not is_settled(x.case, x.session)},
    summary=lambda x, _: (
        f"Task {x.task.id}: segment {x.gone.segment} of store {x.store.name} was deleted while no process held it,"
        f" and the store reads on from offset {x.trusted}: what the segment held is missing."
    ),
    evidence=lambda x, _: (
        x.went,
        Evidence(x.opened_at_us, f"opened without it, at offset {x.trusted}", x.place),
    ),
)

_NEW_INTERVAL = (
    "Find out whether a deploy changed retention, window or grace. If it did: stop this instance cleanly, keep a copy"
    " of the task directory, remove that task directory only, and start. The changelog gives back what its own"
    " retention kept. Then do the same on each other pod that has the task. If it did not, remove nothing and get help."
)

PASSED_OVER = Rule[PassedOver](
    "a store was opened without a segment that is there",
    innocents={
        "it was opened with the others": lambda x: not x.passed_us,
        "nothing is in it": lambda x: x.segment.puts <= 0,
    },
    unknowns={
        "RocksDB keeps few or no old LOG files there": lambda x: not x.store.all_reopens,
        "the others are being opened, or it is deleted": lambda x: (
            x.case.waited_us(max(x.newest_us, x.segment.lock_since_us)) < OPENS_WITHIN_US
        ),
    },
    loudness=lambda _, __: Loudness(
        Severity.WARNING, Confidence.SUSPECTED, next_action=_NEW_INTERVAL, remedy=Remedy.CHECK_FIRST
    ),
    summary=lambda x, _: (
        f"Task {x.task.id}: store {x.store.name} was opened without its segment {x.segment.segment}, and has"
        f" {x.instead.segment} in its place: what it holds is not read."
    ),
    evidence=lambda x, _: (
        Evidence(_openings(x.segment)[-1], "opened last", x.segment.path),
        Evidence(x.passed_us, "opened without it", x.instead.path),
    ),
)

SHRANK = Rule[Compared](
    "a store claims an offset with fewer entries than it had",
    innocents={
        "the store's offset went back": lambda x: x.later.offset < x.earlier.offset,
        "the store was made since, and has put all that its changelog can have held": lambda x: (
            x.puts is not None and has_seen_it_all(x.later, x.puts)
        ),
    },
    proofs=(_fewer_entries, _too_few_puts),
    summary=lambda x, proof: (
        f"{x.named} held at least {x.earlier.entries.low} entries at offset"
        f" {x.earlier.offset}; at offset {x.later.offset} it has {proof.why if proof else ''}: entries are missing."
    ),
    evidence=_evidence_of_claims,
)

DETECTOR = detector(
    META,
    Docket(_dropping, (DROPPING,)),
    Docket(_dropped, (DROPPED,)),
    Docket(_left_out, (LEFT_OUT,)),
    Docket(_passed_over, (PASSED_OVER,)),
    Docket(_compared, (SHRANK,), first_of(lambda x: x.store.name)),
)
