"""Keep Java's and Spark's start-up messages off standard error: mail from cron is for what is wrong."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

CHATTER = (
    b"WARNING: Using incubator modules:",
    b"Setting default log level to ",
    b"To adjust logging level use sc.setLogLevel",
    b"Using Spark's default log4j profile:",
    b"Deleted 0 files and directories",  # Delta's VACUUM
)
"""Beginnings of lines that Java and Spark print at each start and that no setting of theirs keeps away."""

_STDOUT, _STDERR = 1, 2


@contextmanager
def banner_dropped() -> Iterator[None]:
    """Let processes that are started meanwhile write to standard error through a filter, for as long as they live.

    What they print on standard output goes there, too: that belongs to what was asked for.
    """
    try:
        real, out = os.dup(_STDERR), os.dup(_STDOUT)
    except OSError:  # one of them is closed
        yield
        return
    reading, writing = os.pipe()
    threading.Thread(target=_pass_on, args=(reading, real), daemon=True).start()
    os.dup2(writing, _STDERR)
    os.dup2(writing, _STDOUT)
    os.close(writing)
    try:
        yield
    finally:
        os.dup2(out, _STDOUT)
        os.close(out)
        os.dup2(real, _STDERR)  # what goes on writing to the pipe are the children


def _pass_on(reading: int, real: int) -> None:
    with os.fdopen(reading, "rb") as lines, os.fdopen(real, "wb", buffering=0) as out:
        for line in lines:
            if not line.startswith(CHATTER):
                out.write(line)
