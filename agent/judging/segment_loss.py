"""Which segments of a windowed store lack what the store's offset says that it has: pictures in, losses out.

Offsets are compared with offsets and times with times; what counting adds is in `agent.quantities.shortage`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import cached_property
from itertools import pairwise

from agent.inventory.model import PastDatabase, Shape, Store, Task
from agent.inventory.segments import CLOSED, OPEN, Segment
from agent.judging.rule import NamedStoreStory
from agent.layout.names import changelog_store
from agent.quantities.shortage import is_all_on_disk, shortage


class Grade(IntEnum):
    """How sure it is that something was put into a segment, and is not on disk."""

    POSSIBLE = 1  # it took records when it was opened last; whether any came is not known
    LIKELY = 2
    CERTAIN = 3


class Excuse(StrEnum):
    """Why a segment lacks nothing up to the store's offset."""

    ON_DISK = "every record up to the offset is an entry of a file, after an end in order"
    FROM_THE_START = "no segment holds an offset, or the unknown one: the changelog is read from its start"
    BORN_BEHIND = "the segment was made after the offset was stored"
    FLUSHED_SINCE = "the segment was flushed after the offset was stored"
    FLUSHED_LATE = "the segment was flushed after its successor was made"
    PAST = "the segment was past when the store was opened"
    HOLDS_IT = "every segment holds the offset, as after an orderly close"


@dataclass(frozen=True, slots=True)
class Loss:
    """A segment that the store's offset is not true for."""

    segment: Segment  # it
    speaker: Segment  # the segment that answers for the store
    offset: int  # its answer: a restoration begins behind it
    grade: Grade  # how sure it is


class Picture(NamedStoreStory):
    """A windowed store by what is on disk of its segments, oldest first."""

    segments: tuple[Segment, ...]

    @cached_property
    def changelog(self) -> str | None:
        """Name of its offset; None = no segment holds one, or several."""
        return changelog_of(self.segments, self.case.application.id, self.store.name)

    def weighed(self, *, oldest: bool) -> dict[str, Loss | Excuse]:
        """What each segment lacks, where the oldest or the newest one answers."""
        return weigh(self.segments, self.changelog or "", oldest=oldest)


def changelog_of(segments: tuple[Segment, ...], application_id: str, store_name: str) -> str | None:
    """Return the name (topic-partition) under which a store keeps its changelog offset; None = none, or several."""
    names = sorted({name for one in segments for name, _, _ in one.offsets.offsets})
    own = [x for x in names if changelog_store(x.rpartition("-")[0], application_id) == store_name]
    return names[0] if len(names) == 1 else own[0] if len(own) == 1 else None


def speaker_of(segments: tuple[Segment, ...], changelog: str, *, oldest: bool) -> Segment | None:
    """Return the segment that answers for the store: the oldest one that holds an offset, or the newest one."""
    asked = segments if oldest else segments[::-1]
    return next((one for one in asked if one.offset(changelog) is not None), None)


def weigh(segments: tuple[Segment, ...], changelog: str, *, oldest: bool) -> dict[str, Loss | Excuse]:
    """Say by name of each segment what it lacks up to the offset from which the store restores, or why nothing.

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
    if speaker is None or offset is None or offset < 0:
        return {one.name: Excuse.FROM_THE_START for one in segments}
    if is_all_on_disk(segments, speaker, changelog):
        return {one.name: Excuse.ON_DISK for one in segments}
    weighed: dict[str, Loss | Excuse] = {}
    short: list[Segment] = []
    for one, successor in zip(segments, (*segments[1:], None), strict=True):
        own = one.offset(changelog)
        if own is not None and own >= offset:
            weighed[one.name] = Excuse.HOLDS_IT
            continue
        found = _unflushed(one, successor, speaker) if one.has_data else _hollow(one, speaker)
        lacking = shortage(segments, one, speaker, changelog) if one.has_data else None
        if isinstance(found, Excuse):
            weighed[one.name] = found
            if lacking is not None and lacking > 0 and _was_flushed_late(one, successor):
                short.append(one)
            continue
        may_be_there = lacking is not None and lacking <= 0 and one.starts < speaker.starts
        weighed[one.name] = Loss(one, speaker, offset, Grade.POSSIBLE if may_be_there else found)
    if short and not any(isinstance(x, Loss) for x in weighed.values()):
        weighed[short[-1].name] = Loss(short[-1], speaker, offset, Grade.POSSIBLE)
    return weighed


def losses(weighed: dict[str, Loss | Excuse]) -> dict[str, Loss]:
    """Leave out what lacks nothing."""
    return {name: x for name, x in weighed.items() if isinstance(x, Loss)}


def _was_flushed_late(one: Segment, successor: Segment | None) -> bool:
    """Return whether a segment was flushed when its successor was there, in the life that ended.

    The file is written some time after the memory that it is of was closed: what came in between is not in it. Or
    late records came, and may have gone on to come.
    """
    return successor is not None and one.status == OPEN and one.flushed_us >= successor.born_us


def _hollow(one: Segment, speaker: Segment) -> Grade | Excuse:
    """Grade a segment of which no record is on disk; only a put makes one, and where it came from decides.

    The speaker took its offset after it was made. Was it made after this segment, the put is before that offset.
    Else the offset may be of a commit before the put: then the replay brings the put again. However late the offset
    reached the disk says nothing: nothing is committed while the process, its broker or a failing record holds it up.
    """
    # The times of a copied directory's files are those of the copy.
    if speaker.offset_us <= one.born_us and not (one.opened_us is not None and one.opened_us < one.born_us):
        return Excuse.BORN_BEHIND  # all that was ever put into it came behind that offset, in whatever life
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


def _unflushed(one: Segment, successor: Segment | None, speaker: Segment) -> Grade | Excuse:
    """Grade a segment with data whose last flush is behind the speaker's."""
    if successor is None or one.starts > speaker.starts:
        if speaker.offset_us <= one.flushed_us:
            return Excuse.FLUSHED_SINCE
        was_open = one.status == OPEN
        return Grade.LIKELY if was_open and _is_close_cut(one.flushed_us, speaker) else Grade.POSSIBLE
    excuse = _took_nothing(one, successor)
    if excuse is not None:
        return excuse
    return Grade.LIKELY if one.status == OPEN or one.made_in_this_life else Grade.POSSIBLE


def _took_nothing(one: Segment, successor: Segment) -> Excuse | None:
    """Say why a segment took no record since its last flush; None = it was the newest one in the life that ended."""
    if one.flushed_us >= successor.born_us:
        return Excuse.FLUSHED_LATE
    written = one.made_in_this_life or one.status == OPEN
    return None if (written or one.opened_us is None or successor.born_us > one.opened_us) else Excuse.PAST


def unflushed(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """List segments of a held store that are no longer flushed, though they took records since they were opened."""
    return tuple(one for one, successor in pairwise(segments) if _took_nothing(one, successor) is None)


def removed_segments(task: Task, store: Store) -> Iterator[PastDatabase]:
    """List segments that were deleted while no process held the store, and others of it were left.

    A recursive deletion did that, of which the rest did not come: it was killed, or another hand took only these.
    """
    if not store.segmented or not store.databases:
        return
    for gone in store.past:
        is_removed = gone.shape is Shape.CLEANER_WALK and gone.task_incarnation == task.incarnation
        is_there = gone.segment in store.databases
        left = any(0 < x.born_us < gone.ended_us for x in store.databases.values())
        if gone.segment is not None and is_removed and left and not is_there:
            yield gone
