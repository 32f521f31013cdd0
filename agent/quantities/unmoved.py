"""An offset that moved although nothing was put: from 2.6 on it is that of the last record that was applied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agent.inventory.model import Session, Store
from agent.inventory.sessions import stored_offset
from agent.layout.facts import Fact
from agent.layout.profile import Profile, Truth
from agent.quantities.changelog import is_real
from agent.quantities.claims import is_countable, is_read_since


@dataclass(frozen=True, slots=True)
class Jump:
    """Two offsets of one incarnation of a store, with nothing put between them.

    Args of the dataclass:
        start: The earlier one; None = there was none, and the store never held anything.
        start_us: When it was said, or when the store was made.
        end: The later one.
        end_us: When it was said.
    """

    start: int | None
    start_us: int
    end: int
    end_us: int


def jump_without_put(store: Store, profile: Profile, volume: str, *, birth_seen: bool) -> Jump | None:
    """Return how an offset of a key-value store moved on its own.

    Args:
        store: The store.
        profile: The releases that may have written it.
        volume: Kind of volume that it is on.
        birth_seen: The agent was there when it was made: it knows whether anything was ever put.

    Source:
        ProcessorStateManager.restore (the offset of the last record of a batch that was applied) and
        updateChangelogOffsets (of what was produced, which each put does), 2.6.0 to 4.3.1. Up to 2.5 the offset is a
        position, which moves over markers and aborted records.
    """
    if store.segmented or not store.databases or profile.says(Fact.OFFSET_IS_LAST) is not Truth.YES:
        return None
    sessions = [session for session in store.sessions if session.is_of(store.identities)]
    now = _now(store, sessions, volume)
    if now is None or not store.knows_puts or any(session.by_source_topic for session in sessions):
        return None
    offset, at_us = now
    if store.puts == 0 and birth_seen and not _holds_files(store):
        born_us = min(database.born_us for database in store.databases.values())
        return Jump(None, born_us, offset, at_us)
    if not is_countable(store, profile):
        return None
    for start, start_us, puts in _earlier(store, sessions):
        if start_us < at_us and offset > start + 1 and store.puts == puts:
            return Jump(start, start_us, offset, at_us)
    return None


def _now(store: Store, sessions: list[Session], volume: str) -> tuple[int, int] | None:
    """The offset that is said last, and when; None = there is none, or the store was not read since."""
    if store.keeps_offsets:
        offset = stored_offset(store)
        facts = [x.offsets for x in store.databases.values() if x.offsets is not None]
        if offset is None or not is_real(offset) or any(len(x.offsets) > 1 for x in facts):
            return None
        return offset, max(database.offset_us for database in store.databases.values())
    mark = next((session.last for session in reversed(sessions) if session.last is not None), None)
    if mark is None or not is_real(mark.offset):
        return None
    return (mark.offset, mark.at_us) if is_read_since(store, mark.at_us, volume) else None


def _earlier(store: Store, sessions: list[Session]) -> Iterator[tuple[int, int, int]]:
    """List (offset, when, puts on disk then) of what the same incarnation was opened with, or let go of with.

    What was on disk at a checkpoint in between is less exact: a flush that was compacted before it was read is dated
    to the earliest time.
    """
    for session in sessions:
        if store.keeps_offsets:
            offset, released_us = session.covering_offset, session.released_us
            if offset is not None and is_real(offset) and released_us is not None:
                yield offset, released_us, session.puts_at_release
            continue
        trusted = session.offset_at_open
        if trusted is not None and is_real(trusted) and not session.created:
            yield trusted, session.opened_us, session.puts_at_open


def _holds_files(store: Store) -> bool:
    return any(set(database.families_in_use) - {"offsets"} for database in store.databases.values())
