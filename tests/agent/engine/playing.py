"""Play recorded or made-up operations into a pipeline, in any batching."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.config import load_config
from agent.contract.events import Kind, Record
from agent.detectors import DETECTORS
from agent.engine.pipeline import Pipeline
from agent.inventory.hints import Hint
from agent.judging.base import Detector
from agent.replay.memory_disk import MemoryDisk
from agent.replay.run import Player
from agent.replay.trace import Operation, read_trace
from tests.support.rocksdb_writer import counters, frame

TRACES = Path(__file__).resolve().parents[2] / "data" / "traces"
T0_US = 1_700_000_000_000_000
EMPTY_STORE = frame([counters(2)])
_FILES = ("LOCK", "IDENTITY", "MANIFEST-000001", "CURRENT")
QUIET_US = 1_200_000_000
LAG_US = 3_000


def second(seconds: float) -> int:
    """Give a time of the made-up runs."""
    return T0_US + round(seconds * 1_000_000)


@dataclass
class Run:
    """A pipeline on a disk in memory, with everything that it said."""

    started_us: int = T0_US
    sets: Sequence[str] = ()
    detectors: tuple[Detector, ...] = DETECTORS
    before: Sequence[Operation] = ()  # what was done before the agent started
    records: list[Record] = field(default_factory=list)
    faults: list[tuple[str, Exception]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.disk = MemoryDisk()
        self.player = Player()
        for operation in self.before:
            self.disk.apply(operation)
        self.now_us = self.started_us
        self.pipeline = Pipeline(
            self.disk, load_config(sets=self.sets).applications, self.started_us, self.records.append,
            on_fault=lambda detector, error: self.faults.append((detector, error)), detectors=self.detectors,
        )  # fmt: skip
        self.pipeline.scan(self.started_us)

    def until(self, until_us: int) -> None:
        """Let the agent's own clock run to a time."""
        self.pipeline.run_until(until_us)
        self.now_us = max(self.now_us, until_us)

    def play(self, *operations: Operation, lag_us: int = 0) -> None:
        """Do operations at once; the agent hears of all of them after the last one."""
        self.until(operations[0].at_us)
        hints: list[Hint] = []
        for operation in operations:
            self.disk.apply(operation)
            hints += self.player.hints(operation)
        self.now_us = max(self.now_us, operations[-1].at_us + lag_us)
        if hints:
            self.pipeline.handle(hints, self.now_us)

    def unseen(self, *operations: Operation) -> None:
        """Do operations that nobody announces."""
        self.until(operations[0].at_us)
        for operation in operations:
            self.disk.apply(operation)

    def rest(self, quiet_us: int = QUIET_US) -> None:
        """Let nothing happen for a while."""
        self.until(self.now_us + quiet_us)

    def of(self, kind: Kind) -> list[dict[str, Any]]:
        return [dict(record.body) for record in self.records if record.kind is kind]

    def changes(self) -> list[str]:
        """List what changed, in order: `task-created 0_0`."""
        return [f"{x['change']} {x.get('task_id') or ''}".strip() for x in self.of(Kind.TRANSITION)]


def operations_of(scenario: str, pod: str) -> list[Operation]:
    return list(read_trace(TRACES / scenario / f"trace-{pod}.jsonl.gz"))


def sets_of(scenario: str) -> list[str]:
    settings = json.loads((TRACES / scenario / "scenario.json").read_text())["settings"]
    return [f"{key}={value}" for key, value in settings.items()]


def run_of(
    scenario: str, pod: str, *, size: Callable[[], int] = lambda: 1, span_us: int = 0, **more: Any
) -> Run:
    """Play a recorded run to its end, in batches of at most `size()` operations within `span_us`."""
    operations = operations_of(scenario, pod)
    run = Run(operations[0].at_us, sets_of(scenario), **more)
    first = 0
    while first < len(operations):
        most, last = size(), first + 1
        while (
            last < min(first + most, len(operations))
            and operations[last].at_us - operations[first].at_us <= span_us
        ):
            last += 1
        run.play(*operations[first:last], lag_us=LAG_US if last - first > 1 else 0)
        first = last
    run.rest()
    return run


# -- made-up operations -------------------------------------------------------------------------------


def opening(
    seconds: float, task: str = "app/0_0", store: str = "s", identity: str = "id-1"
) -> list[Operation]:
    """Make a task with one new store that is open: directories, lock, IDENTITY, manifest, CURRENT."""
    at_us, base = second(seconds), f"{task}/rocksdb/{store}"
    found = [Operation(at_us, "mkdir", path) for path in (task, f"{task}/rocksdb", base)]
    found += [Operation(at_us, "create", f"{base}/LOCK"), Operation(at_us, "lock", f"{base}/LOCK")]
    files = {"IDENTITY": identity.encode(), "MANIFEST-000001": EMPTY_STORE, "CURRENT": b"MANIFEST-000001\n"}
    for name, content in files.items():
        found += _file(at_us, f"{base}/{name}", content)
    return found


def application(seconds: float, name: str = "app") -> list[Operation]:
    """Make an application directory whose process lives."""
    at_us = second(seconds)
    return [
        Operation(at_us, "mkdir", name),
        Operation(at_us, "create", f"{name}/.lock"),
        Operation(at_us, "open_w", f"{name}/.lock"),
        Operation(at_us, "lock", f"{name}/.lock"),
    ]


def checkpoint(seconds: float, offset: int, task: str = "app/0_0", store: str = "s") -> list[Operation]:
    """Write a checkpoint the way Kafka Streams does: beside it, then renamed."""
    at_us, (name, _, number) = second(seconds), task.partition("/")
    content = f"0\n1\n{name}-{store}-changelog {number.rpartition('_')[2]} {offset}\n"
    temporary = f"{task}/.checkpoint.tmp"
    return [
        *_file(at_us, temporary, content.encode()),
        Operation(at_us, "rename", temporary, to=f"{task}/.checkpoint"),
    ]


def release(seconds: float, task: str = "app/0_0", store: str = "s") -> list[Operation]:
    """Close a store: its lock goes free, and the descriptor is closed."""
    path = f"{task}/rocksdb/{store}/LOCK"
    return [Operation(second(seconds), "unlock", path), Operation(second(seconds), "close_w", path)]


def kill(seconds: float, *locks: str) -> list[Operation]:
    """SIGKILL: the kernel frees the locks; nothing is announced."""
    return [Operation(second(seconds), "unlock", path) for path in locks]


def deletion(seconds: float, task: str = "app/0_0", store: str = "s") -> list[Operation]:
    """Walk over a task directory and remove all of it."""
    at_us, base = second(seconds), f"{task}/rocksdb/{store}"
    files = [Operation(at_us, "unlink", f"{base}/{name}") for name in _FILES]
    return files + [Operation(at_us, "rmdir", path) for path in (base, f"{task}/rocksdb", task)]


def _file(at_us: int, path: str, content: bytes) -> list[Operation]:
    return [
        Operation(at_us, "create", path),
        Operation(at_us, "open_w", path),
        Operation(at_us, "write", path, data=content),
        Operation(at_us, "close_w", path),
    ]
