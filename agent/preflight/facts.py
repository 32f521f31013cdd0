"""What preflight reads, as values, and how. Writes only a probe in the agent's own directories; bounded in time."""

from __future__ import annotations

import errno
import importlib.util
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from agent.clock import Clock, is_clock_synchronised
from agent.config import Config
from agent.delivery import DIRECTORY, OBJECT_STORE, parse_target
from agent.errors import WatchError, WatchLimitError
from agent.inventory.disk import EntryKind, Unseen
from agent.inventory.nested import nested
from agent.layout import names
from agent.layout.paths import PathRole, join
from agent.layout.shape import is_application, is_surely_application
from agent.observe.kernel_disk import KernelDisk
from agent.observe.volume import Mount, Space, find_mount, measure_space
from agent.preflight.reach import addresses, refusals
from agent.ship.database import DATABASE_NAME
from agent.ship.home import is_inside, nearest, try_to_write
from agent.ship.queue import other_format
from agent.watch.inotify import InotifyQueue
from agent.watch.limits import Limit, instance_limit, watch_limit

PATIENCE_S = 300.0
"""How long a sidecar waits for its application before the absence is worth a warning; as `auditor-blind` does."""

SAMPLED = 8
"""How many applications, of each as many tasks, and on each level below are read: their siblings are alike."""

BASELINE_BYTES = 8 * 1024 * 1024  # room for the baseline, twice: it is replaced in one step

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Identity:
    """As whom the agent runs: numbers, because a container seldom knows names."""

    uid: int
    gid: int
    groups: frozenset[int] = frozenset()

    def __str__(self) -> str:
        """Write it as `id` does."""
        groups = ",".join(str(gid) for gid in sorted({self.gid, *self.groups}))
        return f"uid {self.uid}, gid {self.gid}, groups {groups}"


@dataclass(frozen=True, slots=True)
class Directory:
    """One directory that was read."""

    path: str
    uid: int
    gid: int
    mode: int  # permission bits, set-group-id included
    is_readable: bool  # the agent could list it and stat what is in it
    mtime_us: int = 0

    def __str__(self) -> str:
        """Write owner and mode."""
        return f"owner {self.uid}:{self.gid}, mode {self.mode:04o}"


@dataclass(frozen=True, slots=True)
class StateFacts:
    """The state directory."""

    outcome: Unseen | None = None  # why it could not be listed
    root: Directory | None = None  # None = not even that could be seen
    below: tuple[Directory, ...] = ()  # a sample of applications, tasks and stores
    applications: tuple[str, ...] = ()
    strangers: tuple[str, ...] = ()  # other directories, without those of the volume itself
    links: tuple[str, ...] = ()  # symbolic links, which are not followed
    nested: tuple[str, ...] = ()  # strangers that are state directories, where there is no application
    is_application: bool = False  # it looks like one itself: its parent should be watched
    tasks: int = 0
    directories: int = 1  # that want a watch, extrapolated from the sample
    mount: Mount | Unseen = Unseen.UNREADABLE
    may_write: bool = False

    @property
    def is_to_come(self) -> bool:
        """Whether it is not there but a volume for it is: the application makes its `state.dir` when it starts."""
        is_on_volume = not isinstance(self.mount, Unseen) and self.mount.mount_point != "/"
        return self.outcome is Unseen.VANISHED and self.root is None and is_on_volume


@dataclass(frozen=True, slots=True)
class InotifyFacts:
    """The limits that hold, and what the kernel said to one queue with one watch; empty = nothing."""

    watches: Limit
    instances: Limit
    queue_refusal: str = ""
    watch_refusal: str = ""
    watches_used_up: bool = False


@dataclass(frozen=True, slots=True)
class OwnVolume:
    """A directory that the agent writes to: the spool, or a directory sink."""

    path: str = ""  # as configured; empty = not configured
    is_in_state: bool = False
    refusal: str = ""  # why a file could not be made there
    space: Space | Unseen = Unseen.UNREADABLE
    mount: Mount | Unseen = Unseen.UNREADABLE
    need_bytes: int = 0  # what the agent may still put there; 0 = unknown
    other_format: str = ""  # of the spool there, if not this agent's


@dataclass(frozen=True, slots=True)
class EndpointFacts:
    """Where events are shipped to; no target = they stay in the spool."""

    target: str = ""
    missing_library: str = ""  # extra of the distribution that has to be installed
    settings_refusal: str = ""  # why the sink could not be made
    tried: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()  # what each of them said that could not be reached
    may_go_another_way: bool = False  # by a proxy that only the library knows
    directory: OwnVolume | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that the checks judge."""

    state_dir: str
    identity: Identity
    state: StateFacts
    inotify: InotifyFacts
    now_us: int
    is_synchronised: bool | None = None  # the clock, by the kernel's word; None = it does not say
    spool: OwnVolume = field(default_factory=OwnVolume)
    endpoint: EndpointFacts = field(default_factory=EndpointFacts)
    waited_s: float | None = None  # how long the agent has run; None = asked by hand, judge at once
    release: str = ""  # of Kafka Streams, as the operator named it
    pod: str = ""

    @property
    def is_early(self) -> bool:
        """Whether the application may still be on its way: a sidecar starts before it."""
        return self.waited_s is not None and self.waited_s < PATIENCE_S


def gather(
    config: Config,
    clock: Clock,
    *,
    waited_s: float | None = None,
    sink_refusal: str = "",
    spool_refusal: str = "",
) -> Facts:
    """Gather everything that a check asks about.

    `sink_refusal`: why the sink could not be made; empty = it was, or was not tried. `spool_refusal`: the same of the
    spool, whose directory may be writable all the same.

    Cost:
        A few hundred readings, whatever the size of the state directory, and up to three seconds for the network.
    """
    root = Path(config.agent.state_dir)
    release = config.applications.common.get("kafka_streams_version")
    spool = probe(config.agent.spool, root, int(config.ship.cap_mib * 1024 * 1024) + BASELINE_BYTES)
    return Facts(
        state_dir=str(root), identity=Identity(os.geteuid(), os.getegid(), frozenset(os.getgroups())),
        state=survey(root), inotify=ask_inotify(root), now_us=clock.now_us(),
        is_synchronised=is_clock_synchronised(),
        spool=replace(spool, refusal=spool_refusal or spool.refusal),
        endpoint=_ask_endpoint(config, root, sink_refusal), waited_s=waited_s,
        release=release.value if release is not None else "", pod=config.agent.pod,
    )  # fmt: skip


def survey(root: Path) -> StateFacts:
    """Read a state directory once: rights, applications, and how many watches it wants.

    Cost:
        Listings of the applications and, of a few tasks, of everything below; 17 ms with 10,000 tasks.
    """
    read = _Survey(root)
    own, listed, mount = read.directory(""), read.entries(""), find_mount(root)
    if isinstance(listed, Unseen):
        return StateFacts(outcome=listed, root=own[0] if own else None, mount=mount)
    applications: list[str] = []
    strangers: list[str] = []
    for child in read.children(""):
        if names.OF_THE_VOLUME.fullmatch(child):
            continue
        found = read.entries(child)
        if isinstance(found, Unseen):
            read.sample += read.directory(child)
        else:
            (applications if is_application({x.name for x in found}) else strangers).append(child)
    for application in _spread(applications):
        read.sample += read.directory(application)
    for application in applications:
        read.add_application(application)
    return StateFacts(
        root=own[0] if own else None, below=tuple(read.sample), applications=tuple(applications),
        strangers=tuple(strangers), links=tuple(sorted(x.name for x in listed if x.kind is EntryKind.SYMLINK)),
        nested=() if applications else nested(read.disk, strangers),
        is_application=is_surely_application({x.name for x in listed}), tasks=read.tasks,
        directories=1 + round(read.wanted), mount=mount, may_write=os.access(root, os.W_OK),
    )  # fmt: skip


class _Survey:
    """One reading of a state directory."""

    def __init__(self, root: Path) -> None:
        self._root, self.disk = root, KernelDisk(root)
        self.entries = cache(
            self.disk.list
        )  # once in this reading: an application may have ten thousand tasks
        self.sample: list[Directory] = []
        self.tasks, self.wanted = 0, 0.0

    def directory(self, path: str) -> list[Directory]:
        """Read one directory; empty = it is not there, or hidden by one above."""
        place = self._root / path
        try:
            found = place.lstat() if path else place.stat()
        except OSError:
            return []
        mode, can_be_read = stat.S_IMODE(found.st_mode), self._can_be_read(path)
        mtime_us = found.st_mtime_ns // 1000
        return [Directory(str(place), found.st_uid, found.st_gid, mode, can_be_read, mtime_us)]

    def children(self, path: str) -> list[str]:
        """List the directories in a directory; empty where it cannot be listed."""
        entries = self.entries(path)
        return (
            []
            if isinstance(entries, Unseen)
            else sorted(x.name for x in entries if x.kind is EntryKind.DIRECTORY)
        )

    def add_application(self, path: str) -> None:
        """Count the tasks of an application, or of a topology in one, and read some of them down to the stores."""
        self.wanted += 1
        children = self.children(path)
        for topology in filter(names.TOPOLOGY_DIRECTORY.fullmatch, children):
            self.add_application(f"{path}/{topology}")
        tasks = [x for x in children if names.TASK_DIRECTORY.fullmatch(x) or x == names.GLOBAL_DIRECTORY]
        self.tasks += len(tasks)
        chosen = _spread(tasks)
        directories = sum(self._add_task(f"{path}/{task}") for task in chosen)
        if chosen:
            self.wanted += len(tasks) * directories / len(chosen)

    def _add_task(self, path: str) -> int:
        """Read a task, its `rocksdb`, stores and segments; return how many want a watch."""
        count, level = 0, [path]
        for _ in range(4):  # task, rocksdb, store, segment
            count += len(level)
            for one in level[:SAMPLED]:
                self.sample += self.directory(one)
            level = [f"{one}/{name}" for one in level for name in self.children(one)]
        return count

    def _can_be_read(self, path: str) -> bool:
        """List it and stat something in it: both rights are needed, and bits alone do not show it."""
        entries = self.entries(path)
        if isinstance(entries, Unseen):
            return entries is not Unseen.DENIED
        return not entries or self.disk.stat(join(path, entries[0].name)) is not Unseen.DENIED


def _spread(things: Sequence[_T]) -> list[_T]:
    return list(things[:: max(1, len(things) // SAMPLED)][:SAMPLED])


def ask_inotify(root: Path) -> InotifyFacts:
    """Open a queue, watch the state directory, and give both back."""
    limits = watch_limit(), instance_limit()
    try:
        queue = InotifyQueue()
    except WatchLimitError:
        return InotifyFacts(*limits, queue_refusal="the limit of queues is reached")
    except WatchError as error:
        return InotifyFacts(*limits, queue_refusal=str(error))
    try:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            queue.add(descriptor, PathRole.STATE_DIRECTORY)
        finally:
            os.close(descriptor)
    except OSError as error:
        is_full = error.errno == errno.ENOSPC
        return InotifyFacts(*limits, watch_refusal=error.strerror or str(error), watches_used_up=is_full)
    finally:
        queue.close()
    return InotifyFacts(*limits)


def probe(directory: str, root: Path, need_bytes: int = 0) -> OwnVolume:
    """Read a directory that the agent writes to, and try to write; of a spool, which has a need, read the format."""
    if not directory:
        return OwnVolume()
    path = Path(directory)
    if is_inside(path, root):
        return OwnVolume(path=directory, is_in_state=True)
    error = try_to_write(path, root)
    database = path / DATABASE_NAME
    is_odd = bool(need_bytes) and error is None and database.exists() and not database.is_file()
    odd = f"{DATABASE_NAME} is no file" if is_odd else ""
    return OwnVolume(
        path=directory,
        refusal=odd if error is None else error.strerror or str(error),
        space=measure_space(nearest(path)),
        mount=find_mount(nearest(path)),
        need_bytes=max(0, need_bytes - _used_bytes(path)),
        other_format=other_format(database) if need_bytes and error is None and not odd else "",
    )


def _used_bytes(directory: Path) -> int:
    """Add up what is in a spool already; what cannot be seen counts nothing."""
    total = 0
    for folder, _, files in os.walk(directory):
        for name in files:
            try:
                total += (Path(folder) / name).lstat().st_size
            except OSError:
                continue
    return total


def _ask_endpoint(config: Config, root: Path, sink_refusal: str) -> EndpointFacts:
    text = config.agent.ship_to
    if not text:
        return EndpointFacts()
    target = parse_target(text)
    if target.kind is DIRECTORY:
        return EndpointFacts(text, directory=probe(target.url, root))
    if target.kind.library and importlib.util.find_spec(target.kind.library) is None:
        return EndpointFacts(text, missing_library=target.kind.extra)
    if sink_refusal:
        return EndpointFacts(text, settings_refusal=sink_refusal)
    tried = addresses(target, config.ship)
    by_tls = target.url.partition("://")[0] in target.kind.encrypted.values()  # a library has its own rules
    return EndpointFacts(
        text,
        tried=tuple(f"{host}:{port}" for host, port in tried),
        refusals=tuple(refusals(tried, config.ship.ca_file, by_tls=by_tls)),
        may_go_another_way=target.kind is OBJECT_STORE and not config.ship.endpoint,
    )
