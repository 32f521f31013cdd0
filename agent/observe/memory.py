"""The agent's own resident memory."""

from __future__ import annotations

import os
from pathlib import Path

STATM = Path("/proc/self/statm")


def resident_bytes(statm: Path = STATM) -> int | None:
    """Return the agent's resident memory in bytes; None where /proc does not say."""
    try:
        pages = int(statm.read_text("ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
