"""A file that keeps some of the disk, to be let go when the disk is full.

Deleting rows means writing to the log first, which a full disk does not allow.
"""

from __future__ import annotations

import errno
import logging
import os
from contextlib import suppress
from pathlib import Path

_LOG = logging.getLogger(__name__)
NAME = "reserve"
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


class Reserve:
    """Room on the spool's volume that nobody else can take."""

    def __init__(self, directory: Path, size_bytes: int) -> None:
        """Take the room if the disk has it.

        Args:
            directory: The spool.
            size_bytes: How much.
        """
        self._path, self._size_bytes = directory / NAME, size_bytes
        self._held = self._lacks_room = False
        self.hold()

    @property
    def lacks_room(self) -> bool:
        """Whether the disk has no room for it; on a file system that cannot set room aside it lacks nothing."""
        return self._lacks_room

    def hold(self) -> bool:
        """Take the room, or leave it for a better time; tell whether it is held."""
        if self._held:
            return True
        try:
            descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o640)
            try:
                os.posix_fallocate(descriptor, 0, self._size_bytes)
                os.ftruncate(descriptor, self._size_bytes)  # an earlier start may have had a larger share
            finally:
                os.close(descriptor)
            self._held, self._lacks_room = True, False
        except OSError as error:
            self._lacks_room = error.errno in _NO_ROOM
            _LOG.debug("spool: no room for a reserve", extra={"reason": str(error)})
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
        return self._held

    def release(self) -> bool:
        """Let the room go, because the disk is full; tell whether there was any."""
        self._lacks_room = True
        if not self._held:
            return False
        self._held = False
        try:
            self._path.unlink(missing_ok=True)
        except OSError:
            return False
        return True
