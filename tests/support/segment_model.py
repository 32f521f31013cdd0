"""A windowed store of 4.3 as a model: what it puts, commits, flushes, loses and replays. Truth for `lost-segment`.

Written from AbstractSegments, RocksDBStore and ProcessorStateManager (4.3.0, 4.3.1), not from the detector.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agent.inventory.observations import StoreOffsets
from agent.inventory.segments import Segment

CHANGELOG = "app-w-changelog-0"
SECOND_US = 1_000_000
UNKNOWN = -4


def segment(starts: int, *, born: float = 0, opened: float | None = 0, **more: Any) -> Segment:
    """A segment as a reading finds it; times in seconds."""
    times = {name: round(value * SECOND_US) for name, value in more.items() if name.endswith("_us")}
    return Segment(
        name=f"w.{starts}",
        path=f"app/0_0/w/w.{starts}",
        starts=starts,
        identity=f"id-{starts}",
        born_us=round(born * SECOND_US),
        opened_us=None if opened is None else round((opened or born) * SECOND_US),
        manifest=1,
        **{**more, **times},
    )


@dataclass(slots=True)
class ModelSegment:
    """One RocksDB: records and offset, on disk and in memory."""

    starts: int
    born_us: int
    opened_us: int
    disk: set[int] = field(default_factory=set)
    memory: set[int] = field(default_factory=set)
    early: set[int] = field(default_factory=set)  # of those in memory: put while it was the newest one
    disk_offset: int | None = None
    memory_offset: int | None = None
    status: int | None = None
    offset_us: int = 0
    flushed_us: int = 0
    sequence: int = 0
    data_sequence: int = 0
    offset_sequence: int = 0
    disk_offset_sequence: int = 0
    disk_sequence: int = 0
    opened_sequence: int = 0
    entries: int = 0  # in its files: a record that was replayed is there again

    def flush(self, at_us: int, status: int) -> None:
        """Everything in memory goes to disk, atomically."""
        if self.memory:
            self.data_sequence = self.sequence
            self.entries += len(self.memory)
        self.disk |= self.memory
        self.memory.clear()
        self.early.clear()
        if self.memory_offset is not None:
            if self.memory_offset != self.disk_offset:
                self.offset_us = at_us
            self.disk_offset, self.memory_offset = self.memory_offset, None
            self.disk_offset_sequence = self.offset_sequence
        self.disk_sequence = self.sequence
        self.status, self.flushed_us = status, at_us


class ModelStore:
    """One store over several processes. `oldest`: which segment answers (4.3.0), else the newest (4.3.1)."""

    def __init__(self, *, oldest: bool) -> None:
        self.oldest = oldest
        self.now_us = SECOND_US
        self.changelog: list[int] = []  # offset -> segment
        self.segments: dict[int, ModelSegment] = {}
        self.position = -1  # last offset applied in this life

    def tick(self) -> int:
        self.now_us += SECOND_US
        return self.now_us

    def put(self, starts: int) -> None:
        """A new record: store, then changelog."""
        self.changelog.append(starts)
        self._apply(len(self.changelog) - 1)

    def _apply(self, offset: int) -> None:
        starts = self.changelog[offset]
        one = self.segments.get(starts)
        if one is None:
            one = self.segments[starts] = ModelSegment(starts, self.now_us, self.now_us)
        one.memory.add(offset)
        if starts == max(self.segments):
            one.early.add(offset)
        one.sequence += 1
        self.position = offset
        self.tick()

    def commit(self) -> None:
        """Write the offset into the memory of every segment."""
        self._commit(self.position if self.position >= 0 else UNKNOWN)

    def _commit(self, offset: int) -> None:
        for one in self.segments.values():
            one.memory_offset = offset
            one.sequence += 2
            one.offset_sequence = one.sequence
        self.tick()

    def flush(self, starts: int) -> None:
        """A memtable is full."""
        one = self.segments.get(starts)
        if one is not None and one.memory:
            one.flush(self.now_us, 1)
        self.tick()

    def close(self, *, cut_after: int | None = None) -> None:
        """Close in order, oldest first; `cut_after` = killed after so many segments."""
        self.commit()
        for done, starts in enumerate(sorted(self.segments)):
            if cut_after is not None and done >= cut_after:
                break
            self.segments[starts].flush(self.now_us, 0)
            self.tick()

    def dies(self) -> None:
        """What is in memory is gone."""
        for one in self.segments.values():
            one.memory.clear()
            one.early.clear()
            one.memory_offset = None
            one.sequence = one.disk_sequence
        self.tick()

    def answer(self) -> int | None:
        """The offset from which the next start restores; None = from the beginning."""
        for starts in sorted(self.segments, reverse=not self.oldest):
            offset = self.segments[starts].disk_offset
            if offset is not None:
                return None if offset == UNKNOWN else offset
        return None

    def starts(self, replayed: int | None = None) -> None:
        """The start-up pass, then the task with its replay, of which `replayed` records come before it ends."""
        answer = self.answer()
        self.position = -1 if answer is None else answer
        for _ in range(2):
            for one in self.segments.values():
                one.opened_us = self.tick()
        self._commit(UNKNOWN if answer is None else answer)
        for starts in sorted(self.segments):
            self.segments[starts].flush(self.tick(), 0)
        for one in self.segments.values():
            one.opened_us, one.opened_sequence = self.tick(), one.sequence
        behind = range(self.position + 1, len(self.changelog))
        for offset in behind if replayed is None else behind[:replayed]:
            self._apply(offset)

    def refused(self) -> None:
        """A start-up pass that exactly-once gives up because of another store: opened and closed, no offset written."""
        for one in self.segments.values():
            one.opened_us = self.tick()
        for starts in sorted(self.segments):
            self.segments[starts].flush(self.tick(), 0)

    def lost(self) -> dict[int, set[int]]:
        """Segment -> records that the next start does not read again and that are not on disk."""
        answer = self.answer()
        lost: dict[int, set[int]] = {}
        for offset, starts in enumerate(self.changelog[: 0 if answer is None else answer + 1]):
            if starts in self.segments and offset not in self.segments[starts].disk:
                lost.setdefault(starts, set()).add(offset)
        return lost

    def picture(self) -> tuple[Segment, ...]:
        """What lies on disk, as the agent sees it."""
        return tuple(_picture(self.segments[starts]) for starts in sorted(self.segments))


def _picture(one: ModelSegment) -> Segment:
    written = () if one.disk_offset is None else ((CHANGELOG, one.disk_offset, one.disk_offset_sequence),)
    flushed_us = one.flushed_us if one.disk or one.disk_offset is not None else 0
    return Segment(
        name=f"w.{one.starts}",
        path=f"app/0_0/w/w.{one.starts}",
        starts=one.starts,
        identity=f"id-{one.starts}",
        born_us=one.born_us,
        opened_us=one.opened_us,
        manifest=1,
        has_data=bool(one.disk),
        offsets=StoreOffsets(status=one.status, offsets=written),
        offset_us=one.offset_us,
        flushed_us=flushed_us,
        deletes=False,
        offset_last=one.disk_offset_sequence > one.data_sequence if written else None,
        puts=one.data_sequence,
        opened_sequence=one.opened_sequence,
        entries=one.entries,
    )
