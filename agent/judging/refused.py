"""Openings of a store that Kafka Streams itself refused, and stores that its start-up pass leaves locked (4.3+).

Under exactly-once a store whose status says open is refused. A refused opening renames RocksDB's LOG, takes and frees
`LOCK`, and writes neither data nor a status: every opening after the last flush of such a store was refused.

Source:
    AbstractColumnFamilyAccessor.open and close, RocksDBStore.openDB (4.3.0 to 4.4.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent.inventory.disk import LockState
from agent.inventory.model import Application, Database, Store
from agent.inventory.segments import OPEN
from agent.judging.base import TaskCase
from agent.judging.reopening import SETTLED_US

REFUSALS = 5
"""A process that wipes is refused twice: by its start-up pass, and by the task that it then wipes. Two more are left
for a task that goes to another thread between. One that does not wipe came to 73 in 26 s (recorded)."""

BURST_US = 5_000_000
"""Where no process was seen: not even processes that end after their start-up pass follow so closely (it is reached 3 s
after the start, recorded)."""

STARTS = 2
"""Global stores are refused once by each process; a second one shows that a start does not help."""

GOES_ON_US = 1_000_000
"""An end that is not announced is found by the next lock poll, 250 ms later; a second covers a busy agent."""

SEEN_LATE_US = 1_000_000
"""A lock poll sees a process up to a second after its first work."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A store that is refused again and again.

    Args of the dataclass:
        database: The one whose status says open.
        times_us: When openings were refused, by one process; of global stores by several.
        flushed_us: Last flush of it, status and data, before them.
        decided_us: The one that decided.
        proven: The guarantee is configured, and the processes were seen; else it may have been a tool of an operator.
    """

    database: Database
    times_us: tuple[int, ...]
    flushed_us: int
    decided_us: int
    proven: bool


@dataclass(frozen=True, slots=True)
class Leak:
    """A segment that was deleted while its own process held it: it had opened it, and was refused a later one.

    Args of the dataclass:
        at_us: When it was deleted.
        opened_us: When the store was opened.
        store: Its store.
        path: The segment.
        refused: Path of the segment whose status said open.
    """

    at_us: int
    opened_us: int
    store: str
    path: str
    refused: str


def refusal(case: TaskCase, store: Store) -> Refusal | None:
    """Return how a store is refused again and again; None = it is not, as far as is known."""
    if case.settings.exactly_once is False:
        return None
    for database in store.databases.values():
        facts = database.offsets
        if facts is None or facts.status != OPEN or not database.reopened_us:
            continue
        flushed_us = _flushed_us(database)
        times_us = _refused_us(store, database, flushed_us)
        if times_us and not _is_opened_for_good(case, database, times_us[-1]):
            found = _decided(case, times_us)
            if found is not None:
                chosen, number, proven = found
                return Refusal(database, tuple(chosen), flushed_us, chosen[number - 1], proven)
    return None


def leaks(case: TaskCase) -> Iterator[Leak]:
    """List segments that were deleted while the process that deleted the task held them itself.

    A windowed store opens its segments oldest first. The refusal of one leaves those before it open: the store is not
    registered, so nothing closes it, and the wipe of the task deletes them under their lock.

    Source:
        AbstractSegments.openExisting and getOrCreateSegment, StateDirectory.initializeStartupStores, StateManagerUtil
        (4.3.0, 4.3.1, 4.4.0); recorded as `startup-leaked-segment-4.4.0`.
    """
    if case.settings.exactly_once is False:
        return
    for at_us, name, path in case.task.taken:
        store = case.task.stores.get(name)
        before = [x for x in store.openings if x.at_us <= at_us] if store is not None else []
        segments = before[-1].segments if before else ()
        refused = next((number for number, one in enumerate(segments) if one.status == OPEN), None)
        if refused is not None and path in [one.path for one in segments[:refused]]:
            yield Leak(at_us, before[-1].at_us, name, path, segments[refused].path)


def _flushed_us(database: Database) -> int:
    newest_us = database.flushed[-1][1] if database.flushed else 0
    return max(newest_us, database.undated_us, database.offsets.written_us if database.offsets else 0)


def _refused_us(store: Store, database: Database, flushed_us: int) -> list[int]:
    """List when a database that says open was opened after its last flush, and its store tried in vain.

    Segments that were opened before it stay locked by their own process: each further try ends at the first of them,
    with a new LOG and nothing else. RocksDB writes OPTIONS last of all in an opening.
    """
    times_us = [x for x in database.reopened_us if x > flushed_us]
    if times_us and database.lock is LockState.FREE:
        for other in store.databases.values():
            if other.lock is LockState.HELD and other.options_written_us:
                first_us = max(other.options_written_us, times_us[0])
                times_us += [x for x in other.reopened_us if x > first_us]
    return sorted(times_us)


def _is_opened_for_good(case: TaskCase, database: Database, tried_us: int) -> bool:
    since_us = max(tried_us, database.lock_since_us, database.closed_us)
    return database.lock is LockState.HELD and case.waited_us(since_us) >= SETTLED_US


def _decided(case: TaskCase, times_us: list[int]) -> tuple[list[int], int, bool] | None:
    """Return the openings that count, the number of the one that decided, and whether they are proven."""
    if case.settings.exactly_once is None:  # at-least-once goes on with such a store
        late = times_us[-REFUSALS:]
        return (late, REFUSALS, False) if _burst(late) else None
    lives = [x for x in _by_process(case.application, times_us) if x]
    if case.task.is_global:
        known = [x for one in lives for x in one]
        if len(lives) >= STARTS:
            return known, len(lives[0]) + 1, True
        return (times_us, REFUSALS, False) if len(times_us) >= REFUSALS else None
    for one in lives:
        if len(one) >= REFUSALS:
            return one, REFUSALS, True
    unseen = [x for x in times_us if x < case.inventory.started_us or not case.application.lives]
    burst = _burst(unseen)
    return (burst, REFUSALS, False) if burst else None


def _by_process(application: Application, times_us: Sequence[int]) -> Iterator[list[int]]:
    for life in application.lives:
        from_us, to_us = life.started_us - SEEN_LATE_US, life.ended_us
        yield [x for x in times_us if from_us <= x and (to_us is None or x <= to_us)]


def _burst(times_us: Sequence[int]) -> list[int]:
    """Return the first openings that follow too closely for starts of a process, and all after them."""
    for number in range(len(times_us) - REFUSALS + 1):
        if times_us[number + REFUSALS - 1] - times_us[number] <= BURST_US:
            return list(times_us[number:])
    return []
