"""A load in virtual time: what the agent's own parts cost, which a busy machine moves little.

    PYTHONPATH=CHECKOUT python tests/bench/virtual.py TASKS SECONDS [spool] [calls]

The agent's supervisor, inotify and files are the real ones; the clock is ours, and nobody waits. A process of its own
plays the load up to the moment that it is told, and holds the locks. Only the CPU of the agent's thread is counted,
only while it runs. Prints one JSON object; with `calls` also how many Python functions it called, which no load of the
machine changes (and the CPU is that of counting, too).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

HERE = Path(__file__).resolve().parents[2]
LINGER_US = 5_000
"""How long the reader of the queue gathers notifications (`agent.watch.inotify_source`)."""
TICK_US = 1_000_000
"""How long it waits for one at most."""
SCRAPE_US = 15_000_000
WARM_S = 10
RECORDING = HERE / "tests" / "bench" / "data" / "real-4.2.2.jsonl.gz"


class Clock:
    """Wall clock and monotonic clock of the agent; whoever waits moves it."""

    def __init__(self) -> None:
        self.at_us = self.began_us = time.time_ns() // 1000

    def now_us(self) -> int:
        """Return microseconds since the epoch."""
        return self.at_us

    def monotonic_s(self) -> float:
        return (self.at_us - self.began_us) / 1e6


class World:
    """Everything but the agent: the load, the clock, and the meter."""

    def __init__(self, load: subprocess.Popen[str], clock: Clock) -> None:
        self.clock, self._load = clock, load
        self.sources: list[Any] = []
        self.next_us: float = float("inf")
        self.cpu_s = self.notifications = self.checkpoints = self._began_s = 0.0
        self._tick_us = 0
        self.counts_calls = False
        self.calls = 0

    def begin(self) -> None:
        """The agent goes on."""
        self._began_s = time.thread_time()
        if self.counts_calls:
            sys.setprofile(self._count)

    def _count(self, _: FrameType, event: str, __: object) -> None:
        self.calls += event == "call"

    def end(self) -> None:
        """The agent waits."""
        sys.setprofile(None)
        self.cpu_s += time.thread_time() - self._began_s

    def _read(self) -> None:
        """What the thread of the queue does."""
        self._tick_us = self.clock.at_us + TICK_US
        self.begin()
        for source in self.sources:
            source._put(source.watch.handle(source.watch.queue.read()) + source.watch.tick())
        self.end()

    def tell(self, until_us: float) -> None:
        """Let the load play up to a moment."""
        assert self._load.stdin
        assert self._load.stdout
        self._load.stdin.write(f"{until_us:.0f}\n")
        self._load.stdin.flush()
        following, notifications, self.checkpoints = json.loads(self._load.stdout.readline())
        self.next_us = float("inf") if following is None else following
        self.notifications = notifications

    def wait(self, timeout_s: float, is_over: Callable[[], object] = lambda: False) -> bool:
        """Wait until it is over, or only for a time."""
        self.end()
        until_us = self.clock.at_us + round(timeout_s * 1e6)
        while True:
            if is_over():
                break
            told_us = min(until_us, self.next_us + LINGER_US)
            self.clock.at_us = round(max(told_us, self.clock.at_us))
            is_told = self.next_us <= told_us
            if is_told:
                self.tell(told_us)
            if is_told or self.clock.at_us >= self._tick_us:
                self._read()
            if self.clock.at_us >= until_us:
                break
        self.begin()
        return False


@contextmanager
def running(*load: str, place: str = "home") -> Iterator[tuple[World, Any]]:
    """Run an agent beside a load in virtual time: give the world, and the agent's supervisor.

    `load`: words of a Python command; the state directory that it makes is added. It answers as `serve` does.
    """
    from agent.config import load_config
    from agent.process.preflight_thread import PreflightThread
    from agent.process.supervisor import Supervisor
    from agent.watch.inotify_source import InotifySource
    from agent.watch.mailbox import Mailbox

    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="statewarden-virtual-", dir=memory) as folder:
        root, home = Path(folder, "state"), Path(folder, "home")
        command = (sys.executable, *load, str(root))
        with subprocess.Popen(
            command, env={**os.environ, "PYTHONPATH": str(HERE)}, stdin=-1, stdout=-1, text=True
        ) as process:
            assert process.stdin
            assert process.stdout
            process.stdout.readline()
            clock = Clock()
            world = World(process, clock)
            waits = Mailbox.drain
            cast: Any = (InotifySource, Mailbox, PreflightThread)
            cast[0].start, cast[0].is_alive = lambda x: world.sources.append(x), lambda _: True
            cast[1].drain = lambda box, wait_s: world.wait(wait_s, lambda: box._waiting) or waits(box, 0)
            cast[1].await_pressing = lambda box, wait_s: world.wait(wait_s, lambda: box._is_pressing)
            cast[2].start = lambda _: None
            flags = {
                "state_dir": str(root), "listen": "", "pod": "pod", "log_level": "ERROR", place: str(home),
            }  # fmt: skip
            agent: Any = Supervisor(load_config(flags=flags, environment={}), clock)
            agent._lookout.pause = world.wait
            world.begin()
            agent._lookout.start()
            world.tell(clock.at_us)
            try:
                yield world, agent
            finally:
                world.end()
                process.stdin.close()


def last_offsets(agent: Any) -> int:
    """Sum up the offsets of all checkpoints that the agent knows to be there."""
    tasks = [x for one in agent._pipeline.inventory.applications.values() for x in one.tasks.values()]
    return sum(sum(x.checkpoint.offsets.values()) for x in tasks if x.checkpoint)


def drive(tasks: int, seconds: float, *more: str) -> dict[str, Any]:
    """Run the agent on the realistic load and tell what it cost."""
    load = (__file__, "load", str(tasks), str(seconds + WARM_S))
    with running(*load, place="spool" if "spool" in more else "home") as (world, agent):
        clock = world.clock
        end_us, before = clock.at_us + (seconds + WARM_S) * 1e6, (0.0, 0.0)
        warm_us, scrape_us = clock.at_us + WARM_S * 1e6, 0
        while clock.at_us < end_us:
            if not before[0] and clock.at_us >= warm_us:
                before = world.cpu_s, world.notifications
                world.counts_calls = "calls" in more
            if clock.at_us >= scrape_us:
                scrape_us, agent._snapshots.is_asked = clock.at_us + SCRAPE_US, True
            agent._turn()
        world.end()
        return {
            "share_percent": 100 * (world.cpu_s - before[0]) / seconds,
            "notifications": world.notifications - before[1],
            "last_offsets": last_offsets(agent), "written_offsets": world.checkpoints,
            "findings": len(agent._pipeline.ledger.open_findings()), "calls": world.calls,
        }  # fmt: skip


def play(tasks: int, seconds: float, root: Path) -> None:
    """Be the realistic load."""
    from tests.bench import real_load

    recorded = real_load.load_recording(RECORDING)
    players = real_load.prepare(root, recorded, tasks, seconds)
    steps = (
        (at_us, partial(players[number][1].play, operation))
        for at_us, number, operation in real_load.schedule(recorded, players, seconds)
    )

    def told() -> tuple[int, int]:
        last = {task: offset for _, player in players for task, offset in player.checkpoints[-1:]}
        return sum(player.notifications for _, player in players), sum(last.values())

    serve(steps, told)


def serve(steps: Iterator[tuple[int, Callable[[int], object]]], told: Callable[[], tuple[int, int]]) -> None:
    """Play steps up to each moment that is read; say when the next one is, and what was done.

    `steps`: (microseconds since the beginning, what to do at that time in nanoseconds). `told`: notifications, and the
    sum of the last checkpoints' offsets.
    """
    print("ready", flush=True)
    began_us = until_us = int(sys.stdin.readline())
    step = next(steps, None)
    while True:
        while step is not None and began_us + step[0] <= until_us:
            step[1]((began_us + step[0]) * 1000)
            step = next(steps, None)
        print(json.dumps([step and began_us + step[0], *told()]), flush=True)
        if not (line := sys.stdin.readline()):
            return
        until_us = int(line)


if __name__ == "__main__":
    if sys.argv[1] == "load":
        play(int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))
    else:
        told = drive(int(sys.argv[1]), float(sys.argv[2]), *sys.argv[3:])
        print(json.dumps(told, indent=1))
