"""The inotify queue. Sole importer of watchdog, of which it takes the libc bindings and the constants.

Not `InotifyFD`: its read has no timeout (so the root could not be checked), it takes a denied watch for a good
one, and it makes an object of every event. Reading and parsing are done here instead.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from functools import lru_cache
from typing import NamedTuple

from watchdog.observers.inotify_c import (
    InotifyConstants,
    WatchDescriptor,
    inotify_add_watch,
    inotify_init,
    inotify_rm_watch,
)

from agent.errors import WatchError, WatchLimitError
from agent.inventory.hints import WATCHED_EVENTS, HintKind
from agent.layout import names
from agent.layout.paths import PathRole
from agent.watch.limits import instance_limit

_BITS: dict[HintKind, int] = {
    HintKind.CREATED: InotifyConstants.IN_CREATE,
    HintKind.DELETED: InotifyConstants.IN_DELETE,
    HintKind.MOVED_IN: InotifyConstants.IN_MOVED_TO,
    HintKind.MOVED_OUT: InotifyConstants.IN_MOVED_FROM,
    HintKind.WRITTEN: InotifyConstants.IN_CLOSE_WRITE,
    HintKind.SELF_GONE: InotifyConstants.IN_DELETE_SELF,
}
# EXCL_UNLINK: what still happens to a file without a name does not matter. No IN_DONT_FOLLOW: the watch
# is put on an open descriptor by way of its link in /proc, and it was opened without following links.
_ALWAYS = InotifyConstants.IN_ONLYDIR | InotifyConstants.IN_EXCL_UNLINK

MASKS: dict[PathRole, int] = {
    role: sum(_BITS[kind] for kind in kinds) | _ALWAYS for role, kinds in WATCHED_EVENTS.items()
}
"""What is asked for in a directory of each role that is watched."""

# Below the root the parent reports a move. The directory's own word comes after that and could end a watch
# that represents the new path already.
MASKS[PathRole.STATE_DIRECTORY] |= InotifyConstants.IN_MOVE_SELF

_MEANINGS: dict[int, HintKind] = {
    **{bits: kind for kind, bits in _BITS.items()},
    InotifyConstants.IN_MOVE_SELF: HintKind.SELF_GONE,
    InotifyConstants.IN_UNMOUNT: HintKind.SELF_GONE,
    InotifyConstants.IN_IGNORED: HintKind.SELF_GONE,  # the last word on every watch, however it ended
    InotifyConstants.IN_Q_OVERFLOW: HintKind.RESCAN,
}
_IS_DIRECTORY = int(InotifyConstants.IN_ISDIR)
_MASK_MEANINGS: dict[int, tuple[HintKind, bool]] = {
    bits | directory: (kind, bool(directory))
    for bits, kind in _MEANINGS.items()
    for directory in (0, _IS_DIRECTORY)
}
_HEADER = struct.Struct(
    "=iIII"
)  # struct inotify_event: wd, mask, cookie, length of the name with its padding
_READ_BYTES = 65_536
_CREATED, _WRITTEN = int(InotifyConstants.IN_CREATE), int(InotifyConstants.IN_CLOSE_WRITE)
_MOVED_OUT, _MOVED_IN = int(InotifyConstants.IN_MOVED_FROM), int(InotifyConstants.IN_MOVED_TO)
_PASSING = frozenset({_CREATED, _WRITTEN, _MOVED_OUT})
_PASSING_PREFIX, _PASSING_SUFFIX = names.CHECKPOINT_FILE.encode(), names.TEMP_SUFFIX.encode()
_LONGEST_EVENT_BYTES = _HEADER.size + 256  # NAME_MAX and its NUL


class RawEvent(NamedTuple):
    """One notification."""

    watch: int  # watch descriptor; -1 for an overflow
    kind: HintKind  # what happened; RESCAN = the queue overflowed
    is_directory: bool  # whether the kernel says that the name is a directory
    name: bytes  # name in the watched directory; empty if it is about the directory itself


def parse_events(buffer: bytes) -> tuple[list[RawEvent], int]:
    """Parse what a read of the queue gave: the events, and how many there were with those that say nothing.

    Left out is what comes before every new checkpoint: that a checkpoint's temporary file is made and written, and that
    its name goes where the next event says what became of it. These are three quarters of what a busy application
    announces, and none of them has anything to read: the rename onto the final name has, and a temporary file that is
    deleted, or moved where its new name is not announced, is passed on.

    Source:
        inotify(7), struct inotify_event; `rename` queues both of its events one after the other.
    """
    events: list[RawEvent] = []
    passed = offset = 0
    last, unpack = len(buffer) - _HEADER.size, _HEADER.unpack_from
    while offset <= last:
        watch, mask, cookie, length = unpack(buffer, offset)
        start = offset + _HEADER.size
        offset = start + length
        name = buffer[start:offset]
        if (
            mask in _PASSING
            and _is_passing(name)
            and (
                mask != _MOVED_OUT
                or (offset <= last and unpack(buffer, offset)[:3] == (watch, _MOVED_IN, cookie))
            )
        ):
            passed += 1
            continue
        meaning = _MASK_MEANINGS.get(mask)
        if meaning is not None:
            events.append(RawEvent(watch, meaning[0], meaning[1], name.rstrip(b"\0")))
    return events, len(events) + passed


@lru_cache(maxsize=256)  # an application has one name, from 4.3 on one more per custom store
def _is_passing(padded: bytes) -> bool:
    name = padded.rstrip(b"\0")
    return name.startswith(_PASSING_PREFIX) and name.endswith(_PASSING_SUFFIX)


class InotifyQueue:
    """One inotify instance: directories in, notifications out."""

    def __init__(self) -> None:
        """Open the queue; WatchLimitError if the user has too many already, else WatchError."""
        descriptor = inotify_init()
        if descriptor < 0:
            raise _init_error(ctypes.get_errno())
        os.set_inheritable(descriptor, False)  # the binding has no IN_CLOEXEC
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self.is_drained = True
        self.notifications = 0
        """Read so far, with those that say nothing and were left out."""

    def fileno(self) -> int:
        """Give the descriptor to poll for reading."""
        return self._descriptor

    def add(self, directory: int, role: PathRole) -> int:
        """Watch an open directory, which may be closed afterwards; the same watch as before for one that has it.

        Raises `OSError`: ENOSPC = watch limit, EACCES = not readable, or anything else.
        """
        return self._add(directory, MASKS[role])

    def add_canary(self, directory: int) -> int:
        """Watch the agent's own open directory for files that are moved in it. Raises as `add`."""
        return self._add(directory, InotifyConstants.IN_MOVED_TO | _ALWAYS)

    def _add(self, directory: int, mask: int) -> int:
        # By descriptor and not by path: no process can swap a component of the path for a symbolic link.
        link = b"/proc/self/fd/%d" % directory
        watch = inotify_add_watch(self._descriptor, link, mask)
        if watch < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return watch

    def remove(self, watch: int) -> None:
        """Give up a watch; one that is gone already is no error."""
        inotify_rm_watch(self._descriptor, WatchDescriptor(watch))

    def read(self) -> list[RawEvent]:
        """Take what waits, up to a buffer full; empty if nothing does, or nothing that says anything."""
        try:
            buffer = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            buffer = b""
        # the kernel stops at the first event that does not fit: more room than one takes means that none was left
        self.is_drained = len(buffer) <= _READ_BYTES - _LONGEST_EVENT_BYTES
        events, count = parse_events(buffer)
        self.notifications += count
        return events

    def close(self) -> None:
        """Give the queue and all its watches back."""
        os.close(self._descriptor)


def _init_error(code: int) -> WatchError:
    if code in {errno.EMFILE, errno.ENFILE}:
        return WatchLimitError(
            f"cannot open an inotify queue: {os.strerror(code)} ({instance_limit()}); raise the limit"
        )
    return WatchError(f"cannot open an inotify queue: {os.strerror(code)}")
