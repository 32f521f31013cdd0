"""What several checks go by: who the agent is, and one reading of the state directory. Writes nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from agent.clock import is_clock_synchronised
from agent.config import Config
from agent.inventory.disk import EntryKind, Unseen
from agent.inventory.nested import nested
from agent.layout import names
from agent.layout.paths import join
from agent.layout.shape import is_application, is_surely_application
from agent.observe.kernel_disk import KernelDisk
from agent.observe.volume import Mount, find_mount

PATIENCE_S = 300.0
"""How long a sidecar waits for its application before the absence is worth a warning; as `auditor-blind` does."""

SAMPLED = 8
"""How many applications, of each as many tasks, and on each level below are read: their siblings are alike."""


class Directory(NamedTuple):
    """One directory that was read."""

    path: str
    uid: int
    gid: int
    mode: int  # permission bits, set-group-id included
    is_readable: bool  # the agent could list it and stat what is in it
    mtime_us: int = 0


@dataclass(slots=True)
class State:
    """The state directory."""

    mount: Mount | Unseen = Unseen.UNREADABLE
    outcome: Unseen | None = None  # why it could not be listed
    root: Directory | None = None  # None = not even that could be seen
    below: list[Directory] = field(default_factory=list)  # a sample of applications, tasks and stores
    applications: list[str] = field(default_factory=list)
    strangers: list[str] = field(
        default_factory=list
    )  # other directories, without those of the volume itself
    links: list[str] = field(default_factory=list)  # symbolic links, which are not followed
    nested: tuple[str, ...] = ()  # strangers that are state directories, where there is no application
    is_application: bool = False  # it looks like one itself: its parent should be watched
    tasks: int = 0
    directories: int = 1  # that want a watch, extrapolated from the sample
    may_write: bool = False

    @property
    def is_to_come(self) -> bool:
        """Whether it is not there but a volume for it is: the application makes its `state.dir` when it starts."""
        is_on_volume = isinstance(self.mount, Mount) and self.mount.mount_point != "/"
        return self.outcome is Unseen.VANISHED and self.root is None and is_on_volume


@dataclass(frozen=True, slots=True)
class Facts:
    """What the checks go by, by default as it is now; what only one of them asks about, it reads itself."""

    config: Config
    state: State
    now_us: int
    waited_s: float | None = None  # how long the agent has run; None = asked by hand, judge at once
    sink_refusal: str = ""  # why the sink could not be made; empty = it was, or was not tried
    spool_refusal: str = ""  # the same of the spool, whose directory may be writable all the same
    uid: int = field(default_factory=os.geteuid)  # numbers, because a container seldom knows names
    gid: int = field(default_factory=os.getegid)
    groups: Sequence[int] = field(default_factory=os.getgroups)
    is_synchronised: bool | None = field(
        default_factory=is_clock_synchronised
    )  # None = the kernel does not say

    @property
    def who(self) -> str:
        """As whom the agent runs, the way `id` writes it."""
        groups = ",".join(str(gid) for gid in sorted({self.gid, *self.groups}))
        return f"uid {self.uid}, gid {self.gid}, groups {groups}"

    @property
    def is_early(self) -> bool:
        """Whether the application may still be on its way: a sidecar starts before it."""
        return self.waited_s is not None and self.waited_s < PATIENCE_S


def survey(root: Path) -> State:
    """Read a state directory once: rights, applications, and how many watches it wants.

    Cost:
        Listings of the applications and, of a few tasks, of everything below; 17 ms with 10,000 tasks.
    """
    read, found = _Survey(root), State(find_mount(root))
    listed, found.root = read.entries(""), read.directory("")
    if isinstance(listed, Unseen):
        found.outcome = listed
        return found
    found.is_application = is_surely_application({x.name for x in listed})
    found.may_write = os.access(root, os.W_OK)
    found.links = sorted(x.name for x in listed if x.kind is EntryKind.SYMLINK)
    sample = []
    for child in (x for x in read.children("") if not names.OF_THE_VOLUME.fullmatch(x)):
        inner = read.entries(child)
        if isinstance(inner, Unseen):
            sample.append(child)
        else:
            (found.applications if is_application({x.name for x in inner}) else found.strangers).append(child)
    sample += _spread(found.applications)
    wanted = 1.0 + sum(read.application(x, found, sample) for x in found.applications)
    found.directories, found.below = round(wanted), [x for x in map(read.directory, sample) if x is not None]
    found.nested = () if found.applications else nested(read.disk, found.strangers)
    return found


class _Survey:
    """One reading of a state directory."""

    def __init__(self, root: Path) -> None:
        self._root, self.disk = root, KernelDisk(root)
        self.entries = cache(self.disk.list)  # once: an application may have ten thousand tasks

    def directory(self, path: str) -> Directory | None:
        """Read one directory; None = it is not there, or hidden by one above."""
        place, entries = self._root / path, self.entries(path)
        try:
            found = place.lstat() if path else place.stat()
        except OSError:
            return None
        # to list it and to look at something in it: both rights are needed, and bits alone do not show it
        seen: object = entries
        if entries and not isinstance(entries, Unseen):
            seen = self.disk.stat(join(path, entries[0].name))
        mode, mtime_us = stat.S_IMODE(found.st_mode), found.st_mtime_ns // 1000
        return Directory(str(place), found.st_uid, found.st_gid, mode, seen is not Unseen.DENIED, mtime_us)

    def children(self, path: str) -> list[str]:
        """List the directories in a directory; empty where it cannot be listed."""
        entries = self.entries(path)
        listed = () if isinstance(entries, Unseen) else entries
        return sorted(x.name for x in listed if x.kind is EntryKind.DIRECTORY)

    def application(self, path: str, found: State, sample: list[str]) -> float:
        """Count the tasks of an application, or of a topology in one, and choose some of them down to the stores.

        Gives how many directories want a watch.
        """
        children = self.children(path)
        topologies = filter(names.TOPOLOGY_DIRECTORY.fullmatch, children)
        wanted = 1.0 + sum(self.application(f"{path}/{x}", found, sample) for x in topologies)
        tasks = [x for x in children if names.TASK_DIRECTORY.fullmatch(x) or x == names.GLOBAL_DIRECTORY]
        found.tasks += len(tasks)
        chosen = _spread(tasks)
        for task in chosen:
            level = [f"{path}/{task}"]
            for _ in range(4):  # task, `rocksdb`, store, segment
                wanted += len(level) * len(tasks) / len(chosen)
                sample += level[:SAMPLED]
                level = [f"{one}/{name}" for one in level for name in self.children(one)]
        return wanted


def _spread(things: list[str]) -> list[str]:
    return things[:: max(1, len(things) // SAMPLED)][:SAMPLED]
