"""A segment of a windowed store as it was on disk, and the pictures that are kept of a whole store. Values only.

A windowed store of 4.3 and later keeps its changelog offset in every segment, each its own RocksDB.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.inventory.observations import StoreOffsets

OPENINGS_KEPT = 4
CLOSED, OPEN = 0, 1


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment.

    Args of the dataclass:
        name: Its directory.
        path: Its path.
        starts: Number in its name: segments are ordered by it, oldest first.
        identity: RocksDB's IDENTITY.
        born_us: When it was made.
        opened_us: When it was opened last; None = not known, RocksDB keeps too few of its logs.
        manifest: Number of its manifest.
        has_data: A record of it was flushed.
        offsets: Its `offsets` family.
        offset_us: Since when, at the latest, it has held its changelog offset.
        flushed_us: Its last flush; 0 = there was none.
        deletes: Something was deleted in it; None = not known.
        offset_last: Its offset was written after its data; None = the order is not known.
        puts: Highest sequence number of its data; None = not known.
        opened_sequence: Highest one when it was opened last; None = not known.
        entries: Data entries in its files, each of which was put; None = not counted, or something was deleted.
    """

    name: str
    path: str
    starts: int
    identity: str
    born_us: int
    opened_us: int | None
    manifest: int | None
    has_data: bool
    offsets: StoreOffsets
    offset_us: int = 0
    flushed_us: int = 0
    deletes: bool | None = None
    offset_last: bool | None = None
    puts: int | None = None
    opened_sequence: int | None = None
    entries: int | None = None

    @property
    def status(self) -> int | None:
        """OPEN or CLOSED; None = it was never flushed."""
        return self.offsets.status

    @property
    def made_in_this_life(self) -> bool:
        """Whether it was provably not opened again since it was made."""
        return self.opened_us == self.born_us

    def offset(self, topic_partition: str) -> int | None:
        """The offset it holds of a changelog, -4 for "unknown"; None = it holds none."""
        return next((offset for name, offset, _ in self.offsets.offsets if name == topic_partition), None)


@dataclass(frozen=True, slots=True)
class Opening:
    """An opening of a windowed store that was there already.

    Args of the dataclass:
        at_us: When, by RocksDB's log.
        segments: What was on disk then, oldest first.
        noted_us: When it was found, by the agent's clock.
    """

    at_us: int
    segments: tuple[Segment, ...]
    noted_us: int = 0
