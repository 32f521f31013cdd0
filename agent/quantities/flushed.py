"""What reached the disk: puts flushed beyond a checkpoint, and the records that they represent."""

from __future__ import annotations

from agent.inventory.model import CLOSES_WITHIN_US, CheckpointClaim, Database, Session, Store, Task
from agent.inventory.sessions import opened_puts, uncovered_puts
from agent.inventory.settings import ApplicationSettings
from agent.layout.profile import Profile
from agent.quantities.bounds import Bounds
from agent.quantities.changelog import TEN_THOUSAND
from agent.quantities.kinds import puts_beside_records, puts_per_record

COMMITS = 2
LATE_US = 10_000_000
"""So late may a commit be: a batch is applied first, and every store flushed, on a slow volume or a throttled CPU."""
LONGEST_DEFAULT_MS = 30_000
"""`commit.interval.ms` where the guarantee is not known either."""


def flushed_beyond(session: Session) -> int:
    """Puts that reached the disk after the last checkpoint of a finished session (or in all of it)."""
    known = session.last.puts if session.last else session.puts_at_open
    return max(session.puts_at_release - known, 0)


def dirty_puts(store: Store, session: Session, settings: ApplicationSettings) -> int:
    """Puts of data, at least, that a close without an offset left on disk (4.3+).

    Counted from the newest stored offset, less what openings and closes put beside it (position, status). Where a
    compaction zeroed its sequence, everything since the opening counts, less what commits may have put into the family
    of offsets: offset, position and status.
    """
    if session.uncovered_puts is not None:
        openings = 1 + max((len(database.reopened_us) for database in store.databases.values()), default=0)
        return max(session.uncovered_puts - 1 - 2 * openings, 0) if store.all_reopens else 0
    interval_us = max(settings.assumed("commit_interval_ms") or 1, 1) * 1_000
    commits = ((session.released_us or session.opened_us) - session.opened_us) // interval_us + 2
    return max(session.puts_at_release - session.puts_at_open - 3 * commits, 0)


def dirty_since(session: Session) -> int | None:
    """Offset behind which `dirty_puts` are; None = they are all that there is."""
    return session.stored_offset_at_open if session.uncovered_puts is None else session.covering_offset


def order_is_lost_beside(task: Task, store: Store, session: Session | None) -> bool:
    """Return whether a compaction took the order of a store, and the same close put another's offset behind its data.

    Of a dirty close no offset is, unless the other store took nothing after its restoration (4.3+).
    """
    stores = task.stores.values()
    if session is None:
        behind = any(uncovered_puts(x) == 0 and x.puts > opened_puts(x) for x in stores)
        return behind and uncovered_puts(store) is None
    closes = (x for one in stores for x in one.sessions if x.released_us is not None)
    near = [x for x in closes if abs((x.released_us or 0) - (session.released_us or 0)) <= CLOSES_WITHIN_US]
    behind = any(x.uncovered_puts == 0 and x.puts_at_release > x.puts_at_open for x in near)
    return behind and session.uncovered_puts is None


def is_more_than_ten_thousand(puts: int, store: Store, profile: Profile) -> bool:
    """Return whether puts are more than 10,000 records for sure: a standby would have written a checkpoint since."""
    most = unsaved_puts(store, profile)
    return most is not None and puts > most


def unsaved_puts(store: Store, profile: Profile) -> int | None:
    """Return how many puts 10,000 records make at most; None = no limit is known. Agents report it."""
    records = Bounds.exactly(TEN_THOUSAND).times(puts_per_record(store, profile))
    return records.plus(puts_beside_records(store, profile)).high


def commits_passed(settings: ApplicationSettings, duration_us: int) -> bool:
    """Return whether commits went by in a time for sure: what the commit timer writes would be there."""
    return duration_us >= COMMITS * commit_interval_us(settings) + LATE_US


def commit_interval_us(settings: ApplicationSettings) -> int:
    """Return after how long a task commits, at most."""
    return (settings.assumed("commit_interval_ms") or LONGEST_DEFAULT_MS) * 1_000


def first_flush_beyond(store: Store, mark: CheckpointClaim) -> int:
    """When the first flush beyond a checkpoint was written; the checkpoint's own time where none is remembered."""
    times = [at_us for database in store.databases.values() for _, at_us in _after(database, mark.at_us)]
    return min(times, default=mark.at_us)


def due_flush(store: Store, mark: CheckpointClaim, profile: Profile) -> int | None:
    """When the flush was written that made more than 10,000 records since a checkpoint; None = not so many."""
    times = [at_us for database in store.databases.values() for _, at_us in _after(database, mark.at_us)]
    late = [at for at in times if is_more_than_ten_thousand(store.puts_at(at) - mark.puts, store, profile)]
    return min(late, default=None)


def _after(database: Database, at_us: int) -> list[tuple[int, int]]:
    return [(puts, written_us) for puts, written_us in database.flushed if written_us > at_us]
