"""What preflight reads and what it says, as values. Pure: nothing is opened here."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from agent.inventory.disk import Unseen
from agent.observe.volume import Mount, Space
from agent.watch.limits import Limit

PATIENCE_S = 300.0
"""How long a sidecar waits for its application before the absence is worth a warning; as `auditor-blind` does."""


class Level(StrEnum):
    """What came out of a check."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"

    @property
    def rank(self) -> int:
        """0, 1, 2: as the metric has it."""
        return tuple(Level).index(self)


@dataclass(frozen=True, slots=True)
class Result:
    """What one check says.

    Args of the dataclass:
        check: Id of the check.
        level: How bad it is.
        what: What was found, one sentence.
        where: Path, address or kernel setting that it is about; empty = the agent itself.
        change: Which line of which manifest to change; empty where nothing has to be.
    """

    check: str
    level: Level
    what: str
    where: str = ""
    change: str = ""


@dataclass(frozen=True, slots=True)
class Identity:
    """As whom the agent runs: numbers, because a container seldom knows names."""

    uid: int
    gid: int
    groups: frozenset[int] = frozenset()

    def is_member(self, gid: int) -> bool:
        """Return whether a group's rights are the agent's."""
        return gid == self.gid or gid in self.groups

    def __str__(self) -> str:
        """Write it as `id` does."""
        groups = ",".join(str(gid) for gid in sorted({self.gid, *self.groups}))
        return f"uid {self.uid}, gid {self.gid}, groups {groups}"


@dataclass(frozen=True, slots=True)
class Directory:
    """One directory that was read.

    Args of the dataclass:
        path: As a person would write it.
        uid: Owner.
        gid: Group.
        mode: Permission bits, set-group-id included.
        is_readable: Whether the agent could list it and stat what is in it.
        mtime_us: Modification time.
    """

    path: str
    uid: int
    gid: int
    mode: int
    is_readable: bool
    mtime_us: int = 0

    def __str__(self) -> str:
        """Write owner and mode."""
        return f"owner {self.uid}:{self.gid}, mode {self.mode:04o}"


@dataclass(frozen=True, slots=True)
class StateFacts:
    """The state directory.

    Args of the dataclass:
        outcome: Why it could not be listed; None = it was.
        root: The directory itself; None = not even that could be seen.
        below: A sample of applications, tasks and stores.
        applications: Application directories.
        strangers: Other directories in it, without those of the volume itself.
        links: Symbolic links in it, which are not followed.
        nested: Other directories that are state directories themselves, where there is no application.
        is_application: Whether it looks like an application directory, whose parent should be watched.
        tasks: Task directories.
        directories: Directories that want a watch, extrapolated from the sample.
        mount: What it is on.
        may_write: Whether the agent could write there.
    """

    outcome: Unseen | None = None
    root: Directory | None = None
    below: tuple[Directory, ...] = ()
    applications: tuple[str, ...] = ()
    strangers: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()
    is_application: bool = False
    tasks: int = 0
    directories: int = 1
    mount: Mount | Unseen = Unseen.UNREADABLE
    may_write: bool = False

    @property
    def is_on_volume(self) -> bool:
        """Whether it is, or would lie, on something that was mounted for it."""
        return not isinstance(self.mount, Unseen) and self.mount.mount_point != "/"

    @property
    def is_to_come(self) -> bool:
        """Whether it is not there but the volume is: the application makes its `state.dir` when it starts."""
        return self.outcome is Unseen.VANISHED and self.root is None and self.is_on_volume


@dataclass(frozen=True, slots=True)
class InotifyFacts:
    """The kernel's limits, and what it said to one queue with one watch.

    Args of the dataclass:
        watches: Limit of watches that holds.
        instances: Limit of queues that holds.
        queue_refusal: Why no queue could be opened; empty = it could.
        watch_refusal: Why the state directory could not be watched; empty = it could, or was not tried.
        watches_used_up: Whether the kernel had no watch left.
    """

    watches: Limit
    instances: Limit
    queue_refusal: str = ""
    watch_refusal: str = ""
    watches_used_up: bool = False


@dataclass(frozen=True, slots=True)
class ClockFacts:
    """The wall clock: time, and whether the kernel says that it is synchronised; None = it does not say."""

    now_us: int
    is_synchronised: bool | None = None


@dataclass(frozen=True, slots=True)
class OwnVolume:
    """A directory that the agent writes to: the spool, its home, or a directory sink.

    Args of the dataclass:
        path: As configured; empty = not configured.
        is_in_state: Whether it is in the state directory.
        refusal: Why a file could not be made there (errno name and text); empty = it could.
        is_read_only: Whether the volume refuses because it is mounted read-only.
        space: How full the volume is.
        mount: What it is on.
        shares_state_volume: Whether it is on the application's state volume.
        need_bytes: What the agent may put there; 0 = unknown.
        other_format: Of which format the spool there is, if not of this agent's; empty = it is, or there is none.
    """

    path: str = ""
    is_in_state: bool = False
    refusal: str = ""
    is_read_only: bool = False
    space: Space | Unseen = Unseen.UNREADABLE
    mount: Mount | Unseen = Unseen.UNREADABLE
    shares_state_volume: bool = False
    need_bytes: int = 0
    other_format: str = ""


@dataclass(frozen=True, slots=True)
class EndpointFacts:
    """Where events are shipped to.

    Args of the dataclass:
        target: As configured; empty = events stay in the spool.
        missing_library: Extra of the distribution that has to be installed; empty = nothing is missing.
        settings_refusal: Why the sink could not be made from its settings; empty = it could, or was not tried.
        tried: Addresses that were tried, `host:port`.
        refusals: What each said that could not be reached.
        may_go_another_way: A library could reach it by a proxy that is not known here.
        directory: The directory, where the target is one.
    """

    target: str = ""
    missing_library: str = ""
    settings_refusal: str = ""
    tried: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    may_go_another_way: bool = False
    directory: OwnVolume | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that the checks judge.

    Args of the dataclass:
        state_dir: Path of the state directory as the agent sees it.
        waited_s: How long the agent has waited for an application; None = asked by hand, judge at once.
        release: Release of Kafka Streams that the operator named; empty = none.
        pod: This pod; empty = not given.
    """

    state_dir: str
    identity: Identity
    state: StateFacts
    inotify: InotifyFacts
    clock: ClockFacts
    spool: OwnVolume = field(default_factory=OwnVolume)
    endpoint: EndpointFacts = field(default_factory=EndpointFacts)
    waited_s: float | None = None
    release: str = ""
    pod: str = ""

    @property
    def is_early(self) -> bool:
        """Whether the application may still be on its way: a sidecar starts before it."""
        return self.waited_s is not None and self.waited_s < PATIENCE_S
