"""Opens directories below the state directory without following a symbolic link, and lists them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC  # the root itself may be configured as a symbolic link
_BELOW = _ROOT | os.O_NOFOLLOW


@contextmanager
def open_root(root: Path) -> Iterator[int]:
    """Open the state directory; OSError if it is not there, not a directory, or not readable."""
    descriptor = os.open(root, _ROOT)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def open_below(directory: int, path: str) -> Iterator[int]:
    """Open a directory below an open one, component by component.

    OSError: a component is gone, denied, a symbolic link or not a directory.
    """
    descriptor = os.dup(directory)
    try:
        for component in path.split("/"):
            below = os.open(component, _BELOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def list_names(directory: int) -> list[tuple[str, bool]]:
    """List an open directory: name, and whether it is a directory (a symbolic link to one is not)."""
    with os.scandir(directory) as entries:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
