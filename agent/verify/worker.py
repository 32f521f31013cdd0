"""The process that makes one digest for the agent: `python -m agent.verify.worker ASKED`.

Why a process, and not a thread of the agent: a thread would take the interpreter away from the watching loop at every
turn, and what RocksDB takes of memory would stay in the agent. A process can be niced, and ended at any point.

Standard output has the body of the event, one JSON object, or one line that says why there is none (exit code 1).
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from agent.clock import SystemClock
from agent.contract.buckets import MAX_ROWS, body_of, buckets_for
from agent.errors import LayoutError, UsageError
from agent.interrupt import guarded
from agent.observe.kernel_disk import KernelDisk
from agent.verify.digest import digest_store
from agent.verify.places import find_stores
from agent.verify.view import private_directory

NICE = 19
FIRST_TO_GO = "1000"
"""Where memory runs out in the container, this process is what the kernel ends first, and not the agent."""

SLICE_S = 0.01
"""CPU between two rests."""

REFUSED = 1
"""Exit code where there is no digest."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What to make."""

    state_dir: str
    application: str
    task: str
    store: str
    buckets: int
    cpu_share: float
    work: str | None
    parent: int


class Pace:
    """Sleeps so that the CPU that a process takes stays below its share."""

    def __init__(self, share: float, cpu_s: Callable[[], float], sleep: Callable[[float], object]) -> None:
        """Begin with all CPU (`cpu_s`) that the process has taken: its start is to be made up for, too."""
        self._rest = 1 / share - 1
        self._cpu_s, self._sleep = cpu_s, sleep
        self._paid_s = 0.0

    def __call__(self, slice_s: float = SLICE_S) -> None:
        """Rest, if a slice of work is done."""
        used_s = self._cpu_s() - self._paid_s
        if used_s >= slice_s:
            self._sleep(used_s * self._rest)
            self._paid_s += used_s


def command(asked: Asked) -> list[str]:
    """Give the command line that makes it, to be run where the package `agent` is."""
    return [sys.executable, "-m", "agent.verify.worker", json.dumps(asdict(asked))]


def make(asked: Asked, pause: Callable[[], None]) -> dict[str, object]:
    """Make the body of the event; `pause` is called again and again.

    Raises `UsageError`: the store is gone or cannot be read. Raises `LayoutError`: its form is not known. Raises
    `OverflowError`: a bucket has too many entries to be packed.
    """
    root = Path(asked.state_dir)
    found = find_stores(root, application=asked.application, task=asked.task, name=asked.store)
    if not found:
        raise UsageError("it is gone")
    store = found[0]
    if len(store.segments) > MAX_ROWS:
        raise UsageError(f"{len(store.segments)} segments are more than an event has room for")
    number = buckets_for(asked.buckets, len(store.segments))
    with private_directory(Path(asked.work) if asked.work else None, root) as work:
        now_us = SystemClock().now_us()
        return body_of(digest_store(store, {}, now_us, KernelDisk(root), work, number, pause))


def main(arguments: list[str]) -> int:
    """Make what is asked for and write it to standard output."""
    asked = Asked(**json.loads(arguments[0]))
    os.nice(NICE)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(FIRST_TO_GO)
    pace = Pace(asked.cpu_share, time.process_time, time.sleep)

    def pause() -> None:
        if os.getppid() != asked.parent:
            raise SystemExit(REFUSED)
        pace()

    try:
        said, code = json.dumps(make(asked, pause)), 0
    except (UsageError, LayoutError, OverflowError) as error:
        said, code = json.dumps(str(error)), REFUSED
    sys.stdout.write(said)
    sys.stdout.flush()
    pace(0)  # the next one starts when this one ends
    return code


if __name__ == "__main__":
    raise SystemExit(guarded(partial(main, sys.argv[1:]), is_all=True))
