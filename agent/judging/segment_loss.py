"""Which segments of a windowed store lack what the store's offset says that it has. Pure: pictures in, losses out.

Offsets are compared with offsets and times with times; what counting adds is in `agent.quantities.shortage`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

from agent.inventory.segments import CLOSED, OPEN, Segment
from agent.layout.names import changelog_store
from agent.quantities.shortage import is_all_on_disk, shortage


class Grade(IntEnum):
    """How sure it is that something was put into a segment, and is not on disk."""

    POSSIBLE = 1  # it took records when it was opened last; whether any came is not known
    LIKELY = 2
    CERTAIN = 3


@dataclass(frozen=True, slots=True)
class Loss:
    """A segment that the store's offset is not true for.

    Args of the dataclass:
        segment: It.
        speaker: The segment that answers for the store.
        offset: Its answer: a restoration begins behind it.
        grade: How sure it is.
    """

    segment: Segment
    speaker: Segment
    offset: int
    grade: Grade


def changelog_of(segments: tuple[Segment, ...], application_id: str, store_name: str) -> str | None:
    """Return the name (topic-partition) under which a store keeps its changelog offset; None = none, or several."""
    names = sorted({name for one in segments for name, _, _ in one.offsets.offsets})
    own = [x for x in names if changelog_store(x.rpartition("-")[0], application_id) == store_name]
    return names[0] if len(names) == 1 else own[0] if len(own) == 1 else None


def speaker_of(segments: tuple[Segment, ...], changelog: str, *, oldest: bool) -> Segment | None:
    """Return the segment that answers for the store: the oldest one that holds an offset, or the newest one."""
    asked = segments if oldest else segments[::-1]
    return next((one for one in asked if one.offset(changelog) is not None), None)


def find_losses(segments: tuple[Segment, ...], changelog: str, *, oldest: bool) -> dict[str, Loss]:
    """List by name the segments that lack records up to the offset from which the store restores.

    Args:
        segments: What is on disk, oldest first, that no process has open.
        changelog: Topic and partition.
        oldest: The oldest segment that holds an offset answers for all; else the newest one.

    Source:
        AbstractSegments.committedOffset and commit, ProcessorStateManager.initializeStoreOffsets (4.3.0, 4.3.1): a
        segment without an entry is passed over; "unknown" is an answer, and restores from the beginning.
    """
    speaker = speaker_of(segments, changelog, oldest=oldest)
    offset = speaker.offset(changelog) if speaker is not None else None
    if speaker is None or offset is None or offset < 0 or is_all_on_disk(segments, speaker, changelog):
        return {}
    losses: dict[str, Loss] = {}
    short: list[Segment] = []
    for one, successor in zip(segments, (*segments[1:], None), strict=True):
        own = one.offset(changelog)
        if own is not None and own >= offset:
            continue
        grade = _unflushed(one, successor, speaker) if one.has_data else _hollow(one, speaker)
        lacking = shortage(segments, one, speaker, changelog) if one.has_data else None
        if lacking is not None and lacking <= 0 and one.starts < speaker.starts:
            grade = grade and Grade.POSSIBLE  # all that it took may have been flushed
        if grade is not None:
            losses[one.name] = Loss(one, speaker, offset, grade)
        elif lacking is not None and lacking > 0 and _was_flushed_late(one, successor):
            short.append(one)
    if not losses and short:
        losses = {one.name: Loss(one, speaker, offset, Grade.POSSIBLE) for one in short[-1:]}
    return losses


def _was_flushed_late(one: Segment, successor: Segment | None) -> bool:
    """Return whether a segment was flushed when its successor was there, in the life that ended.

    The file is written some time after the memory that it is of was closed: what came in between is not in it. Or
    late records came, and may have gone on to come.
    """
    return successor is not None and one.status == OPEN and one.flushed_us >= successor.born_us


def _hollow(one: Segment, speaker: Segment) -> Grade | None:
    """Grade a segment of which no record is on disk; only a put makes one, and where it came from decides.

    The speaker took its offset after it was made. Was it made after this segment, the put is before that offset.
    Else the offset may be of a commit before the put: then the replay brings the put again. However late the offset
    reached the disk says nothing: nothing is committed while the process, its broker or a failing record holds it up.
    """
    # The times of a copied directory's files are those of the copy.
    is_copied = one.opened_us is not None and one.opened_us < one.born_us
    if speaker.offset_us <= one.born_us and not is_copied:
        return None  # all that was ever put into it came behind that offset, in whatever life
    if not one.made_in_this_life:
        # Its records are lost since an earlier end, or they were replayed before the one that answers was made.
        replayed = (
            one.opened_us is not None and one.starts < speaker.starts and one.opened_us < speaker.born_us
        )
        return Grade.LIKELY if replayed else Grade.POSSIBLE
    if one.starts < speaker.starts and one.born_us < speaker.born_us:
        return Grade.CERTAIN
    return Grade.LIKELY if _is_close_cut(one.born_us, speaker) else Grade.POSSIBLE


def _is_close_cut(at_us: int, speaker: Segment) -> bool:
    """Return whether the speaker was closed with its offset in the life in which the other segment was made or flushed.

    A start-up pass closes one segment after the other, too; it opened them after that.
    """
    opened_us = speaker.opened_us
    same_life = speaker.made_in_this_life or (opened_us is not None and opened_us < at_us)
    return same_life and speaker.status == CLOSED and speaker.offset_last is True


def _unflushed(one: Segment, successor: Segment | None, speaker: Segment) -> Grade | None:
    """Grade a segment with data whose last flush is behind the speaker's."""
    if successor is None or one.starts > speaker.starts:
        if speaker.offset_us <= one.flushed_us:
            return None
        was_open = one.status == OPEN
        return Grade.LIKELY if was_open and _is_close_cut(one.flushed_us, speaker) else Grade.POSSIBLE
    if not _took_records(one, successor):
        return None
    return Grade.LIKELY if one.status == OPEN or one.made_in_this_life else Grade.POSSIBLE


def _took_records(one: Segment, successor: Segment) -> bool:
    """Return whether a segment was the newest one in the life that ended, and was not flushed after that."""
    if one.flushed_us >= successor.born_us:
        return False
    written = one.made_in_this_life or one.status == OPEN
    return written or one.opened_us is None or successor.born_us > one.opened_us


def unflushed(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """List segments of a held store that are no longer flushed, though they took records since they were opened."""
    return tuple(one for one, successor in pairwise(segments) if _took_records(one, successor))
