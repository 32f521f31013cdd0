"""Resident memory before and after every history of every task is full: on disk, as an owner would fill it.

Every task is deleted and made again eight times. Then each of its stores is opened and closed seven times by a process
that holds its `LOCK`: a new manifest with eight flushes, a checkpoint while it is held and one when it is closed.
`longest` are the longest histories of a task in the baseline that the agent leaves: they prove that what is measured
was full.
"""

from __future__ import annotations

import fcntl
import json
import sqlite3
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.bench_many import QUIET_S
from tests.bench.bench_watch import TRACE
from tests.bench.measure import cpu_seconds, memory
from tests.bench.mixed_load import recreate
from tests.bench.report import Measured, Options, compared
from tests.bench.tree_maker import APPLICATION, STORE, StoreCopy, checkpoint, make_tree, recorded_store
from tests.bench.versions import Version
from tests.bench.watch_load import replace_file
from tests.bench.watchers import Agent
from tests.support.rocksdb_writer import added, counters, deleted, frame

FULL, SMALL = (1_000, 10_000), (200,)
CHUNK = 1_000
"""Tasks that the owner works on at a time."""
LIVES, SESSIONS, FLUSHES = 8, 7, 8
"""More than the histories hold: wipes 8, sessions 6, flushes 48 (of which a new manifest may bring several)."""
SETTLE_S = 2.0
"""With nothing in the mailbox for so long: longer than a store is left to settle, and two polls of a lock."""
_FIRST_FILE = 900
_HISTORIES = ("checkpoints", "past", "sessions", "flushed", "reopened_us")


def run(options: Options) -> list[Measured]:
    """Fill the histories of 1,000 and of 10,000 tasks (small: 200) once: memory does not depend on what else runs."""
    measured = []
    for tasks in FULL if options.full else SMALL:
        with ThreadPoolExecutor(
            len(options.versions)
        ) as pool:  # both at the same time, on trees of their own
            found = pool.map(partial(_measure, tasks, min(tasks, CHUNK)), options.versions)
            told = {version.name: [one] for version, one in zip(options.versions, found, strict=True)}
        goal = f"memory-{tasks}" if options.full else None
        at = f"resident MiB at {tasks:,} tasks"
        kept = ", ".join(f"{name} {length}" for name, length in sorted(told["after"][0]["kept"].items()))
        sys.stderr.write(f"{tasks:,} tasks, longest histories: {kept}\n")
        measured += [
            compared(f"{at}, nothing has happened yet", told, lambda x: x["empty_mib"], digits=0),
            compared(f"{at}, all histories full", told, lambda x: x["full_mib"], goal, 0),
            compared("CPU s of that", told, lambda x: x["cpu_s"], digits=0),
            compared("open findings", told, lambda x: x["open_findings"], digits=0),
        ]
    return measured


class Owner:
    """Does to tasks what their owner does."""

    def __init__(
        self, root: Path, store: StoreCopy, clock_us: Callable[[], int] = lambda: time.time_ns() // 1000
    ) -> None:
        """Work on a tree of `make_tree`."""
        self._application, self._store, self._clock_us = root / APPLICATION, store, clock_us
        self._offset = 1_000
        self._sequence = 1_000_000

    def write_checkpoint(self, number: int) -> int:
        """Replace a task's checkpoint; return the offset."""
        self._offset += 10
        replace_file(str(self._application / f"0_{number}" / ".checkpoint"), checkpoint(number, self._offset))
        return self._offset

    def open_store(self, number: int, session: int, held: ExitStack) -> None:
        """Take the lock of its store, until `held` ends; begin a manifest; flush."""
        directory = self._application / f"0_{number}" / "rocksdb" / STORE
        lock = held.enter_context((directory / "LOCK").open("wb"))
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        (directory / "LOG").rename(directory / f"LOG.old.{self._clock_us()}")
        (directory / "LOG").touch()
        name = f"MANIFEST-{20 + session:06d}"
        (directory / name).write_bytes(self._manifest(session))
        replace_file(str(directory / "CURRENT"), f"{name}\n".encode())
        self.write_checkpoint(number)

    def _manifest(self, session: int) -> bytes:
        """The recorded one, and the last flushes of files that a compaction took since."""
        content = next(text for name, text in self._store.files.items() if name.startswith("MANIFEST-"))
        edits = []
        for flush in range(max(0, session - SESSIONS) * FLUSHES, session * FLUSHES):
            file = _FIRST_FILE + flush
            edits.append(added(file, self._sequence + 1_000 * flush) + counters(file + 1, self._sequence))
            edits.append(deleted(file) + counters(file + 1, self._sequence))
        return content + frame(edits)


def fill(root: Path, tasks: int, chunk: int, agent: Agent) -> None:
    """Fill every history, so many tasks at a time; the agent is waited for, so that it sees every step."""
    owner = Owner(root, recorded_store(TRACE))
    for first in range(0, tasks, chunk):
        numbers = range(first, min(first + chunk, tasks))
        for _ in range(LIVES):
            for number in numbers:
                recreate(root / APPLICATION / f"0_{number}")
                owner.write_checkpoint(number)
            agent.wait_until_heard(SETTLE_S)
        for session in range(1, SESSIONS + 1):
            with ExitStack() as held:
                for number in numbers:
                    owner.open_store(number, session, held)
                agent.wait_until_heard(SETTLE_S)
                for number in numbers:
                    owner.write_checkpoint(number)
            agent.wait_until_heard(SETTLE_S)


def _measure(tasks: int, chunk: int, version: Version) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as at:
        root, work = Path(at) / "state", Path(at) / "work"
        work.mkdir()
        make_tree(root, tasks, recorded_store(TRACE))
        agent = Agent(root, work, more=("--home", str(work / "home")), version=version)
        agent.wait_ready()
        time.sleep(QUIET_S)
        told: dict[str, Any] = {"empty_mib": memory(agent.pid).rss_kib / 1024}
        told["cpu_s"] = -cpu_seconds(agent.pid)
        fill(root, tasks, chunk, agent)
        time.sleep(QUIET_S)
        told["cpu_s"] += cpu_seconds(agent.pid)
        told["full_mib"] = memory(agent.pid).rss_kib / 1024
        told["open_findings"] = sum(
            value
            for series, value in agent.metrics().items()
            if series.startswith("statewarden_findings_open{")
        )
        agent.stop()
        told["kept"] = _longest(work / "home" / "spool.db")
    return told


def _longest(baseline: Path) -> dict[str, int]:
    kept: Counter[str] = Counter()
    with closing(sqlite3.connect(baseline)) as connection:
        for (packed,) in connection.execute("SELECT packed FROM baseline"):
            for line in zlib.decompress(packed).splitlines():
                for name, length in _lengths(json.loads(line)):
                    kept[name] = max(kept[name], length)
    return dict(kept)


def _lengths(value: object) -> Iterator[tuple[str, int]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in _HISTORIES:
                yield name, len(inner)
            yield from _lengths(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _lengths(inner)
