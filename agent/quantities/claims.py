"""What a store says that it holds, and when: everything up to an offset, in so many live entries. Two can be compared.

A changelog record adds or ends one entry at most, and a restoration gives back what was live at its end, however the
changelog was compacted. So between two offsets a store loses at most as many entries as there are offsets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agent.inventory.copied import is_copied
from agent.inventory.model import CheckpointClaim, PastDatabase, Session, Shape, Store, Task
from agent.inventory.sessions import counted_puts, stored_offset, uncovered_puts
from agent.inventory.settings import ApplicationSettings
from agent.layout.facts import Fact
from agent.layout.profile import Profile, Truth
from agent.quantities.bounds import Bounds
from agent.quantities.changelog import is_real, records_at_least, records_between
from agent.quantities.kinds import puts_per_record

WIPED_WITHIN_US = 10_000_000
"""A corrupted task writes its offset right before its wipe, what was not committed included; a slow volume takes
seconds to close its stores in between."""
LATE_VOLUMES = frozenset({"network", "fuse"})
SHOWS_LATE_US = 60_000_000
"""The attributes of a network file system are up to a minute old (nfs: `acregmax`); a renamed file is seen at once."""
PASSING_US = 10_000_000
"""A task that is wiped when it is taken has its store made twice (recorded: 0.3 s apart)."""


@dataclass(frozen=True, slots=True)
class OffsetClaim:
    """What a store said that it holds.

    Args of the dataclass:
        at_us: When.
        offset: Everything up to it.
        entries: Live entries at that offset.
    """

    at_us: int
    offset: int
    entries: Bounds


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known of the application, and decides which claims count."""

    settings: ApplicationSettings
    profile: Profile

    def may_be_corrupted(self, ended: PastDatabase) -> bool:
        """Return whether a store may have been wiped as corrupted: its last offset may cover what was never committed.

        Source:
            docs/state-format.md#d2 (3.8 and later, exactly-once); at-least-once wipes nothing from 2.6 on.
        """
        if self.settings.exactly_once is False or ended.shape is not Shape.OWNER_WALK:
            return False
        return self.profile.says(Fact.CHECKPOINT_AT_CORRUPTED_CLOSE) is not Truth.NO


def is_countable(store: Store, profile: Profile) -> bool:
    """Return whether each record of a store's changelog adds or ends one live entry at most, and nothing else does.

    Segments expire, and a versioned store drops ranges of keys; a source topic in place of a changelog may expire, too;
    RocksDB itself may drop entries.
    """
    if store.segmented or any(session.by_source_topic for session in store.sessions):
        return False
    if any(database.forgets for database in store.databases.values()):
        return False
    return puts_per_record(store, profile).low >= 1


def lacks_entries(earlier: OffsetClaim, later: OffsetClaim) -> Truth:
    """Return whether a store holds fewer entries than it must, by what it held at an earlier offset.

    Returns:
        YES: even if every offset between ended an entry. NO where the later offset is the lower one.
    """
    if later.offset < earlier.offset:
        return Truth.NO
    ended = records_between(earlier.offset, later.offset)
    return earlier.entries.exceeds(later.entries.plus(ended))


def got_too_little(earlier: OffsetClaim, later: OffsetClaim, puts: int) -> Truth:
    """Return whether a store that was recreated claims a later offset with fewer puts than there were live entries.

    Every key that was live is put once at least, or its deletion is; asked only while no deletion can have expired.
    """
    if later.offset < earlier.offset:
        return Truth.NO
    return earlier.entries.exceeds(Bounds.exactly(puts))


def claims_before(task: Task, store: Store, session: Session, known: Knowledge) -> Iterator[OffsetClaim]:
    """List what a store claimed before a session, in the incarnation that is there and in the one before.

    Of an older one nothing is said: the changelog may have been recreated since.
    """
    preceding = _preceding(store)
    identities = store.identities | ({preceding.identity or ""} if preceding is not None else set())
    for before in store.sessions:
        ended = before.released_us is not None and before.released_us <= session.opened_us
        if ended and (before.final_identities | before.identities) & identities:
            yield from _of_session(store, before, known)
    if preceding is not None and preceding.ended_us <= session.opened_us:
        yield from _of_past(task, store, preceding, known)


def _preceding(store: Store) -> PastDatabase | None:
    """The incarnation before the present one; one that was wiped as soon as it was made does not count."""
    for past in reversed(store.past):
        if past.segment is None and (past.puts or past.ended_us - past.born_us > PASSING_US):
            return past
    return None


def _of_session(store: Store, session: Session, known: Knowledge) -> Iterator[OffsetClaim]:
    released_us = session.released_us or 0
    ended = _end_of(store, session)
    low, counted = session.entries_at_release, session.counted_at_release
    if low is None and ended is not None and not ended.unread:
        low, counted = ended.entries_low, ended.counted_puts
    if low is None:
        return
    doubted = ended is not None and known.may_be_corrupted(ended)
    for mark in _marks(session):
        if is_real(mark.offset) and not (doubted and released_us - mark.at_us <= WIPED_WITHIN_US):
            beyond = _most_flushed_between(session, mark, counted)
            yield OffsetClaim(mark.at_us, mark.offset, Bounds(max(low - beyond, 0), None))
    offset, behind = session.covering_offset, session.uncovered_puts
    if offset is not None and is_real(offset) and behind is not None and not doubted:
        behind += abs(session.puts_at_release - counted)
        yield OffsetClaim(released_us, offset, Bounds(max(low - behind, 0), None))


def _of_past(task: Task, store: Store, past: PastDatabase, known: Knowledge) -> Iterator[OffsetClaim]:
    """By the checkpoints of an incarnation that ended, where nothing was flushed to it after them.

    One that was found only when it had ended may have come with another volume, whatever time it bears.
    """
    if past.entries_low is None or past.unread:
        return
    low = max(past.entries_low - abs(past.puts - past.counted_puts), 0)
    for fact in task.checkpoints:
        offset = fact.offsets.get(store.name)
        if offset is None or not is_real(offset) or fact.seen_us >= past.ended_us:
            continue
        if not past.flushed_us <= fact.written_us <= past.ended_us:
            continue
        doubted = known.may_be_corrupted(past) and past.ended_us - fact.written_us <= WIPED_WITHIN_US
        if past.born_us < fact.written_us and not doubted:
            yield OffsetClaim(fact.written_us, offset, Bounds(low, None))


def _marks(session: Session) -> list[CheckpointClaim]:
    marks = [mark for mark in (session.first, session.last) if mark is not None]
    return marks[:1] if len(marks) == 2 and marks[0].at_us == marks[1].at_us else marks


def _most_flushed_between(session: Session, mark: CheckpointClaim, counted: int) -> int:
    """Return how many puts lie at most between a checkpoint and the counting of the entries.

    A flush that was compacted before it was read is dated to the earliest time, which may be before the checkpoint. So
    only that of a clean close is exact: everything is on disk by then. Of others it is known that they came later than
    the opening.
    """
    at_close = session.closed is True and mark is session.last
    return abs(counted - (mark.puts if at_close else session.puts_at_open))


def _end_of(store: Store, session: Session) -> PastDatabase | None:
    """Return the incarnation that a session left behind, if it has ended since."""
    known = session.final_identities | session.identities
    return next((x for x in reversed(store.past) if x.identity in known and x.segment is None), None)


def claim_of_opening(session: Session) -> OffsetClaim | None:
    """Return what the opening of a session trusted: an offset, and what was there; None = nothing, or not known."""
    offset = session.offset_at_open
    if offset is None or not is_real(offset) or session.wiped:
        return None
    if session.created:
        return OffsetClaim(session.opened_us, offset, Bounds.exactly(0))
    if session.entries_at_open is None:
        return None
    since = abs(session.counted_at_open - session.puts_at_open)
    return OffsetClaim(session.opened_us, offset, Bounds(0, session.entries_at_open + since))


def is_read_since(store: Store, at_us: int, volume: str) -> bool:
    """Return whether every database was read after a checkpoint: what it says was flushed before.

    Args:
        store: The store.
        at_us: When the checkpoint was written.
        volume: Kind of volume; some show what a holder writes late.
    """
    late_us = SHOWS_LATE_US if volume in LATE_VOLUMES else 0
    return all(database.seen_us > at_us + late_us for database in store.databases.values())


def claim_now(store: Store, session: Session, volume: str) -> OffsetClaim | None:
    """Return what a store claims now, by the last checkpoint of its session, or by its own offset (4.3+)."""
    highs = [database.entries_high for database in store.databases.values()]
    known = [high for high in highs if high is not None]
    if not known or len(known) < len(highs) or not store.knows_puts:
        return None
    high, counted = sum(known), counted_puts(store)
    mark = session.last
    if mark is not None and is_real(mark.offset):
        if not is_read_since(store, mark.at_us, volume):
            return None
        return OffsetClaim(
            mark.at_us, mark.offset, Bounds(0, high + _most_flushed_between(session, mark, counted))
        )
    offset, beyond = stored_offset(store), uncovered_puts(store)
    if offset is None or not is_real(offset) or beyond is None:
        return None
    at_us = max(database.offset_us for database in store.databases.values())
    return OffsetClaim(at_us, offset, Bounds(0, high + beyond + abs(store.puts - counted)))


def puts_since_birth(store: Store, session: Session, earlier: OffsetClaim) -> int | None:
    """Return the puts behind what a store claims now, if it was made after an earlier claim; None = it was not."""
    born_us = min((database.born_us for database in store.databases.values()), default=0)
    if born_us <= earlier.at_us or any(is_copied(database) for database in store.databases.values()):
        return None
    mark = session.last
    return store.puts if mark is None else mark.puts


def has_seen_it_all(claim: OffsetClaim, puts: int) -> bool:
    """Return whether a store has put what a changelog of its own can have held, from its very start.

    Then it holds what it must, whatever there was before: an application that was reset begins a new changelog.
    """
    return puts >= records_at_least(None, claim.offset)
