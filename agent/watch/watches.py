"""Which directories are watched, within what the kernel gives: watches inside stores give way to all others."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from agent.layout.paths import PathRole, classify
from agent.watch.inotify import InotifyQueue
from agent.watch.limits import Limit, budget, enough_watches, watch_limit


class Cause(StrEnum):
    """Why a source asks for a rescan, and what may be wrong with it now."""

    START = "start"  # the watches are in place: read everything once
    QUEUE_OVERFLOW = "queue-overflow"  # the kernel dropped notifications
    WATCH_LIMIT = "watch-limit"  # the kernel refuses more watches: those directories are only polled
    WATCH_REFUSED = "watch-refused"  # a directory cannot be read (permissions), so it cannot be watched
    ROOT_MISSING = "root-missing"
    ROOT_REPLACED = "root-replaced"
    WATCH_LOST = "watch-lost"  # the thread died and was started again
    CANARY_MISSED = "canary-missed"  # the agent's own file was not announced, so the thread was started again


@dataclass(slots=True)
class WatchCounters:
    """What a source did since its start."""

    events: int = 0  # notifications read
    overflows: int = 0  # times the kernel dropped notifications
    watches: int = 0  # directories watched now
    unwatched: int = 0  # directories that should be watched and are not
    walks: int = 0  # times the whole tree was walked to put the watches right

    def plus(self, later: WatchCounters) -> WatchCounters:
        """Add the work of a later source; what is watched now is its business alone."""
        return WatchCounters(
            self.events + later.events,
            self.overflows + later.overflows,
            later.watches,
            later.unwatched,
            self.walks + later.walks,
        )


OPTIONAL = frozenset({PathRole.STORES, PathRole.SEGMENTED_STORE, PathRole.STORE, PathRole.SEGMENT})
"""What happens in these is found by polling, too, only later; an application, a task, a checkpoint is not."""

_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})  # ELOOP, ENOTDIR: now a symbolic link or a file


class Watches:
    """The watches of one queue: watch -> path that it represents."""

    def __init__(self, queue: InotifyQueue, limit: Callable[[], Limit] = watch_limit) -> None:
        """Put watches on `queue`; `limit` says what the kernel allows, read again at every walk."""
        self._queue = queue
        self._limit = limit
        self._paths: dict[int, str] = {}
        self._former: dict[int, str] = {}
        self._before: frozenset[int] = frozenset()
        self._refused: dict[str, str] = {}
        self._short = 0
        self._refusals = 0
        self._holes = 0
        self._known_limit = limit()

    def __len__(self) -> int:
        """Number of directories that are watched."""
        return len(self._paths)

    @property
    def unwatched(self) -> int:
        """Directories that should be watched and are not."""
        return self._short + self._refusals

    def path_of(self, watch: int) -> str | None:
        """Return which path a watch represents; None = it was given up."""
        return self._paths.get(watch)

    def has(self, path: str) -> bool:
        """Return whether a directory is watched. Reads every watch: for rare questions."""
        return path in list(self._paths.values())

    def begin(self) -> None:
        """Begin a walk over everything: every directory that is still there will be added again."""
        self._former, self._paths = self._paths, {}
        self._before = frozenset(self._former)
        self._refused, self._short, self._refusals = {}, 0, 0
        self._known_limit = self._limit()

    def end(self) -> bool:
        """End the walk: what was not added again is given back. Returns whether anything new is watched."""
        for watch in self._former.keys() - self._paths.keys():
            self._queue.remove(watch)
        added = bool(self._paths.keys() - self._before)
        self._former, self._before = {}, frozenset()
        return added

    def add(self, directory: int, path: str, role: PathRole) -> bool:
        """Watch an open directory; False for want of watches: it has to be polled. OSError for another reason."""
        is_optional = role in OPTIONAL
        most = budget(self._known_limit)
        full = most is not None and len(self._paths) >= most
        if full and (is_optional or not self._make_room()):
            self._short += 1
            return False
        while (watch := self._try(directory, role)) is None:
            if is_optional or not self._make_room():
                self._short += 1
                return False
        self._paths[watch] = path
        return True

    def _try(self, directory: int, role: PathRole) -> int | None:
        try:
            return self._queue.add(directory, role)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            return None

    def _make_room(self) -> bool:
        """Give up the newest watch inside a store; False if there is none left."""
        for watch in reversed(self._paths):
            if classify(self._paths[watch]).role in OPTIONAL:
                self.give_up(watch)
                self._short += 1
                return True
        return self._give_back_former()

    def _give_back_former(self) -> bool:
        """During a walk, watches of directories that were not met again yet hold room, too."""
        while self._former:
            watch, _ = self._former.popitem()
            if watch not in self._paths:
                self._queue.remove(watch)
                return True
        return False

    def refuse(self, path: str, error: OSError) -> bool:
        """Note a directory that cannot be watched; False if it is simply gone."""
        if error.errno in _GONE:
            return False
        self._refusals += 1
        text = f"cannot watch {path!r}: {error.strerror}; let the agent's user read it"
        self._refused.setdefault(Cause.WATCH_REFUSED, text)
        return True

    def refusals(self) -> dict[str, str]:
        """Return what is wrong now: cause -> one sentence with what to do."""
        found = dict(self._refused)
        if self._short:
            need = len(self._paths) + self.unwatched
            limit = self._known_limit
            found[Cause.WATCH_LIMIT] = (
                f"{need} directories are to be watched and {self._short} of them are only polled ({limit});"
                f" set {limit.name}={enough_watches(need)} on the node"
            )
        return found

    def give_up(self, watch: int) -> None:
        """Give back one watch; its directory is gone."""
        del self._paths[watch]
        self._queue.remove(watch)
        self._holes += 1
        if self._holes > len(self._paths) // 4:
            # A dict keeps the places of keys that are gone until it is full, and doubles then (seen in a soak).
            # `dict()` would copy the places, too.
            self._paths, self._holes = {key: path for key, path in self._paths.items()}, 0  # noqa: C416

    def give_up_below(self, path: str) -> None:
        """Give back the watches of a tree that was moved away. Reads every watch: this is rare."""
        for watch, at in list(self._paths.items()):
            if at == path or at.startswith(path + "/"):
                self.give_up(watch)

    def give_up_all(self) -> None:
        """Give back everything."""
        for watch in list(self._paths):
            self.give_up(watch)
