"""A live lookout in the test's own process: real files, real notifications, real looks; the test turns the loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from agent.clock import Clock, SystemClock
from agent.config import load_config
from agent.contract.events import Kind, Record
from agent.contract.finding import Finding
from agent.engine.pipeline import Pipeline
from agent.home.canary import Canary
from agent.inventory.hints import Hint
from agent.inventory.model import Task
from agent.lookout.self_limits import Ceilings, SelfLimits
from agent.lookout.walk import Pace
from agent.lookout.watch_keeper import Make, WatchKeeper, inotify_maker
from agent.lookout.watch_loop import Mode, WatchLoop
from agent.observe.kernel_disk import KernelDisk
from agent.watch.mailbox import CAPACITY, Mailbox

DEADLINE_S = 120.0
TURN_S = 0.005
"""What a turn takes that found something: the reader waits as long before it reads what was announced."""

BRISK = Pace(0.2, 1.0, 1e9)
BRISK_MODE = Mode(watching=BRISK, polling=BRISK)


class SteppingClock:
    """Clocks that advance by what the loop waits, and as a test says: a slow machine makes nothing late.

    They never run ahead of the machine's, so other threads have as much time as the loop believes.
    """

    def __init__(self) -> None:
        self._began_us = SystemClock().now_us()
        self._looks = count()
        self.step_us = 0
        self.passed_s = 0.0

    def now_us(self) -> int:
        """Tell the wall clock time, with what it was set by; each look is a microsecond later. For any thread."""
        return self._began_us + self.step_us + round(self.passed_s * 1e6) + next(self._looks)

    def monotonic_s(self) -> float:
        return self.passed_s


class TimedMailbox(Mailbox):
    """A mailbox whose taker's clock advances by what it waited."""

    def __init__(self, clock: SteppingClock, capacity: int = CAPACITY) -> None:
        """Make an empty mailbox; see `Mailbox`."""
        super().__init__(capacity)
        self._clock = clock

    def drain(self, timeout_s: float) -> list[Hint]:
        """Take everything that waits; see `Mailbox`."""
        hints = super().drain(timeout_s)
        self._clock.passed_s += min(timeout_s, TURN_S) if hints else timeout_s
        return hints


@dataclass
class LiveLookout:
    """A lookout on a real directory. Use it as a context manager."""

    root: Path
    home: Path
    clock: SteppingClock = field(default_factory=SteppingClock)
    source_clock: Clock | None = None
    capacity: int = CAPACITY
    make: Callable[[Mailbox], Make] | None = None
    sets: tuple[str, ...] = ()
    mode: Mode = field(default_factory=Mode)
    ceilings: Ceilings = field(default_factory=Ceilings)
    records: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Wire it as the supervisor does."""
        self.home.mkdir(parents=True, exist_ok=True)
        self.canary = Canary(self.home / "canary")
        self.mailbox = TimedMailbox(self.clock, self.capacity)
        disk = KernelDisk(self.root)
        self.pipeline = Pipeline(
            disk,
            load_config(sets=self.sets).applications,
            self.clock.now_us(),
            self.records.append,
            rescan_us=0,
        )
        clock = self.source_clock or self.clock
        make = (
            self.make(self.mailbox)
            if self.make is not None
            else inotify_maker(self.root, self.mailbox, clock, self.canary.directory)
        )
        self.lookout = WatchLoop(
            root=self.root,
            pipeline=self.pipeline,
            disk=disk,
            mailbox=self.mailbox,
            clock=self.clock,
            keeper=WatchKeeper(None if self.mode.forced_polling else make, self.canary),
            limits=SelfLimits(self.ceilings),
            mode=self.mode,
        )

    def __enter__(self) -> LiveLookout:
        """Start, and wait until everything has been looked at once."""
        self.lookout.start()
        self.turn_until(lambda: self.lookout.is_ready)
        return self

    def __exit__(self, *error: object) -> None:
        self.lookout.stop()

    def turn_until(self, enough: Callable[[], object]) -> None:
        """Turn the loop until something holds; fail at the deadline."""
        give_up_at = time.monotonic() + DEADLINE_S
        while not enough():
            assert time.monotonic() < give_up_at, f"still not true: {self.pipeline.inventory.blind}"
            self.lookout.turn()

    def beat(self) -> None:
        """Let the agent judge itself now, not at its next heartbeat."""
        self.pipeline.beat(self.clock.now_us())

    def task(self, path: str) -> Task | None:
        """Give the dossier of a task that exists."""
        application, _, task_id = path.partition("/")
        known = self.pipeline.inventory.applications.get(application)
        task = known.tasks.get(task_id) if known is not None else None
        return task if task is not None and task.exists else None

    def offset(self, path: str, store: str = "s") -> int | None:
        """Give the offset of a task's checkpoint as the agent knows it."""
        task = self.task(path)
        return task.checkpoint.offsets.get(store) if task is not None and task.checkpoint else None

    def changes(self) -> list[str]:
        """List what changed: `task-created 0_0`."""
        bodies = [x.body for x in self.records if x.kind is Kind.TRANSITION]
        return [f"{x['change']} {x.get('task_id') or ''}".strip() for x in bodies]

    def causes(self) -> list[str]:
        """List the causes of all blind intervals."""
        return [interval.cause for interval in self.pipeline.inventory.blind]

    def findings(self) -> list[Finding]:
        """List what the agent says of itself."""
        return [x for x in self.pipeline.ledger.findings() if x.detector == "auditor-blind"]


def write_checkpoint(task: Path, offset: int) -> None:
    """Write a checkpoint the way Kafka Streams does."""
    application, partition = task.parent.name, task.name.rpartition("_")[2]
    temporary = task / ".checkpoint.tmp"
    temporary.write_text(f"0\n1\n{application}-s-changelog {partition} {offset}\n")
    temporary.rename(task / ".checkpoint")


def make_task(root: Path, path: str = "app/0_0", offset: int | None = 1) -> Path:
    """Make a task directory, with a checkpoint."""
    task = root / path
    task.mkdir(parents=True)
    if offset is not None:
        write_checkpoint(task, offset)
    return task


def remove_tree(task: Path) -> None:
    """Delete a task with a checkpoint, as fast as can be."""
    for path in sorted(task.rglob("*"), key=lambda x: -len(x.parts)):
        with suppress(FileNotFoundError):
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink()
    task.rmdir()
