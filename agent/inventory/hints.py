"""Hints: what a watch announces. A hint is never believed; it only says what to read.

The kinds follow inotify; `WATCHED_EVENTS` is the table of which kinds are asked for in a directory of which
role. The kernel watch derives its masks from it and the replay its synthetic notifications, so that both see
the same.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from agent.layout.paths import PathRole


class HintKind(StrEnum):
    """What a notification said about a name."""

    CREATED = "created"
    DELETED = "deleted"
    MOVED_IN = "moved-in"
    MOVED_OUT = "moved-out"
    WRITTEN = "written"  # IN_CLOSE_WRITE: a descriptor opened for writing was closed
    SELF_GONE = "self-gone"  # the watched directory itself was deleted, moved away or unmounted
    RESCAN = "rescan"  # read the directory and all below it; `cause` says why
    CANARY = (
        "canary"  # the agent's own file was moved; `path` is its new name, nothing below the state directory
    )


PERIODIC = "periodic"
"""Cause of a rescan that nothing asked for but the time."""

LOSSES = frozenset({"queue-overflow", "mailbox-full", "root-replaced", "watch-lost", "canary-missed"})
"""Causes of a rescan that mean lost notifications; `agent.lookout.watch_loop` starts and ends lasting causes."""


class Hint(NamedTuple):
    """What to read, and why.

    A tuple, because one is made of every notification and a frozen dataclass takes twice as long to make.
    """

    path: str  # relative to the state directory
    kind: HintKind  # what the notification said
    at_us: int  # when it was read, microseconds since the epoch
    is_directory: bool = False  # whether the kernel said that the name is a directory
    cause: str = ""  # for RESCAN: cause slug (`queue-overflow`, `start`, `periodic`, ...); else empty
    since_us: int = 0  # for RESCAN after a loss: from when on something may have gone unseen; 0 = `at_us`


_NAMES = frozenset({HintKind.CREATED, HintKind.DELETED, HintKind.MOVED_IN, HintKind.MOVED_OUT})

WATCHED_EVENTS: dict[PathRole, frozenset[HintKind]] = {
    PathRole.STATE_DIRECTORY: _NAMES | {HintKind.SELF_GONE},
    PathRole.APPLICATION: _NAMES | {HintKind.WRITTEN, HintKind.SELF_GONE},
    PathRole.TOPOLOGY: _NAMES | {HintKind.SELF_GONE},
    PathRole.TASK: _NAMES | {HintKind.WRITTEN, HintKind.SELF_GONE},
    PathRole.STORES: _NAMES | {HintKind.SELF_GONE},
    PathRole.SEGMENTED_STORE: _NAMES | {HintKind.SELF_GONE},
    PathRole.STORE: _NAMES | {HintKind.WRITTEN, HintKind.SELF_GONE},
    PathRole.SEGMENT: _NAMES | {HintKind.WRITTEN, HintKind.SELF_GONE},
}
"""Never IN_OPEN, IN_ACCESS or IN_CLOSE_NOWRITE: the agent's own reads would raise them. Never IN_MODIFY: it
fires for every block of every SST; a flush is announced by IN_CLOSE_WRITE of the SST."""
