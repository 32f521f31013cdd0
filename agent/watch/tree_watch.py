"""Keeps every directory of interest watched, and turns notifications into hints. No thread of its own.

Two rules keep this free of silent losses. A directory is watched first and listed second, so that whatever is
made in it is either announced or found. And whatever the kernel lost, refused or took away ends in a RESCAN
hint that names the cause.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from agent.clock import Clock
from agent.inventory.hints import WATCHED_EVENTS, Hint, HintKind
from agent.layout.paths import classify
from agent.watch.inotify import InotifyQueue, RawEvent
from agent.watch.limits import describe_limit, read_limits
from agent.watch.source import Cause, WatchCounters
from agent.watch.tree import join, list_names, open_below, open_root

REST_S = 1.0
"""Rest between two full walks: a queue that keeps overflowing must not keep the walk going."""

RETRY_S = 60.0
"""How often directories that could not be watched are tried again."""

LOST_AND_FOUND = "lost+found"
"""Made by mkfs at the top of ext volumes, for root only: no application, no reason to complain."""

_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})  # ELOOP, ENOTDIR: now a symbolic link or a file


class TreeWatch:
    """Watches on the state directory and on the directories of interest below it."""

    def __init__(self, root: Path, queue: InotifyQueue, clock: Clock) -> None:
        """Remember what to watch; the first `tick` puts the watches.

        Args:
            root: The state directory; need not exist yet.
            queue: Where the watches are put.
            clock: Gives the time of every hint.
        """
        self._root = root
        self._queue = queue
        self._clock = clock
        self._paths: dict[int, str] = {}  # watch -> path that it stands for
        self._counters = WatchCounters()
        self._degraded: dict[str, str] = {}
        self._identity: tuple[int, int] | None = None  # device and inode of the root that is watched
        self._lost_before = False
        self._overflowed = False
        self._walked_at_s = 0.0
        self._now_us = 0

    def handle(self, events: Iterable[RawEvent]) -> list[Hint]:
        """Turn notifications into hints, and watch what they announce.

        Returns:
            Hints in the order of the notifications. What is found in a new directory follows its own hint.
        """
        self._now_us = self._clock.now_us()
        hints: list[Hint] = []
        for watch, kind, is_directory, name in events:
            self._counters.events += 1
            if kind is HintKind.RESCAN:
                self._counters.overflows += 1
                self._overflowed = True
                continue
            path = self._paths.get(watch)
            if path is None:
                continue  # a watch that was given up: its directory is gone, or was looked at anew
            if kind is HintKind.SELF_GONE:
                self._lose(watch, path)
                hints.append(Hint(path, kind, self._now_us, is_directory=True))
            else:
                child = join(path, os.fsdecode(name))
                hints.append(Hint(child, kind, self._now_us, is_directory))
                if is_directory and _is_of_interest(child):
                    self._follow(child, kind, hints)
        return hints

    def tick(self) -> list[Hint]:
        """Put right what notifications do not tell: a root that came, went or was replaced; losses; limits.

        Cost: one stat when nothing is wrong. Call it after every batch and at least once a second.
        """
        self._now_us = self._clock.now_us()
        hints: list[Hint] = []
        if self._identity is not None and self._identity != _identify(self._root):
            self._give_up_all()
            hints.append(Hint("", HintKind.SELF_GONE, self._now_us, is_directory=True))
        since_walk_s = self._clock.monotonic_s() - self._walked_at_s
        if self._identity is None:
            cause = Cause.ROOT_REPLACED if self._lost_before else Cause.START
            self._walk_all(cause, hints)
        elif self._overflowed and since_walk_s >= REST_S:
            self._walk_all(Cause.QUEUE_OVERFLOW, hints)
        elif self._counters.unwatched and since_walk_s >= RETRY_S:
            self._walk_all(None, hints)
        return hints

    def counters(self) -> WatchCounters:
        """Tell what was done so far; a copy."""
        return replace(self._counters, watches=len(self._paths))

    def degraded(self) -> dict[str, str]:
        """Tell what is wrong now: cause -> one sentence with what to do."""
        return dict(self._degraded)

    def _follow(self, path: str, kind: HintKind, hints: list[Hint]) -> None:
        """Watch a directory that came; give up one that was moved away (a deleted one says so itself)."""
        if kind is HintKind.MOVED_OUT:
            # Looks at every watch; Streams and RocksDB never rename a directory, so this is rare.
            tree = [watch for watch, at in self._paths.items() if at == path or at.startswith(path + "/")]
            for watch in tree:
                self._give_up(watch)
        elif kind is not HintKind.DELETED:
            with suppress(OSError), open_root(self._root) as root:  # no root: the next tick sees that, too
                self._enter(root, path, path, hints)

    def _walk_all(self, cause: Cause | None, hints: list[Hint]) -> None:
        """Put the watches of the whole tree right.

        Args:
            cause: Of the RESCAN that follows; None = only if directories are watched that were not before.
            hints: Where the RESCAN goes.
        """
        former_paths, former_degraded = self._paths, self._degraded
        self._paths, self._degraded = {}, {}
        self._counters.unwatched = 0
        try:
            with open_root(self._root) as root:
                found = os.fstat(root)
                self._identity = (found.st_dev, found.st_ino)
                self._walk(root, "", None)
        except OSError as error:
            self._degraded[Cause.ROOT_MISSING] = f"cannot open {self._root}: {error.strerror}"
        for watch in former_paths.keys() - self._paths.keys():
            self._queue.remove(watch)
        causes = [each for each in self._degraded if each not in former_degraded]
        if Cause.ROOT_MISSING in self._degraded:
            self._identity = None
        elif cause is not None:
            causes.insert(0, cause)
        elif self._paths.keys() - former_paths.keys():
            causes.extend(former_degraded)
        self._now_us = self._clock.now_us()  # after the walk: from here on nothing is missed
        hints.extend(self._rescan("", each) for each in causes)
        self._counters.walks += self._identity is not None
        self._walked_at_s = self._clock.monotonic_s()
        self._overflowed = False

    def _walk(self, directory: int, path: str, announced: list[Hint] | None) -> None:
        """Watch an open directory, then what lies in it; announce what is found if somebody wants it."""
        try:
            self._paths[self._queue.add(directory, classify(path).role)] = path
            names = list_names(directory)
        except OSError as error:
            self._refuse(path, error, announced)
            return
        for name, is_directory in names:
            child = join(path, name)
            if announced is not None:
                announced.append(Hint(child, HintKind.CREATED, self._now_us, is_directory))
            if is_directory and _is_of_interest(child):
                self._enter(directory, name, child, announced)

    def _enter(self, directory: int, way: str, path: str, announced: list[Hint] | None) -> None:
        try:
            with open_below(directory, way) as below:
                self._walk(below, path, announced)
        except OSError as error:
            self._refuse(path, error, announced)

    def _refuse(self, path: str, error: OSError, announced: list[Hint] | None) -> None:
        """Note a directory that cannot be watched, unless it is simply gone."""
        if error.errno in _GONE:
            return
        self._counters.unwatched += 1
        if error.errno == errno.ENOSPC:
            cause = Cause.WATCH_LIMIT
            limit = describe_limit("max_user_watches", read_limits().max_user_watches)
            text = f"no watches left at {path!r} ({limit}); the rest is only polled: raise the limit"
        else:
            cause = Cause.WATCH_REFUSED
            text = f"cannot watch {path!r}: {error.strerror}; let the agent's user read it"
        self._degraded.setdefault(cause, text)
        if announced is not None:
            announced.append(self._rescan(path, cause))

    def _rescan(self, path: str, cause: str) -> Hint:
        return Hint(path, HintKind.RESCAN, self._now_us, is_directory=True, cause=str(cause))

    def _lose(self, watch: int, path: str) -> None:
        if path:
            self._give_up(watch)
        else:
            self._give_up_all()  # a root that was moved away keeps its tree, and the tree its watches

    def _give_up(self, watch: int) -> None:
        del self._paths[watch]
        self._queue.remove(watch)

    def _give_up_all(self) -> None:
        for watch in self._paths:
            self._queue.remove(watch)
        self._paths = {}
        self._identity = None
        self._lost_before = True


def _is_of_interest(path: str) -> bool:
    return path != LOST_AND_FOUND and classify(path).role in WATCHED_EVENTS


def _identify(root: Path) -> tuple[int, int] | None:
    try:
        found = root.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
