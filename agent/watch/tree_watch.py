"""Keeps every directory of interest watched, and turns notifications into hints. No thread.

Two rules keep this free of silent losses. A directory is watched first and listed second, so that whatever is
made in it is either announced or found. And whatever the kernel lost, refused or took away ends in a RESCAN
hint that names the cause, and since when something may have gone unseen.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from agent.clock import Clock
from agent.inventory.hints import WATCHED_EVENTS, Hint, HintKind
from agent.layout import names
from agent.layout.paths import classify, join
from agent.watch.inotify import InotifyQueue, RawEvent
from agent.watch.watches import OPTIONAL, Cause, WatchCounters, Watches

REST_S = 1.0
"""Rest between two full walks: a queue that keeps overflowing must not keep the walk going."""

RETRY_S = 60.0
"""How often directories that could not be watched are tried again."""

_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC  # the root itself may be configured as a symbolic link
_BELOW = _ROOT | os.O_NOFOLLOW


class TreeWatch:
    """Watches on the state directory and on the directories of interest below it."""

    def __init__(
        self,
        root: Path,
        queue: InotifyQueue,
        clock: Clock,
        *,
        canary: Path | None = None,
        cause: Cause = Cause.START,
        since_us: int = 0,
    ) -> None:
        """Remember what to watch cause of the first RESCAN, and when the loss began that it repairs.

        The first `tick` puts the watches. `canary`: the agent's own directory, watched with the same queue.
        """
        self.root = root
        self._clock = clock
        self.queue = queue
        self._watches = Watches(queue)
        self._canary, self._canary_watch = canary, -1
        self._first = cause
        self._since_us = since_us
        self._counters = WatchCounters()
        self._degraded: dict[str, str] = {}
        self._identity: tuple[int, int] | None = None  # device and inode of the root that is watched
        self._overflowed = False
        self._sound_us = self._ticked_us = 0  # until then nothing was lost; time of the last tick
        self._walked_at_s = 0.0
        self._now_us = 0

    def handle(self, events: Sequence[RawEvent]) -> list[Hint]:
        """Turn notifications into hints, in their order, and watch what they announce.

        What is found in a new directory follows its own hint.
        """
        self._now_us = self._clock.now_us()
        hints: list[Hint] = []
        for watch, kind, is_directory, name in events:
            if kind is HintKind.RESCAN:
                self._counters.overflows += 1
                self._overflowed = True
                self._since_us = self._since_us or self._sound_us
                continue
            if watch == self._canary_watch:
                self._take_canary(kind, name, hints)
                continue
            path = self._watches.path_of(watch)
            if path is None:
                continue  # a watch that was given up: its directory is gone, or was read again
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
        """Put right what notifications do not report: a root that came, went or was replaced; losses; limits.

        Cost: one stat when nothing is wrong. Call it after every batch and at least once a second.
        """
        self._now_us = self._clock.now_us()
        hints: list[Hint] = []
        if self._canary is not None and self._canary_watch < 0:
            self._watch_canary(self._canary)
        if self._identity is not None and self._identity != _identify(self.root):
            self._give_up_all()
            hints.append(Hint("", HintKind.SELF_GONE, self._now_us, is_directory=True))
        since_walk_s = self._clock.monotonic_s() - self._walked_at_s
        if self._identity is None:
            self._walk_all(self._first, hints)
        elif self._overflowed and since_walk_s >= REST_S:
            self._walk_all(Cause.QUEUE_OVERFLOW, hints)
        elif self._counters.unwatched and since_walk_s >= RETRY_S:
            self._walk_all(None, hints)
        if self._identity is not None and not self._overflowed and self.queue.is_drained:
            # what came before the read that found the queue empty was heard; that read followed the last tick
            self._sound_us = self._ticked_us
        self._ticked_us = self._now_us
        return hints

    def counters(self) -> WatchCounters:
        """Return what was done so far; a copy."""
        return replace(self._counters, events=self.queue.notifications, watches=len(self._watches))

    def degraded(self) -> dict[str, str]:
        """Return what is wrong now: cause -> one sentence with what to do."""
        return self._degraded | self._watches.refusals()

    @property
    def is_partial(self) -> bool:
        """Whether directories that should be watched are not."""
        return self._counters.unwatched > 0

    def awaits_root(self) -> bool:
        """Return whether the root cannot be opened, so that its watches wait for it."""
        return self._identity is None

    def is_watched(self, path: str) -> bool:
        """Return whether a directory has a watch; may be asked by another thread."""
        return self._watches.has(path)

    def is_canary_watched(self) -> bool:
        """Return whether moves in the agent's own directory are announced; may be asked by another thread."""
        return self._canary_watch >= 0

    def _take_canary(self, kind: HintKind, name: bytes, hints: list[Hint]) -> None:
        if kind is HintKind.SELF_GONE:
            self._canary_watch = -1
        else:
            hints.append(Hint(os.fsdecode(name), HintKind.CANARY, self._now_us))

    def _watch_canary(self, directory: Path) -> None:
        """No canary directory or no watch left for it: the canary stays away, and its sender knows why."""
        with suppress(OSError), open_root(directory) as opened:
            self._canary_watch = self.queue.add_canary(opened)

    def _follow(self, path: str, kind: HintKind, hints: list[Hint]) -> None:
        """Watch a directory that came; give up one that was moved away (a deleted one says so itself)."""
        if kind is HintKind.MOVED_OUT:
            self._watches.give_up_below(path)
        elif kind is not HintKind.DELETED:
            with suppress(OSError), open_root(self.root) as root:  # no root: the next tick sees that, too
                self._enter(root, path, path, hints, None)

    def _walk_all(self, cause: Cause | None, hints: list[Hint]) -> None:
        """Put the watches of the whole tree right; without a cause a RESCAN follows only if more is watched."""
        former_degraded = self.degraded()
        self._watches.begin()
        self._degraded = {}
        try:
            with open_root(self.root) as root:
                found = os.fstat(root)
                self._identity = (found.st_dev, found.st_ino)
                later: list[str] = []
                self._walk(root, "", None, later)
                # what is inside stores gets what watches are left when every task has its own
                for path in later:
                    self._enter(root, path, path, None, None)
        except OSError as error:
            self._identity = None
            # another cause, because it has another remedy, and because what may not be read is there
            cannot = Cause.WATCH_REFUSED if isinstance(error, PermissionError) else Cause.ROOT_MISSING
            self._degraded[cannot] = f"cannot open {self.root}: {error.strerror}"
        added = self._watches.end()
        self._counters.unwatched = self._watches.unwatched
        degraded = self.degraded()
        causes = [each for each in degraded if each not in former_degraded]
        if self._identity is not None and cause is not None:
            causes.insert(0, cause)
        elif self._identity is not None and added:
            causes.extend(former_degraded)
        self._now_us = self._clock.now_us()  # after the walk: from here on nothing is missed
        hints.extend(self._rescan("", each) for each in causes)
        if self._identity is not None:
            self._counters.walks += 1
            self._since_us = 0
        self._walked_at_s = self._clock.monotonic_s()
        self._overflowed = False

    def _walk(self, directory: int, path: str, announced: list[Hint] | None, later: list[str] | None) -> None:
        """Watch an open directory, then what is in it; announce what is found if asked to."""
        try:
            self._watch(directory, path, announced)
            names = list_names(directory)
        except OSError as error:
            self._refuse(path, error, announced)
            return
        for name, is_directory in names:
            child = join(path, name)
            if announced is not None:
                announced.append(Hint(child, HintKind.CREATED, self._now_us, is_directory))
            if is_directory and _is_of_interest(child):
                if later is not None and classify(child).role in OPTIONAL:
                    later.append(child)
                else:
                    self._enter(directory, name, child, announced, later)

    def _watch(self, directory: int, path: str, announced: list[Hint] | None) -> None:
        if not self._watches.add(directory, path, classify(path).role):
            self._counters.unwatched = self._watches.unwatched
            if announced is not None:
                announced.append(self._rescan(path, Cause.WATCH_LIMIT))

    def _enter(
        self, directory: int, way: str, path: str, announced: list[Hint] | None, later: list[str] | None
    ) -> None:
        try:
            with open_below(directory, way) as below:
                self._walk(below, path, announced, later)
        except OSError as error:
            self._refuse(path, error, announced)

    def _refuse(self, path: str, error: OSError, announced: list[Hint] | None) -> None:
        """Note a directory that cannot be watched, unless it is simply gone."""
        if self._watches.refuse(path, error):
            self._counters.unwatched = self._watches.unwatched
            if announced is not None:
                announced.append(self._rescan(path, Cause.WATCH_REFUSED))

    def _rescan(self, path: str, cause: str) -> Hint:
        since_us = self._since_us or self._now_us
        return Hint(path, HintKind.RESCAN, self._now_us, True, str(cause), since_us)

    def _lose(self, watch: int, path: str) -> None:
        if path:
            self._watches.give_up(watch)
        else:
            self._give_up_all()  # a root that was moved away keeps its tree, and the tree its watches

    def _give_up_all(self) -> None:
        self._watches.give_up_all()
        self._identity = None
        self._first = Cause.ROOT_REPLACED
        self._since_us = self._since_us or self._sound_us


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


def _is_of_interest(path: str) -> bool:
    return not names.OF_THE_VOLUME.fullmatch(path) and classify(path).role in WATCHED_EVENTS


def _identify(root: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(root)  # noqa: PTH116 - after every batch of notifications, and half of that is `pathlib`
    except OSError:
        return None
    return found.st_dev, found.st_ino
