"""A stage whose JVMs run under strace: what they did to their state directory becomes a trace, which is proved."""

from __future__ import annotations

import gzip
import hashlib
import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from agent.inventory.disk import EntryKind
from agent.replay.memory_disk import MemoryDisk
from agent.replay.trace import read_trace
from tests.lab.plan import Plan
from tests.lab.processes import Broker, wait_until
from tests.lab.stage import Stage
from tests.lab.strace_lines import read_calls
from tests.lab.toolbox import tool
from tests.lab.trace_writer import TraceWriter

CALLS = (
    "open,openat,creat,close,write,writev,pwrite64,ftruncate,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,"
    "mkdirat,fcntl"
)
Listing = dict[str, str]
"""Path -> sha256 of a file, or an empty text for a directory."""


class Recording(Stage):
    """Runs an application without agents and writes down every file operation of its pods."""

    has_agents = False

    def __init__(self, broker: Broker, home: Path, name: str, plan: Plan) -> None:
        """Make the topics; no pod runs yet."""
        plain = f"{name}-{plan.release}".replace(".", "-")
        super().__init__(
            broker, home, name, plan, application_id=f"{plain}-{time.strftime('%H%M%S', time.gmtime())}"
        )
        self.runs: dict[str, list[tuple[str, Path]]] = defaultdict(list)
        self.ends: dict[str, list[Listing]] = defaultdict(list)
        self.operations: dict[str, list[dict[str, Any]]] = {}

    def watch(self, pod: str, release: str | None = None) -> None:
        """Nobody watches."""

    def launcher(self, pod: str, release: str) -> tuple[str, ...]:
        """Let strace watch from a process of its own (`-D`), so that a kill of the child is a kill of the JVM."""
        calls = self.home / "strace" / f"{pod}-{len(self.runs[pod]) + 1}"
        calls.parent.mkdir(parents=True, exist_ok=True)
        self.runs[pod].append((release, calls))
        how = ("-D", "-f", "-q", "-ttt", "-xx", "-s", "16777216", "--seccomp-bpf", "-e", "signal=KILL")
        return (tool("strace"), *how, "-e", f"trace={CALLS}", "-o", str(calls), tool("java"))

    def stop(self, pod: str = "a") -> None:
        """Close an instance in order, and list what it leaves."""
        super().stop(pod)
        self._ended(pod)

    def kill(self, pod: str = "a") -> None:
        """SIGKILL, and list what it leaves."""
        super().kill(pod)
        self._ended(pod)

    def _ended(self, pod: str) -> None:
        calls = self.runs[pod][-1][1]
        wait_until(lambda: has_ended(calls), f"strace has written the end of {pod}", within_s=60)
        self.ends[pod].append(list_directory(self.state_dir(pod)))

    # ------------------------------------------------------------------------------------ traces

    def write(self, pod: str, target: Path) -> dict[str, Any]:
        """Write a pod's trace, compare it with what was there at each end; gives what `scenario.json` says of that."""
        writer = TraceWriter(str(self.state_dir(pod)))
        for number, (release, calls) in enumerate(self.runs[pod], start=1):
            with calls.open(encoding="ascii", errors="replace") as lines:
                writer.run(read_calls(lines), release, f"{pod} run {number}")
        self.operations[pod] = writer.operations
        with gzip.GzipFile(target, "wb", 9, mtime=0) as file:
            for row in writer.lines():
                file.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")
        differ = [
            differences(mine, real) for mine, real in zip(replayed(target), self.ends[pod], strict=True)
        ]
        return {
            "entries": len(self.ends[pod][-1]),
            "differ": sorted({path for paths in differ for path in paths}),
            "ends_compared": len(differ),
            "ops": len(writer.operations),
            "bytes_gz": target.stat().st_size,
        }


def has_ended(calls: Path) -> bool:
    """Tell whether strace has written the end of the process."""
    with calls.open("rb") as file:
        process = file.readline().split()[0]
        file.seek(max(0, calls.stat().st_size - 4096))
        return any(line.startswith(process + b" ") and b" +++ " in line for line in file.read().splitlines())


def list_directory(root: Path) -> Listing:
    return {
        str(path.relative_to(root)): "" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
    }


def replayed(trace: Path) -> list[Listing]:
    """Play a trace in memory and list the disk at the end of each process."""
    disk, ends = MemoryDisk(), []
    for operation in read_trace(trace):
        disk.apply(operation)
        if operation.op == "exit":
            ends.append(dict(_walk(disk, "")))
    return ends


def _walk(disk: MemoryDisk, path: str) -> list[tuple[str, str]]:
    found = []
    entries = disk.list(path)
    assert isinstance(entries, tuple)
    for entry in entries:
        name = f"{path}/{entry.name}" if path else entry.name
        if entry.kind is EntryKind.DIRECTORY:
            found += [(name, ""), *_walk(disk, name)]
        else:
            content = disk.read_at(name, 0, 1 << 30)
            assert isinstance(content, bytes)
            found.append((name, hashlib.sha256(content).hexdigest()))
    return found


def differences(mine: Listing, real: Listing) -> list[str]:
    """Name paths that only one has, or whose content is not the same."""
    return sorted(path for path in mine.keys() | real.keys() if mine.get(path) != real.get(path))
