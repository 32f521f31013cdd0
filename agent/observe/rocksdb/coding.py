"""Bounded reads of one database through a `Disk`, RocksDB's numbers and strings in them, and why nothing was read."""

from __future__ import annotations

from dataclasses import dataclass

from agent.inventory.disk import Files, Unseen


class DamagedError(Exception):
    """Bytes do not have the form they should have; stays inside this package (callers get a value)."""


class RefusedError(DamagedError):
    """Damage that RocksDB finds, too: a wrong checksum, magic number or size; the rest may be a form unknown here."""


class UnsupportedError(Exception):
    """A form that RocksDB knows and this reader does not; stays inside this package."""


class Cursor:
    """Reads forward through a buffer; every read is bounds-checked."""

    __slots__ = ("data", "end", "position")

    def __init__(self, data: bytes, position: int = 0, end: int | None = None) -> None:
        """Start at `position`; `end` (default: the buffer's) is never passed."""
        self.data = data
        self.position = position
        self.end = len(data) if end is None else end

    @property
    def is_at_end(self) -> bool:
        """Whether everything was read."""
        return self.position >= self.end

    def varint(self) -> int:
        """Read an unsigned varint of at most 64 bits; DamagedError if it is cut off or longer."""
        data, position, end = self.data, self.position, self.end
        if position < end and data[position] < 0x80:  # nearly all of them
            self.position = position + 1
            return data[position]
        result = shift = 0
        while position < end and shift < 70:
            byte = data[position]
            position += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                self.position = position
                return result
            shift += 7
        raise DamagedError("number runs past the end of the data or is too long")

    def signed_varint(self) -> int:
        """Read a zigzag-encoded signed varint."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def read(self, length: int) -> bytes:
        """Read exactly `length` bytes; DamagedError if the buffer has fewer."""
        start = self.position
        self.skip(length)
        return self.data[start : start + length]

    def skip(self, length: int) -> None:
        """Pass over exactly `length` bytes without reading them; DamagedError if the buffer has fewer."""
        if length > self.end - self.position:
            raise DamagedError(f"{length} bytes announced, {self.end - self.position} are left")
        self.position += length

    def string(self) -> bytes:
        """Read a string with a varint length before it."""
        return self.read(self.varint())

    def skip_string(self) -> None:
        """Pass over a string with a varint length before it; its bytes are not read."""
        self.skip(self.varint())


_READ_COST_BYTES = 512  # what a read costs beside its bytes: many tiny ones must end, too


class UnseenError(Exception):
    """The disk could not be read; carries what it said and stays inside this package."""

    def __init__(self, unseen: Unseen) -> None:
        """Remember what the disk said."""
        super().__init__(unseen.value)
        self.unseen = unseen


def read_exactly(disk: Files, path: str, offset: int, length: int) -> bytes:
    """Read a part of a file that has to be there; RefusedError if it ends before, UnseenError if it cannot be read."""
    data = disk.read_at(path, offset, length)
    if isinstance(data, Unseen):
        raise UnseenError(data)
    if len(data) != length:
        raise RefusedError(f"file ends before {offset + length}")
    return data


@dataclass(frozen=True, slots=True)
class Unread:
    """Why a database, or a part of it, was not read."""

    unseen: Unseen  # the reason
    # `FILE: KIND: sentence`; empty = nothing is wrong: it is not there, or a writer was faster
    problem: str = ""
    goes_on: bool = False  # the next reading reads on where this one ended
    waits: bool = False  # nothing was read yet: others come first


class MeteredDisk:
    """`Files` that gives up reading once it has read a budget of bytes.

    What a hostile file can make the reader do is a multiple of what it reads, so this bounds the time of one reading.
    """

    def __init__(self, disk: Files, budget_bytes: int) -> None:
        """Read through `disk`, at most `budget_bytes`."""
        self._read_at, self._left = disk.read_at, budget_bytes
        self.stat, self.stay_on = disk.stat, disk.stay_on

    def read_at(self, path: str, offset: int, length: int) -> bytes | Unseen:
        """Read; TOO_LARGE once the budget is used up."""
        if self._left <= 0:
            return Unseen.TOO_LARGE
        content = self._read_at(path, offset, length)
        self._left -= _READ_COST_BYTES + (0 if isinstance(content, Unseen) else len(content))
        return content
