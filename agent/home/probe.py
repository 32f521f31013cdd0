"""Can a file be made there? Asked of the directories that the agent may write to, and of no other."""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from agent.ship.home import is_inside

PROBE_PREFIX = ".statewarden-probe-"
_PROBE_BYTES = 4096
"""A block: an empty file can be made on a volume that is full."""


def try_to_write(directory: Path, state_directory: Path) -> OSError | None:
    """Make a small file and remove it; where the directory is not there yet, in the one that it would be made in.

    Args:
        directory: Where the agent would write.
        state_directory: What is audited; nothing is made in or below it.

    Returns:
        Why it cannot be done; None = it can.
    """
    place = nearest(directory)
    if is_inside(place, state_directory) or is_inside(directory, state_directory):
        return OSError(errno.EPERM, "is inside the state directory")
    try:
        # a name of chance: agents of several pods that ship to one volume may have the same process id
        with tempfile.NamedTemporaryFile(prefix=PROBE_PREFIX, dir=place, buffering=0) as probe:
            probe.write(bytes(_PROBE_BYTES))
            os.fsync(probe.fileno())
    except OSError as error:
        return error
    return None


def nearest(directory: Path) -> Path:
    """Give the directory itself, or the nearest one above it that is there."""
    for place in (directory.absolute(), *directory.absolute().parents):
        with suppress(OSError):
            if place.exists():
                return place
    return Path("/")
