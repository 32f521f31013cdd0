"""Replay a recorded trace onto a real directory, with real file operations and real locks, at the recorded speed.

Every recorded JVM run becomes one child process (`lock_holder.py`) that does all file operations of that run: locks
belong to it, files close when it closes them or dies, and a recorded SIGKILL is a SIGKILL. The schedule is absolute:
a late operation is done at once and delays nothing after it. Used by the demo and by the end-to-end tests.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Operation = dict[str, Any]

HOLDER = Path(__file__).with_name("lock_holder.py")
EXIT_WAIT_S = 60.0
_OLD_LOG = re.compile(r"(LOG\.old\.)(\d+)$", re.ASCII)  # RocksDB names it by the microsecond of the rename


class MaterialiseError(Exception):
    """A recorded operation could not be repeated; says which, and what the file system answered."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Maps recorded time to now: `recorded_at` (epoch seconds) happens at `started_at`."""

    recorded_at: float
    speed: float = 1.0
    started_at: float = field(default_factory=time.time)
    started_monotonic: float = field(default_factory=time.monotonic)

    def wait_s(self, recorded: float) -> float:
        """Return how many seconds are left until a recorded moment is due; negative if it is late."""
        return self.started_monotonic + (recorded - self.recorded_at) / self.speed - time.monotonic()

    def shift(self, recorded: float) -> float:
        """Map a recorded moment to the new clock, epoch seconds."""
        return self.started_at + (recorded - self.recorded_at) / self.speed

    def shift_path(self, path: str) -> str:
        """Move the microseconds in a `LOG.old.<us>` name to the new clock; leave any other path alone."""
        return _OLD_LOG.sub(lambda match: f"{match[1]}{int(self.shift(int(match[2]) / 1e6) * 1e6)}", path)


@dataclass(frozen=True, slots=True)
class Progress:
    """Where one pod's replay is: said after every operation."""

    pod: str
    done: int
    total: int
    elapsed_s: float
    operation: Operation


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one replay did."""

    operations: int
    worst_lateness_s: float


class Holder:
    """One child process that represents one JVM run."""

    def __init__(self, directory: Path) -> None:
        """Start the child inside `directory`; isolated from the terminal's Ctrl-C, ends with its parent."""
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(HOLDER)],
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def do(self, operation: Operation) -> None:
        """Have the child do one operation and wait until it is done.

        Raises:
            MaterialiseError: The child could not do it, or is gone.
        """
        answer = self._ask(operation)
        if answer != "ok":
            shown = {key: value for key, value in operation.items() if key != "b64"}
            raise MaterialiseError(f"{shown}: {answer or 'the child process is gone'}")

    def leave(self) -> None:
        """Let the child end by itself, as a JVM that shuts down."""
        self._ask({"op": "exit"})
        self._process.wait(EXIT_WAIT_S)
        self.kill()

    def kill(self) -> None:
        """SIGKILL the child and wait until the kernel has closed its files; harmless if it is gone."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _ask(self, operation: Operation) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(operation).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return ""
        return self._process.stdout.readline().decode().strip()


def read_trace(trace: Path) -> list[Operation]:
    """Read all operations of a recorded trace, in time order."""
    with gzip.open(trace, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


class Materialiser:
    """Repeats one pod's trace below one directory."""

    def __init__(
        self,
        trace: Path,
        target: Path,
        speed: float = 1.0,
        *,
        pod: str = "",
        on_progress: Callable[[Progress], None] | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        """Read the trace; nothing happens on disk before `run`.

        Args:
            trace: A `trace-*.jsonl.gz`.
            target: The state directory; it is made if missing.
            speed: 1.0 is as recorded, 10.0 is ten times faster.
            pod: Name said in the progress.
            on_progress: Called after each operation, on the thread that runs the replay.
            stop: Set it to end the replay early.
        """
        self.operations = read_trace(trace)
        self._target = target
        self._speed = speed
        self._pod = pod or target.name
        self._on_progress = on_progress or (lambda _: None)
        self._stop = stop or threading.Event()
        self._holder: Holder | None = None

    @property
    def first_recorded_at(self) -> float:
        """Time of the first operation, epoch seconds."""
        return float(self.operations[0]["t"])

    def run(self, timeline: Timeline | None = None) -> Outcome:
        """Repeat the whole trace; blocks until it is over or `stop` is set.

        Args:
            timeline: The clock shared with other pods; the default starts now with the first operation.

        Raises:
            MaterialiseError: An operation could not be repeated.
        """
        timeline = timeline or Timeline(self.first_recorded_at, self._speed)
        self._target.mkdir(parents=True, exist_ok=True)
        worst_lateness_s, done = 0.0, 0
        try:
            for done, operation in enumerate(self.operations, 1):
                wait_s = timeline.wait_s(operation["t"])
                if self._stop.wait(wait_s) if wait_s > 0 else self._stop.is_set():
                    break
                worst_lateness_s = max(worst_lateness_s, -wait_s)
                self._repeat(done - 1, timeline)
                elapsed_s = operation["t"] - timeline.recorded_at
                self._on_progress(Progress(self._pod, done, len(self.operations), elapsed_s, operation))
        finally:
            self._end_holder(killed=True)
        return Outcome(done, worst_lateness_s)

    def _repeat(self, index: int, timeline: Timeline) -> None:
        operation = self.operations[index]
        kind = operation["op"]
        if kind == "start":
            self._end_holder(killed=True)
            self._holder = Holder(self._target)
        elif kind == "exit":
            self._end_holder(killed=operation["how"] == "killed")
        elif self._holder is None:
            raise MaterialiseError(f"{operation['op']} of {operation['path']} outside a process run")
        else:
            for step in self._steps(index):
                self._holder.do(_shifted(step, timeline))

    def _steps(self, index: int) -> Iterator[Operation]:
        """Translate one recorded operation into what the child has to do: itself, or nothing.

        A file is created by the open that follows its `create`. Closing and ending release locks by themselves.
        """
        operation = self.operations[index]
        match operation["op"]:
            case "create" if self._kind(index + 1) == "open_r":
                yield {"op": "touch", "path": operation["path"]}
            case "create" | "open_r":
                return
            case "open_w" if self._kind(index - 1) == "create":
                yield {**operation, "new": True}
            case "unlock" if "by" in operation:
                return
            case _:
                yield operation

    def _kind(self, index: int) -> str:
        return str(self.operations[index]["op"]) if 0 <= index < len(self.operations) else ""

    def _end_holder(self, *, killed: bool) -> None:
        if self._holder is None:
            return
        if killed:
            self._holder.kill()
        else:
            self._holder.leave()
        self._holder = None


def _shifted(operation: Operation, timeline: Timeline) -> Operation:
    paths: Operation = {
        key: timeline.shift_path(operation[key]) for key in ("path", "to") if key in operation
    }
    return {**operation, **paths}


def materialise_fleet(
    pods: Mapping[str, tuple[Path, Path]],
    speed: float = 1.0,
    on_progress: Callable[[Progress], None] | None = None,
    stop: threading.Event | None = None,
) -> dict[str, Outcome]:
    """Repeat the traces of several pods side by side on one clock; blocks until all are over.

    Args:
        pods: Pod name -> (trace, state directory). Pods start at their recorded distances.
        speed: 1.0 is as recorded.
        on_progress: Called after each operation, from one thread per pod.
        stop: Set it to end all replays early; also set when one of them fails or Ctrl-C arrives.

    Raises:
        MaterialiseError: An operation could not be repeated.
    """
    stop = stop or threading.Event()
    replays = {
        pod: Materialiser(trace, target, pod=pod, on_progress=on_progress, stop=stop)
        for pod, (trace, target) in pods.items()
    }
    timeline = Timeline(min(replay.first_recorded_at for replay in replays.values()), speed)

    def run(replay: Materialiser) -> Outcome:
        try:
            return replay.run(timeline)
        except BaseException:
            stop.set()
            raise

    with ThreadPoolExecutor(len(replays), thread_name_prefix="materialise") as threads:
        running = {pod: threads.submit(run, replay) for pod, replay in replays.items()}
        try:
            return {pod: future.result() for pod, future in running.items()}
        except BaseException:  # Ctrl-C as well: the pool waits for its threads, so they are asked to end
            stop.set()
            raise
