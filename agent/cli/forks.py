"""Processes of this program that read ahead, each its share of a list, and hand what they found over in its order.

Forked and joined by plain pipes: no shared memory, no temporary file, no module to import again. Whatever becomes of
one (killed, out of memory, stopped), its share is only not there, and who asks for it reads it.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import pickle
import select
import signal
import struct
from collections.abc import Callable, Mapping, Sequence
from copyreg import dispatch_table
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from typing import Any

MOST = 4
"""More do not help: judging what they read is the work of one."""
AT_ONCE = 16
"""Items that go through the pipe together."""
PATIENCE_S = 60.0
"""A share that takes longer (a process that was stopped) is read again by who asks for it."""

_EACH_MIB = 48
"""Memory of one process. Where a limit leaves no room for more of them, there are fewer."""
_HEADER = struct.Struct("<QQ")  # first item, bytes that follow
_CGROUP = Path("/sys/fs/cgroup")

Reduce = Callable[[Any], Any]


def useful_number(cgroup: Path = _CGROUP) -> int:
    """Return how many processes may read at the same time: by CPUs that this one may use, quota and memory limit."""
    number = float(min(MOST, len(os.sched_getaffinity(0))))
    quota, period = (*_numbers(cgroup / "cpu.max"), 0, 0)[:2]
    if quota and period:
        number = min(number, quota / period)
    limit_bytes = next(iter(_numbers(cgroup / "memory.max")), 0)
    if limit_bytes:
        number = min(number, (limit_bytes >> 20) // _EACH_MIB - 1)
    return int(number)


def _numbers(file: Path) -> list[int]:
    """Read a file of a cgroup (version 2); empty if there is no limit, or none can be seen."""
    try:
        return [int(x) for x in file.read_text("ascii").split()]
    except (OSError, ValueError):
        return []


class Forks:
    """So many processes, each of which reads every so many items of a list."""

    def __init__(
        self, items: Sequence[str], read: Callable[[str], object], number: int, records: Sequence[type] = ()
    ) -> None:
        """Start them; fewer, or none, if the system refuses.

        Args:
            items: What to read, in the order in which it will be asked for.
            read: Reads one; its answer can be pickled.
            number: How many processes.
            records: Dataclasses among the answers that are sent as the plain rows of their fields: pickle asks each
                object of a frozen one for its fields again, which takes longer than to read it.
        """
        self._places = {item: at for at, item in enumerate(items)}
        self._number = number
        self._here: dict[str, object] = {}
        self._here_at = -1
        self._pipes: dict[int, int] = {}  # by share; a share that is not there was not started, or has ended
        self._pids: dict[int, int] = {}
        table = {**dispatch_table, **{kind: _by_fields(kind) for kind in records}}
        for share in range(number):
            with contextlib.suppress(OSError):
                self._start(share, items, read, table)

    def take(self, item: str) -> object | None:
        """Return what was read of an item; None = read it yourself. Each once, in the order of the list."""
        place = self._places.get(item)
        if place is None:
            return None
        first = place - place % AT_ONCE
        if first > self._here_at:
            self._here_at = first
            self._here = self._receive(first // AT_ONCE % self._number, first)
        return self._here.pop(item, None) if first == self._here_at else None

    def close(self) -> None:
        """End all of them, whatever they do."""
        for share in list(self._pids):
            self._end(share)

    # -- the reading side -------------------------------------------------------------------------------

    def _receive(self, share: int, first: int) -> dict[str, object]:
        while share in self._pipes:
            header = self._read(share, _HEADER.size)
            at, size = _HEADER.unpack(header) if header else (0, 0)
            content = self._read(share, size)
            if not content:
                self._end(share)
            elif at == first:
                found: dict[str, object] = pickle.loads(content)  # noqa: S301 - from a process forked off this one
                return found
        return {}

    def _read(self, share: int, size: int) -> bytes:
        """Read so many bytes; nothing if the process ends or stalls before."""
        pipe, parts = self._pipes[share], bytearray()
        waiting = select.poll()
        waiting.register(pipe, select.POLLIN)
        while len(parts) < size:
            if not waiting.poll(PATIENCE_S * 1000):
                return b""
            piece = os.read(pipe, size - len(parts))
            if not piece:
                return b""
            parts += piece
        return bytes(parts)

    def _end(self, share: int) -> None:
        os.close(self._pipes.pop(share))
        pid = self._pids.pop(share)
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    # -- the writing side -------------------------------------------------------------------------------

    def _start(
        self, share: int, items: Sequence[str], read: Callable[[str], object], table: Mapping[type, Reduce]
    ) -> None:
        mine, theirs = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            os.close(mine)
            os.close(theirs)
            raise
        if pid:
            os.close(theirs)
            self._pipes[share], self._pids[share] = mine, pid
            return
        try:  # from here on another process, which never returns
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            gc.disable()
            for pipe in (mine, *self._pipes.values()):
                os.close(pipe)  # so that it ends with the one that reads
            for first in range(share * AT_ONCE, len(items), self._number * AT_ONCE):
                _send(theirs, first, {x: read(x) for x in items[first : first + AT_ONCE]}, table)
        finally:
            os._exit(0)


def _send(pipe: int, first: int, found: Mapping[str, object], table: Mapping[type, Reduce]) -> None:
    content = io.BytesIO()
    pickler = pickle.Pickler(content, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = table
    pickler.dump(found)
    data = memoryview(_HEADER.pack(first, content.tell()) + content.getvalue())
    while data:
        data = data[os.write(pipe, data) :]


def _by_fields(kind: Any) -> Reduce:
    row = attrgetter(*(each.name for each in fields(kind)))
    return lambda value: (kind, row(value))
