"""A nameless file for what a process of the agent's says: in memory, or where Python cannot, in its own directory."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import IO


def open_output(own: Path | None) -> IO[bytes]:
    """Open one; it is gone once every process has closed it.

    `own`: the agent's own directory, only used by a Python that was built without `memfd_create`.

    Raises:
        OSError: neither memory nor a directory of the agent's own has room; nothing is written elsewhere.
    """
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("output"), "w+b")
    if own is None:
        raise OSError(errno.ENOSYS, "this Python has no files in memory, and the agent no directory")
    return tempfile.TemporaryFile(dir=own)
