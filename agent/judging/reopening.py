"""Two sessions in a row on the same store: what several detectors ask of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from agent.inventory.disk import LockState
from agent.inventory.model import Session, Shape, Store
from agent.judging.base import AgentCase, ApplicationCase, Fact, TaskCase, Truth

SETTLED_US = 10_000_000
"""A release that wipes opens the store first and deletes it within milliseconds to a second (recorded)."""
DEAD_US = 60_000_000
"""A container that ended is started again at once, and after 10, 20, 40 s when that failed: a store that is free for a
minute waits for an operator, and that is the last moment at which everything can be saved."""


def reopenings(case: AgentCase, store: Store) -> Iterator[tuple[Session, Session]]:
    """List (session before, session after) wherever the store was opened again and kept.

    Kept: the same RocksDB incarnation, still there, and old enough that the opening did not end in a wipe.
    """
    if len(store.sessions) < 2:
        return
    identities = store.identities
    for before, after in pairwise(store.sessions):
        same = before.final_identities & after.identities & identities
        if before.released_us is not None and same and not after.wiped and is_settled(case, after):
            yield before, after


def eos_reopenings(case: TaskCase, store: Store) -> Iterator[tuple[Session, Session]]:
    """List the same without those after a session that ran at-least-once."""
    return (pair for pair in reopenings(case, store) if not ran_alos(case, pair[0]))


def ran_alos(case: TaskCase, session: Session | None) -> bool:
    """Return whether a session that is over ran at-least-once, although the application is exactly-once now.

    What it flushed it had sent as well, outside of any transaction: there is nothing to be wiped.
    """
    until_us = case.application.changed_us.get("processing_guarantee", 0)
    if session is None or session.opened_us >= until_us:
        return False
    return session.release_unseen or (session.released_us or 0) <= until_us


def present_sessions(store: Store) -> list[Session]:
    """List the sessions on the incarnation that is there; ask it `once`."""
    identities = store.identities
    return [session for session in store.sessions if session.is_of(identities)]


def encloses_restoration(store: Store, session: Session) -> bool:
    """Return whether a session saw a whole restoration from begin to end, by the pair of reopens around it.

    Up to 2.5 only (`Fact.BULK_LOAD_REOPEN`), and not of a windowed store: each of its segments counts its own reopens.
    """
    return session.reopens >= 2 and not store.segmented


def replayed_puts(before: Session, after: Session) -> int | None:
    """Return how many puts a whole restoration brought; None = the manifest that its end began was not read yet."""
    replayed = after.restored_puts - before.puts_at_release
    return replayed if replayed >= 0 else None


def is_settled(case: AgentCase, session: Session) -> bool:
    """Return whether it is clear by now that an opening did not end in a wipe."""
    since_us = session.opened_us if session.released_us is None else session.released_us
    decided = session.first is not None or session.stored_offset is not None
    return decided or case.waited_us(since_us) >= SETTLED_US


def may_be_wiped_soon(case: ApplicationCase, store: Store) -> bool:
    """Return whether a process that lives may just have let go a store that nobody watched: no end is known of it.

    A task that is closed dirty is wiped by its own process, which closes its stores before it deletes them. A process
    that was seen to start after the store was found held none of it.

    Source:
        TaskManager.closeTaskDirty, then StateManagerUtil.closeStateManager (2.6.0 to 4.4.0).
    """
    if store.sessions or case.application.lock is not LockState.HELD:
        return False
    files, life = store.databases.values(), case.application.life
    if life is not None and life.started_us > max((x.found_us for x in files), default=0):
        return False
    times = [min(max(x.touched_us, *(us for _, us in x.flushed), 0), x.found_us) for x in files]
    return case.waited_us(max(times, default=0)) < DEAD_US


def was_gone_before(case: TaskCase, store: Store, session: Session) -> bool:
    """Return whether a store and its checkpoint were found gone at one look, and the new store at a later one.

    Its owner cannot have read that checkpoint. A segment is made later than that, by the first record.

    Source:
        StateManagerUtil.registerStateStores opens the stores, then initializeStoreOffsetsFromCheckpoint reads and
        deletes the file (2.6.0 to 4.2.1).
    """
    fact = case.task.checkpoint_at(session.opened_us)
    if case.says(Fact.CHECKPOINT_READ_BEFORE_LOCK) is not Truth.NO or fact is None or not fact.deleted:
        return False
    if store.segmented or not store.past or store.past[-1].shape is not Shape.VANISHED_UNSEEN:
        return False
    gone_us = max(store.past[-1].ended_us, fact.ended_us or 0)
    return gone_us < min(session.opened_us, session.seen_us)
