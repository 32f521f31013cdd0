"""What one key of a store is worth against the records that its changelog has of it. Pure.

A database on disk is an exact beginning of its changelog, and its own offset is a lower bound of that beginning: a
flush takes along what was written after the commit. So a value is right if it is that of the last record at or before
the offset, or of any later one; and nothing is claimed where there is no offset.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from agent.contract.changelog import Key, Logged
from agent.verify.kinds import Content


class Word(StrEnum):
    """What is said of a key, and of a store; the worst last, but `expired`, which is not judged."""

    EXPIRED = "expired"
    EQUAL = "equal"
    BEHIND = "behind"
    PENDING = "pending"
    AHEAD = "ahead"
    UNDECIDABLE = "undecidable"
    DIFFERENT = "different"
    EXTRA = "extra"
    MISSING = "missing"


DAMAGE = (Word.MISSING, Word.EXTRA, Word.DIFFERENT)
"""What no healthy store has."""


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """What is known of the changelog, and of the database that is judged."""

    offset: int | None  # last record that the database says it has; None = it says nothing
    start: int  # first offset that the changelog still has
    has_gaps: bool
    """Whether offsets are missing between start and end: compacted away, or markers of transactions."""
    has_gaps_after: bool  # the same, of those after `offset`
    is_fresh: bool  # the database was written so lately that no tombstone can have gone since
    is_compacted: bool = False
    """Whether more offsets in a row are missing after `offset` than markers of transactions leave out."""


def judge(
    have: Content | None, records: Iterable[Logged[Content]], known: KnownKeys
) -> tuple[Word, int | None]:
    """Judge one key.

    `have`: what the store holds; None = nothing. `records`: of the key, the last committed one at or before the offset
    and all later ones, in order; read once. Gives the word, and the offset of the record that the store should have at
    least; None = there is none.
    """
    seen = _Seen(have, known.offset)
    for record in records:
        seen.take(record)
    due = seen.low or seen.newest
    return _word(have, seen, known), due.offset if due else None


def _word(have: Content | None, seen: _Seen, known: KnownKeys) -> Word:
    if _fits(have, seen.newest):
        return Word.EQUAL
    if have is None:
        is_claimed = seen.low is not None and seen.low.content is not None
        return Word.MISSING if is_claimed and not seen.has_later_deletion else Word.PENDING
    if seen.fits_committed or (seen.low is not None and _fits(have, seen.low)):
        return Word.BEHIND
    return Word.AHEAD if seen.fits_uncommitted else _judge_unknown(seen, known)


class _Seen(Key[Content]):
    """What the records of one key come to beside what the store holds."""

    __slots__ = ("_have", "fits_committed", "fits_uncommitted")

    def __init__(self, have: Content | None, offset: int | None) -> None:
        super().__init__(offset)
        self._have = have
        self.fits_committed = self.fits_uncommitted = False

    def take(self, record: Logged[Content]) -> bool:
        is_later = super().take(record)
        if is_later and self._have is not None and _fits(self._have, record):
            self.fits_committed |= record.is_committed
            self.fits_uncommitted |= not record.is_committed
        return is_later


def _judge_unknown(seen: _Seen, known: KnownKeys) -> Word:
    """Judge a value that no record here has."""
    if known.offset is not None and known.offset < known.start - 1:
        return Word.UNDECIDABLE  # what came next is gone
    if seen.low is None and not seen.has_later:
        has_gaps = known.has_gaps if known.offset is None else known.has_gaps_after
        return Word.EXTRA if known.start == 0 and (known.is_fresh or not has_gaps) else Word.UNDECIDABLE
    if (seen.has_later or known.offset is None) and (known.has_gaps or known.start > 0):
        return Word.UNDECIDABLE  # the record that it is of may be compacted away
    return Word.DIFFERENT if seen.has_value else Word.EXTRA


def _fits(have: Content | None, record: Logged[Content] | None) -> bool:
    content = record.content if record else None
    if have is None or content is None:
        return have is None and content is None
    return have.is_of(content)


def sum_up(counts: Mapping[Word, int]) -> Word:
    """Return the word for a store of the words of its keys: the worst; keys that wait are `behind`."""
    found = Counter(counts)
    for word in (Word.MISSING, Word.EXTRA, Word.DIFFERENT, Word.UNDECIDABLE, Word.AHEAD):
        if found[word]:
            return word
    return Word.BEHIND if found[Word.BEHIND] or found[Word.PENDING] else Word.EQUAL
