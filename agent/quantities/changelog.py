"""What two offsets of a changelog partition say: how many records lie between them, at least and at most."""

from __future__ import annotations

from agent.layout.checkpoint import UNKNOWN_OFFSET
from agent.quantities.bounds import Bounds

TEN_THOUSAND = 10_000
"""A task rewrites its checkpoint at a commit after so many further offsets (StateManagerUtil.checkpointNeeded)."""


def is_real(offset: int | None) -> bool:
    """Return whether an entry says that something was applied: not absent, not unknown, not zero."""
    return offset is not None and offset > 0


def base_offset(offset: int | None) -> int:
    """Offset from which a restoration starts that trusts this entry; 0 for none or unknown."""
    return 0 if offset is None or offset == UNKNOWN_OFFSET else max(offset, 0)


def records_between(start: int | None, end: int | None) -> Bounds:
    """Return how many records a store can have taken from its changelog between two of its offsets.

    The low end is 0: markers, aborted and compacted records take offsets as well. The high end counts every offset,
    and one more, because an entry is the next offset up to 2.5 and the last one since.

    Args:
        start: Entry before; None or unknown = from the start.
        end: Entry after; unknown = nothing was applied; None = nothing is known.
    """
    if end is None:
        return Bounds(0, None)
    return Bounds(0, max(base_offset(end) - base_offset(start), 0) + 1)


def records_at_least(start: int | None, end: int) -> int:
    """Return how many records lie between two offsets at least, where nothing was compacted or aborted.

    A transaction that wrote to a partition left one marker there, behind one record or more: at most every second
    offset is a marker.
    """
    return max(end - base_offset(start), 0) // 2


def is_one_short(start: int, end: int, puts: int) -> bool:
    """Return whether one record was not put: `start` is the next one to read (up to 2.5), `end` the last one (2.6)."""
    return end - start == puts
