"""Observations by hand, for unit tests of the reducer: short calls, times in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from agent.contract.events import Source
from agent.inventory.disk import LockState, Unseen
from agent.inventory.model import Application, Inventory, Store, Task
from agent.inventory.observations import (
    ApplicationReading,
    CheckpointReading,
    DatabaseReading,
    Flush,
    LockReading,
    Observation,
    Removal,
    StoreOffsets,
    TaskReading,
)
from agent.inventory.reduce import reduce_observation
from agent.inventory.transitions import Transition
from agent.layout.checkpoint import OffsetEntry
from agent.layout.paths import classify
from tests.support.scenario_case import at

HELD, FREE, UNKNOWN = LockState.HELD, LockState.FREE, LockState.UNKNOWN
GONE = Unseen.VANISHED
TASK = "app/0_0"
DATABASE = f"{TASK}/rocksdb/s"
ID_1 = "identity-1"


def application_look(
    seconds: float, lock: LockState | None = None, *, inode: int = 7, unseen: Unseen | None = None
) -> ApplicationReading:
    """A look at `app`."""
    lock_inode = 0 if lock is None else inode
    return ApplicationReading(
        classify("app"), at(seconds), Source.TIMER, unseen, inode=1, lock=lock, lock_inode=lock_inode
    )


def lock_look(
    seconds: float,
    lock: LockState | None,
    path: str = f"{TASK}/.lock",
    *,
    inode: int = 7,
    announced: bool = False,
) -> LockReading:
    """An answer about a lock file."""
    return LockReading(classify(path), at(seconds), Source.TIMER, None, lock, inode, announced)


def task_look(
    seconds: float,
    *,
    inode: int = 10,
    names: tuple[str, ...] = (),
    lock: LockState | None = None,
    unseen: Unseen | None = None,
    path: str = TASK,
) -> TaskReading:
    """A look at a task directory."""
    return TaskReading(
        classify(path), at(seconds), Source.INOTIFY, unseen, inode, at(seconds), frozenset(names), lock
    )


def checkpoint_look(
    seconds: float,
    offsets: Mapping[str, int] | None = None,
    *,
    written: float | None = None,
    unseen: Unseen | None = None,
    problem: str | None = None,
    foreign: tuple[OffsetEntry, ...] = (),
    path: str = f"{TASK}/.checkpoint",
) -> CheckpointReading:
    """A look at the checkpoint; `offsets` by store."""
    entries = tuple(
        OffsetEntry(f"app-{name}-changelog", 0, offset) for name, offset in (offsets or {}).items()
    )
    return CheckpointReading(
        classify(path),
        at(seconds),
        Source.INOTIFY,
        unseen,
        at(seconds if written is None else written),
        entries + foreign,
        problem,
    )


def database_look(
    seconds: float,
    identity: str | None = ID_1,
    *,
    born: float = 0,
    lock: LockState | None = HELD,
    puts: int = 0,
    opened_puts: int = 0,
    flushes: tuple[Flush, ...] = (),
    manifest: int | None = 5,
    reopened: tuple[float, ...] = (),
    all_reopens: bool = True,
    leftovers: int = 0,
    unseen: Unseen | None = None,
    offsets: StoreOffsets | None = None,
    deletions: int | None = None,
    unnamed: bool = False,
    inode: int = 20,
    path: str = DATABASE,
) -> DatabaseReading:
    """A look at a store's directory."""
    if unseen is not None:
        return DatabaseReading(classify(path), at(seconds), Source.INOTIFY, unseen)
    return DatabaseReading(
        classify(path),
        at(seconds),
        Source.INOTIFY,
        inode=inode,
        identity=identity,
        identity_born_us=at(born) if identity and not unnamed else 0,
        unnamed=unnamed,
        manifest=manifest,
        puts=puts,
        opened_puts=opened_puts,
        flushes=flushes,
        lock=lock,
        reopened_us=tuple(at(x) for x in reopened),
        all_reopens=all_reopens,
        leftovers=leftovers,
        offsets=offsets,
        deletions=deletions,
    )


def flush(number: int, sequence: int, written: float | None = None, *, compacted: bool = False) -> Flush:
    """A file that the manifest names."""
    return Flush(number, sequence, None if written is None else at(written), compacted)


def removal(seconds: float, path: str) -> Removal:
    """A name was announced as removed."""
    return Removal(classify(path), at(seconds), Source.INOTIFY)


T = TypeVar("T")


def known(value: T | None) -> T:
    """A value that must be there."""
    assert value is not None
    return value


class Reducing:
    """An inventory that eats looks and remembers the last transitions."""

    def __init__(self) -> None:
        """Begin with an application directory that was seen."""
        self.inventory = Inventory(started_us=at(0))
        self.changes: list[Transition] = []
        self.see(application_look(0))

    def see(self, *looks: Observation) -> list[str]:
        """Reduce looks; names what changed."""
        self.changes = [change for look in looks for change in reduce_observation(self.inventory, look)]
        return [change.change.value for change in self.changes]

    @property
    def application(self) -> Application:
        return self.inventory.applications["app"]

    @property
    def task(self) -> Task:
        """Task 0_0."""
        return self.application.tasks["0_0"]

    @property
    def store(self) -> Store:
        """Store `s` of task 0_0."""
        return self.task.stores["s"]


def working(*, lock: bool = False) -> Reducing:
    """A task that is held since 1 s, 100 puts flushed at 2 s, a checkpoint of 100 written at 3 s."""
    one = Reducing()
    one.see(task_look(0.5, lock=HELD if lock else None), database_look(1, born=1))
    one.see(database_look(2, born=1, puts=100, flushes=(flush(6, 100, 2),)))
    one.see(checkpoint_look(3, {"s": 100}))
    return one
