"""Visible processes that work on the state directory. Sole importer of psutil.

A process is visible if the agent shares its PID namespace and may read its descriptors (same user, or
CAP_SYS_PTRACE). Most sidecars see none; that is an answer, not an error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from agent.clock import Clock
from agent.inventory.disk import ProcessFact
from agent.layout import names

STATM = Path("/proc/self/statm")
_LINE_BYTES = 256
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def resident_bytes(statm: Path = STATM) -> int | None:
    """Return the agent's resident memory in bytes; None where /proc does not say."""
    try:
        with open(
            statm, "rb", buffering=0
        ) as file:  # asked every second: without the layers for text and paths
            pages = int(file.read(_LINE_BYTES).split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * _PAGE_BYTES


MAX_AGE_S = 15.0
"""How old the answer of `ProcessView.visible` may be: a start or an end is known after at most this long."""

# `kafka-streams-scala_*` and `kafka-streams-test-utils-*` have other numbers or none
_STREAMS_JAR = re.compile(r"/kafka-streams-(\d[^/]*)\.jar")
_JAVA = (b"java", b"jsvc")
_LOCK_NAMES = (f"/{names.STORE_LOCK_FILE}", f"/{names.LOCK_FILE}")
_DEEPEST = 6  # application/__topology__/task/rocksdb/store/LOCK


class ProcessView:
    """Looks for processes at most every `max_age_s`, and only when asked."""

    def __init__(self, root: Path, clock: Clock, max_age_s: float = MAX_AGE_S) -> None:
        """Remember where to read; reads nothing yet."""
        self._root = root
        self._clock = clock
        self._max_age_s = max_age_s
        self._listed_at_s: float | None = None
        self._facts: tuple[ProcessFact, ...] = ()

    def visible(self) -> tuple[ProcessFact, ...]:
        """Answer from the last reading, or read again if that one is too old."""
        now_s = self._clock.monotonic_s()
        if self._listed_at_s is None or now_s - self._listed_at_s >= self._max_age_s:
            self._listed_at_s = now_s
            self._facts = visible_processes(self._root)
        return self._facts


def visible_processes(root: Path) -> tuple[ProcessFact, ...]:
    """List JVMs that hold locks below the state directory, by process id; empty if nothing can be seen.

    Cost: one name per process, one readlink per open file of every JVM, and some stats per application.
    """
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
        virtual_machines = [pid for pid in pids if _is_java(pid)]
        if not virtual_machines:
            return ()  # most sidecars see none, and need no psutil: 3.5 MiB
        real_root = os.path.realpath(root)
    except OSError:  # no /proc, or one that hides everything
        return ()
    facts = (_read_process(pid, real_root) for pid in sorted(virtual_machines))
    return tuple(fact for fact in facts if fact is not None)


def _is_java(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_bytes().startswith(_JAVA)
    except OSError:  # ended meanwhile
        return False


def _read_process(pid: int, root: str) -> ProcessFact | None:
    import psutil

    try:
        targets = list(_open_files(pid))
        applications = _applications_of(root, targets)
        if not applications:
            return None
        jar = next((found for target, _ in targets if (found := _STREAMS_JAR.search(target))), None)
        started_at_us = int(psutil.Process(pid).create_time() * 1_000_000)
    except (psutil.Error, OSError):  # ended meanwhile, or not ours to read
        return None
    return ProcessFact(pid, started_at_us, jar[1] if jar else None, applications)


def _open_files(pid: int) -> Iterator[tuple[str, str]]:
    """Give target and link of every descriptor.

    Not `psutil.Process.open_files`: it leaves out what does not exist under the same path in the agent's own
    mount namespace, and that is every file of the neighbour container.
    """
    directory = f"/proc/{pid}/fd"
    for name in os.listdir(directory):
        link = f"{directory}/{name}"
        try:
            yield os.readlink(link), link
        except FileNotFoundError:  # closed meanwhile
            continue


def _applications_of(root: str, files: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Return in which application directories a process works, also if its container mounts the volume elsewhere.

    The name of an open file is one in its process's own mount namespace: there another volume may have the same
    path. So a name counts only if it is the same file here. Only locks are asked: who works on a state directory
    holds one, and one per application is enough.
    """
    found: dict[str, str] = {}  # where the process sees the application's directory: its name
    for target, link in files:
        if target.endswith(_LOCK_NAMES) and not target.startswith(tuple(found)):
            inner = _place_of(root, target, link)
            if inner is not None:
                application = inner.split("/")[0]
                found[f"{target.removesuffix(inner)}{application}/"] = application
    return frozenset(found.values())


def _place_of(root: str, target: str, link: str) -> str | None:
    """Give the path of an open file below the root; None = it is not there."""
    parts = target.split("/")
    candidates = ("/".join(parts[-depth:]) for depth in range(2, min(_DEEPEST, len(parts) - 1) + 1))
    return next((x for x in candidates if _is_same_file(f"{root}/{x}", link)), None)


def _is_same_file(path: str, link: str) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.stat(link))
    except OSError:
        return False
