"""The agent's own resident memory."""

from __future__ import annotations

import os
from pathlib import Path

STATM = Path("/proc/self/statm")
_LINE_BYTES = 256
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def resident_bytes(statm: Path = STATM) -> int | None:
    """Return the agent's resident memory in bytes; None where /proc does not say."""
    try:
        with open(
            statm, "rb", buffering=0
        ) as file:  # asked every second: without the layers for text and paths
            pages = int(file.read(_LINE_BYTES).split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * _PAGE_BYTES
