"""RocksDB's number and string encodings, read from a bounded buffer."""

from __future__ import annotations


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
