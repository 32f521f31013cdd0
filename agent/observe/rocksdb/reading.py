"""Bounded reads of one database through a `Disk`, and why something was not read."""

from __future__ import annotations

from dataclasses import dataclass

from agent.inventory.disk import Files, Unseen
from agent.observe.rocksdb.coding import RefusedError

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
