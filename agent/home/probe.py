"""Can a file be made there? Asked of the directories that the agent may write to, and of no other."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from agent.ship.home import lies_inside

PROBE_NAME = ".statewarden-probe"
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
    if lies_inside(place, state_directory) or lies_inside(directory, state_directory):
        return OSError(errno.EPERM, "is inside the state directory")
    path = place / f"{PROBE_NAME}-{os.getpid()}"
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        return error
    try:
        os.write(descriptor, bytes(_PROBE_BYTES))
        os.fsync(descriptor)
    except OSError as error:
        return error
    finally:
        os.close(descriptor)
        with suppress(OSError):
            path.unlink()
    return None


def nearest(directory: Path) -> Path:
    """Give the directory itself, or the nearest one above it that is there."""
    for place in (directory.absolute(), *directory.absolute().parents):
        with suppress(OSError):
            if place.exists():
                return place
    return Path("/")
