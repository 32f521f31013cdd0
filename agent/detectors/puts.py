"""Arithmetic that several detectors share: offsets against puts.

Source: state-semantics sections 5.1 and 6, measured on recorded runs.
"""

from __future__ import annotations

from agent.inventory.model import CheckpointFact, Session, Store, Task
from agent.inventory.settings import ApplicationSettings
from agent.layout.checkpoint import UNKNOWN_OFFSET

NOISE_RECORDS = 100
NOISE_RATIO = 0.1
DEFAULT_COMMIT_INTERVAL_EOS_MS = 100
DEFAULT_COMMIT_INTERVAL_MS = 30_000
ROLE_PROOF_RECORDS = 10_000
"""A standby writes its checkpoint at the latest when its offset moved by more than this (the 10,000 rule)."""


def is_real(offset: int | None) -> bool:
    """Tell whether an entry says that something was applied: not absent, not unknown, not zero."""
    return offset is not None and offset > 0


def base_offset(offset: int | None) -> int:
    """Offset from which a restoration starts that trusts this entry; 0 for none or unknown."""
    return 0 if offset is None or offset == UNKNOWN_OFFSET else max(offset, 0)


def transaction_markers(settings: ApplicationSettings, duration_us: int) -> int:
    """Upper bound of the commit markers that one producer wrote in a time: they take offsets, but no puts.

    Args:
        settings: Guarantee and commit interval; unknown = exactly-once at its default interval.
        duration_us: The time.

    Returns:
        Number of markers; 0 under at-least-once.
    """
    if settings.exactly_once is False:
        return 0
    interval_ms = settings.number("commit_interval_ms") or DEFAULT_COMMIT_INTERVAL_EOS_MS
    return max(duration_us, 0) // (max(interval_ms, 1) * 1_000) + 2


def is_far_ahead(advance: int, puts: int, markers: int) -> bool:
    """Tell whether an offset moved by clearly more than what was put."""
    return advance - puts - markers > max(NOISE_RECORDS, NOISE_RATIO * advance)


def flushed_beyond(session: Session) -> int:
    """Puts that reached the disk after the last checkpoint of a finished session (or in all of it)."""
    known = session.last.puts if session.last else session.puts_at_open
    return max(session.puts_at_release - known, 0)


def puts_per_record(store: Store, session: Session) -> float:
    """How many puts one changelog record makes, at least 1.

    Versioned and indexed window stores put more than once per record; the first session of an incarnation,
    which begins at offset 0 with an empty store, tells how many.
    """
    for known in (session, *store.sessions):
        mark = known.last
        began_empty = known.created and known.puts_at_open == 0 and base_offset(known.offset_at_open) == 0
        if began_empty and mark is not None and mark.offset > NOISE_RECORDS:
            return max(1.0, mark.puts / (mark.offset + 1))
    return 1.0


LOST_RATIO = 0.8
SAME_RATIO = 0.5


def continued_from(task: Task, store: Store, session: Session) -> CheckpointFact | None:
    """Tell which checkpoint of a deleted store its successor continues from, carried in a new owner's memory.

    The new owner puts every record since the old offset once: about as many puts as offsets, never more, and far
    fewer than the old store held. A full restoration puts as much as its offset says, or what compaction left.

    Returns:
        The last checkpoint before the deletion; None if the first checkpoint of the new store does not follow it.
    """
    mark, fact = session.first, task.checkpoint_at(session.opened_us)
    if mark is None or fact is None or store.segmented or not session.created or not store.past:
        return None
    if not fact.deleted or (fact.ended_us or 0) >= session.opened_us:
        return None
    old = fact.offsets.get(store.name)
    if old is None or not is_real(old) or mark.offset < old:
        return None
    advance = mark.offset - old
    about_equal = SAME_RATIO * advance <= mark.puts <= advance + max(2, advance // 100)
    return fact if about_equal and mark.puts < LOST_RATIO * held_before(store) else None


def held_before(store: Store) -> int:
    """How much the previous incarnation of a store held, at least: its live entries, or its puts where unknown."""
    before = store.past[-1]
    return before.puts if before.entries_low is None else before.entries_low
