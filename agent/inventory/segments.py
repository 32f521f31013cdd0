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
    """One segment."""

    name: str  # its directory
    path: str  # its path
    starts: int  # number in its name: segments are ordered by it, oldest first
    identity: str  # RocksDB's IDENTITY
    born_us: int  # when it was made
    opened_us: int | None  # when it was opened last; None = not known, RocksDB keeps too few of its logs
    manifest: int | None  # number of its manifest
    has_data: bool  # A record of it was flushed
    offsets: StoreOffsets  # its `offsets` family
    offset_us: int = 0  # since when, at the latest, it has held its changelog offset
    flushed_us: int = 0  # its last flush; 0 = there was none
    deletes: bool | None = None  # something was deleted in it; None = not known
    offset_last: bool | None = None  # its offset was written after its data; None = the order is not known
    puts: int | None = None  # highest sequence number of its data; None = not known
    opened_sequence: int | None = None  # highest one when it was opened last; None = not known
    # data entries in its files, each of which was put; None = not counted, or something was deleted
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
    """An opening of a windowed store that was there already."""

    at_us: int  # when, by RocksDB's log
    segments: tuple[Segment, ...]  # what was on disk then, oldest first
    noted_us: int = 0  # when it was found, by the agent's clock
