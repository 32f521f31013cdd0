"""The agent's reader beside a writer that flushes and compacts as fast as it can."""

from __future__ import annotations

import subprocess
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from agent.observe.kernel_disk import KernelDisk
from agent.observe.rocksdb.cache import SstCache
from agent.observe.rocksdb.coding import Unread
from agent.observe.rocksdb.store import StoreFacts, read_store
from tests.oracle.toolbox import Writer

_GRACE_S = 120  # for a start and an end on a busy machine


@dataclass(slots=True)
class Beside:
    """What many reads of one busy store gave.

    Args of the dataclass:
        outcomes: How often each outcome came: `read`, `raced`, or a false alarm by its name.
        written: What the writer did: flushes, sessions.
        seen_changes: Reads that saw another last sequence number than the read before.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    written: dict[str, int] = field(default_factory=dict)
    seen_changes: int = 0

    @property
    def false_alarms(self) -> dict[str, int]:
        """Outcomes that are neither a read nor a race."""
        return {name: count for name, count in self.outcomes.items() if name not in ("read", "raced")}


def read_beside(writer: Writer, place: Path, seconds: int) -> Beside:
    """Read a store over and over, with and without a cache, while `writer` works on it.

    Raises:
        RuntimeError: the writer failed.
    """
    place.mkdir(parents=True, exist_ok=True)
    store = place / "store"
    arguments = ("spin", str(store), str(writer.has_offsets).lower(), str(seconds))
    found = Beside()
    with subprocess.Popen(
        writer.command(place / "scratch", *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        watchdog = threading.Timer(seconds + _GRACE_S, process.kill)
        watchdog.start()
        try:
            assert process.stdout is not None
            if process.stdout.readline().strip() == "ready":
                _read_until_end(process, place, writer, found)
            printed, problems = process.communicate()
        finally:
            watchdog.cancel()
            process.kill()
    if process.returncode != 0:
        raise RuntimeError(f"writer: {problems.strip()[-500:]}")
    found.written = {name: int(value) for name, value in (one.split("\t") for one in printed.splitlines())}
    return found


def _read_until_end(process: subprocess.Popen[str], place: Path, writer: Writer, found: Beside) -> None:
    disk, cache = KernelDisk(place), SstCache()
    last = -1
    while process.poll() is None:
        for memory in (SstCache(), cache):
            try:
                facts: StoreFacts | Unread | Exception = read_store(disk, "store", memory)
            except Exception as error:  # noqa: BLE001 - an exception is what this looks for
                facts = error
            found.outcomes[_outcome(facts, with_offsets=writer.has_offsets)] += 1
            if isinstance(facts, StoreFacts):
                found.seen_changes += facts.manifest.last_sequence != last
                last = facts.manifest.last_sequence


def _outcome(facts: StoreFacts | Unread | Exception, *, with_offsets: bool) -> str:
    if isinstance(facts, Exception):
        return f"exception: {facts!r}"
    if isinstance(facts, Unread):
        return facts.problem or facts.unseen.value
    if facts.manifest.torn:
        return "torn"
    if facts.missing_files:
        return "missing"
    problems = [*facts.problems, *(facts.offsets.problems if facts.offsets else ())]
    if problems:
        return f"problem: {problems[0].split(': ', 1)[1]}"
    if with_offsets and (facts.offsets is None or facts.offsets.status is None):
        return "status not found"
    return "read"
