"""A soak in virtual time: a million changes, most of them over full histories. What the agent holds must not grow.

Tasks are recreated, their stores opened and closed, their checkpoints replaced, each by chance. Judged is the count of
memory blocks that Python has given out, which no allocator moves, beside resident memory, descriptors and watches: from
the median of the second quarter of the samples to that of the last. Fails for growth, and if a last checkpoint is not
known at the end.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench import virtual  # noqa: E402 - path first
from tests.bench.bench_memory import Owner  # noqa: E402
from tests.bench.bench_watch import TRACE  # noqa: E402
from tests.bench.measure import memory, watches  # noqa: E402
from tests.bench.mixed_load import recreate  # noqa: E402
from tests.bench.report import machine_note  # noqa: E402
from tests.bench.tree_maker import APPLICATION, STORE, make_tree, recorded_store  # noqa: E402

CHANGES = 1_000_000
TASKS, RATE = 100, 100
"""Changes a second: a task is touched once a second."""
REMADE_EVERY, OPENED_EVERY = 400, 40
"""A task is remade 25 times in all, and its store opened 250 times; histories keep 2 lives and 6 sessions."""
OPEN_AT_ONCE, LOGS_KEPT = 20, 10
SAMPLES = 60
ALLOWED = {"blocks": 0.01, "resident_mib": 0.02, "descriptors": 0.0, "watches": 0.0}
"""Growth from quarter to quarter that is still flat, as a share: findings of a moment, and the allocator's holes."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What the agent was like at one moment."""

    blocks: int  # of memory that Python has given out
    resident_mib: float
    descriptors: int
    watches: int
    findings: int  # open ones


class Load:
    """Does to tasks what their owner does; the same seed does the same."""

    def __init__(self, root: Path) -> None:
        make_tree(root, TASKS, recorded_store(TRACE))
        self._application = root / APPLICATION
        self._owner = Owner(root, recorded_store(TRACE), lambda: self._at_ns // 1000)
        self._random = random.Random(1)
        self._at_ns = self._session = self.done = 0
        self._held: dict[int, ExitStack] = {}
        self.offsets: dict[int, int] = {}

    def step(self, at_ns: int) -> None:
        """Do one change to one task, chosen by chance, and date it."""
        began_ns, self._at_ns = time.time_ns(), at_ns
        number = self._random.randrange(TASKS)
        task = self._application / f"0_{number}"
        self.done += 1
        if self.done % OPENED_EVERY == 0:
            self._release(number)
            if self.done % REMADE_EVERY == 0:
                recreate(task)
            else:
                self._open(number, task / "rocksdb" / STORE)
        self.offsets[number] = self._owner.write_checkpoint(number)
        for path in (
            (task, *task.rglob("*")) if self.done % OPENED_EVERY == 0 else (task, task / ".checkpoint")
        ):
            if path.stat().st_mtime_ns >= began_ns:
                os.utime(path, ns=(at_ns, at_ns))

    def _open(self, number: int, store: Path) -> None:
        """Open its store in a new session, as many at once as may be; RocksDB removes what is old."""
        self._session += 1
        self._held[number] = ExitStack()
        self._owner.open_store(number, self._session, self._held[number])
        for old in (*sorted(store.glob("MANIFEST-*"))[:-1], *sorted(store.glob("LOG.old.*"))[:-LOGS_KEPT]):
            old.unlink()
        if len(self._held) > OPEN_AT_ONCE:
            self._release(next(iter(self._held)))

    def _release(self, number: int) -> None:
        if held := self._held.pop(number, None):
            held.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; 1 if something was lost or grew."""
    parser = argparse.ArgumentParser(prog="soak", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("changes", nargs="?", type=int, default=CHANGES, help=f"default: {CHANGES:,}")
    changes = parser.parse_args(arguments).changes
    began_s = time.monotonic()
    logging.disable(logging.CRITICAL)  # thousands of findings
    with virtual.running(__file__, "load", str(changes)) as (world, agent):
        samples = list(_samples(world, agent, changes / RATE))
        lost = world.checkpoints - virtual.last_offsets(agent)
    lines, failures = judge(samples, lost)
    sys.stdout.write(f"{machine_note()} {changes:,} changes in {time.monotonic() - began_s:.0f} s\n")
    sys.stdout.write("\n".join([*lines, *failures]) + "\n")
    return int(bool(failures))


def _samples(world: virtual.World, agent: Any, seconds: float) -> Iterator[Sample]:
    began_us = world.clock.at_us
    for number in range(1, SAMPLES + 1):
        while world.clock.at_us < began_us + number * seconds * 1e6 / SAMPLES:
            agent._turn()
        gc.collect()
        pid = os.getpid()
        yield Sample(
            blocks=sys.getallocatedblocks(),
            resident_mib=memory(pid).rss_kib / 1024,
            descriptors=len(os.listdir("/proc/self/fd")),
            watches=watches(pid),
            findings=len(agent._pipeline.ledger.open_findings()),
        )
    for _ in range(50):  # what was notified last
        agent._turn()


def judge(samples: Sequence[Sample], lost: float) -> tuple[list[str], list[str]]:
    """Sum a soak up: lines to show, and what makes it fail."""
    lines = [
        "| number | first | second quarter | last quarter | growth |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    failures = [f"FAILED: last checkpoints are off by {lost:g}"] if lost else []
    quarter = len(samples) // 4
    for field, values in zip(fields(Sample), zip(*map(astuple, samples), strict=True), strict=True):
        second, last = (statistics.median(x) for x in (values[quarter : 2 * quarter], values[-quarter:]))
        grown = (last - second) / max(second, 1)
        lines.append(f"| {field.name} | {values[0]:,.1f} | {second:,.1f} | {last:,.1f} | {grown:+.2%} |")
        if grown > ALLOWED.get(field.name, grown):
            failures.append(f"FAILED: {field.name} grows by {grown:.2%}")
    return lines, failures


def play(changes: int, root: Path) -> None:
    """Be the load."""
    load = Load(root)
    steps = ((number * 1_000_000 // RATE, load.step) for number in range(changes))
    virtual.serve(steps, lambda: (load.done, sum(load.offsets.get(x, 1_000) for x in range(TASKS))))


if __name__ == "__main__":
    if sys.argv[1:2] == ["load"]:
        play(int(sys.argv[2]), Path(sys.argv[3]))
    else:
        sys.exit(main())
