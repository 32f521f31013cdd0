"""The questions that detectors ask: each gets yes, no or maybe, and yes holds at the worst end of what is known."""

from __future__ import annotations

from agent.inventory.model import Store
from agent.inventory.settings import COMMIT_INTERVAL_MS, ApplicationSettings
from agent.layout.profile import Profile, Truth
from agent.quantities.bounds import Bounds
from agent.quantities.changelog import records_between
from agent.quantities.kinds import puts_beside_records, puts_per_record

NOISE_RECORDS = 100
"""A session may end between a put and its flush; fewer records than this decide nothing."""
NOISE_PART = 10
"""Nor does up to a tenth of the offsets. No source; recorded sessions in order miss 2 of some thousand at most, those
without a restoration 9 of 10."""
LOST_RATIO = 0.8
"""A restoration that gave back as much was whole. No source; recorded ones that were cut short gave back 0 to 0.5 of
what the offset says, or of what was there live, whole ones 1.0 and more."""
SAME_RATIO = 0.5
"""Under exactly-once a commit marker may follow every record: half of the offsets are none (recorded: 50 of 51
were)."""


def holds_uncommitted(
    store: Store, profile: Profile, flushed_puts: int, start: int | None, end: int | None
) -> Truth:
    """Return whether a store holds more than its changelog can have given it.

    Args:
        store: The store.
        profile: The releases that may have written it.
        flushed_puts: Puts that were on disk beyond the offset `start` when it was reopened.
        start: The offset that was trusted.
        end: The offset up to which the changelog was read again; None = not known.

    Returns:
        YES: even if every offset between was a record of the largest kind, some puts are no record of it.
    """
    offered = records_between(start, end).times(puts_per_record(store, profile))
    return Bounds.exactly(flushed_puts).exceeds(offered.plus(puts_beside_records(store, profile)))


def replay_fell_short(live_entries: int | None, restored_puts: int) -> Truth:
    """Return whether a replay from the very start gave back fewer puts than the store had live entries.

    Compaction keeps the newest record of each key, so a whole replay puts every key that is not deleted at least once.

    Args:
        live_entries: Lower bound of the store's live entries before the replay; None = not known.
        restored_puts: Puts of the whole replay.
    """
    if live_entries is None:
        return Truth.MAYBE
    return Truth.YES if live_entries > restored_puts else Truth.NO


def skipped_offsets(settings: ApplicationSettings, advance: int, applied_puts: int, duration_us: int) -> int:
    """Return how many offsets were neither applied nor a commit marker: aborted ones, or what compaction took.

    Args:
        settings: Guarantee and commit interval.
        advance: How far the offset moved.
        applied_puts: Puts meanwhile.
        duration_us: The time in which the offsets were written.
    """
    return advance - applied_puts - transaction_markers(settings, duration_us)


def is_mostly_skipped(
    store: Store, profile: Profile, flushed_puts: int, skipped: int, start: int, end: int
) -> Truth:
    """Return whether as many offsets were skipped as had been flushed; MAYBE at most, compaction skips offsets, too."""
    if puts_per_record(store, profile) != Bounds.exactly(1) or end <= start:
        return Truth.NO
    return Truth.MAYBE if skipped >= flushed_puts else Truth.NO


def transaction_markers(settings: ApplicationSettings, duration_us: int) -> int:
    """Estimate the commit markers that one producer writes in a time: they take offsets, but no puts.

    Args:
        settings: Guarantee and commit interval; unknown = exactly-once at its default interval.
        duration_us: The time.

    Returns:
        Number of markers; 0 under at-least-once.
    """
    if settings.exactly_once is False:
        return 0
    interval_ms = settings.number("commit_interval_ms") or COMMIT_INTERVAL_MS[True]
    return max(duration_us, 0) // (max(interval_ms, 1) * 1_000) + 2


def comes_with(puts: int, offset: int) -> bool:
    """Return whether so many puts, and markers, explain an offset, or an advance."""
    return offset - puts <= max(NOISE_RECORDS, offset // NOISE_PART)


def gave_back(puts: int, whole: int) -> bool:
    """Return whether a restoration with so many puts was whole, by an offset or by what was there live."""
    return puts >= LOST_RATIO * whole


def may_hold_all(puts: int, offset: int, *, markers: bool = True) -> bool:
    """Return whether so many puts can be all records up to an offset; `markers`: each may have one of a commit."""
    return puts >= (SAME_RATIO if markers else 1) * offset


def continues_offset(store: Store, mark_puts: int, advance: int) -> bool:
    """Return whether a new store's first checkpoint is an old offset plus what was put since.

    About as many puts as offsets, never more, and far fewer than the old store held. A full restoration puts as much
    as its offset says, or what compaction left.
    """
    about_equal = may_hold_all(mark_puts, advance) and mark_puts <= advance + max(2, advance // 100)
    return about_equal and not gave_back(mark_puts, held_before(store))


def held_before(store: Store) -> int:
    """How much the previous incarnation of a store held, at least: its live entries, or its puts where unknown."""
    before = store.past[-1]
    return before.puts if before.entries_low is None else before.entries_low
