"""What a process cost, told by the kernel, and how a few such numbers are summed up."""

from __future__ import annotations

import os
import statistics
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.bench.versions import AFTER, Version
from tests.bench.versions import ROOT as ROOT

_IDLE_SHARE = 0.08  # of a core: an agent that judges again what has changed a while ago needs half of it
_PEAK_EVERY_S = 0.02


@dataclass(frozen=True, slots=True)
class Finished:
    user_s: float  # CPU seconds in user mode
    system_s: float  # CPU seconds in the kernel
    wall_s: float  # from its start to its end
    peak_kib: int  # largest resident size
    output: str  # what it wrote to stdout

    @property
    def cpu_s(self) -> float:
        """CPU seconds, user and kernel."""
        return self.user_s + self.system_s


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of a live process, in KiB: resident, and with shared pages counted by share."""

    rss_kib: int
    pss_kib: int


def run_child(*command: str, expected: Sequence[int] = (0,), at: Path = ROOT) -> Finished:
    """Run a command to its end, from the repository's root or another one; its exit code must be one `expected`."""
    began_s = time.monotonic()
    child = subprocess.Popen(command, cwd=at, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    peaks = [0]
    watcher = threading.Thread(target=_watch_peak, args=(child.pid, peaks))
    watcher.start()
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    watcher.join()
    wall_s = time.monotonic() - began_s
    child.returncode = os.waitstatus_to_exitcode(status)
    child.stdout.close()
    if child.returncode not in expected:
        raise RuntimeError(f"{' '.join(command)}: exit code {child.returncode}")
    return Finished(usage.ru_utime, usage.ru_stime, wall_s, peaks[0], output)


def _watch_peak(pid: int, peaks: list[int]) -> None:
    """Follow the largest resident size of a process; what `wait4` says of it has this process's own size in it."""
    try:
        while True:
            status = Path(f"/proc/{pid}/status").read_text("ascii", errors="replace")
            _, found, rest = status.partition("VmHWM:")
            if not found:  # it has ended
                return
            peaks[0] = max(peaks[0], int(rest.split()[0]))
            time.sleep(_PEAK_EVERY_S)
    except OSError:
        return


def run_module(
    module: str, *arguments: str, expected: Sequence[int] = (0,), version: Version = AFTER
) -> Finished:
    """Run a module of a version to its end, with its interpreter."""
    return run_child(version.python, "-m", module, *arguments, expected=expected, at=version.root)


def cpu_seconds(pid: int) -> float:
    """CPU seconds, user and kernel, that a live process has used; resolution 10 ms."""
    used = psutil.Process(pid).cpu_times()
    return used.user + used.system


def wait_until_idle(pid: int, patience_s: float = 120.0) -> None:
    """Wait until a process has next to nothing to do: on a busy machine it may lag behind a load that has ended."""
    deadline_s = time.monotonic() + patience_s
    before_s = cpu_seconds(pid)
    while time.monotonic() < deadline_s:
        time.sleep(1.0)
        now_s = cpu_seconds(pid)
        if now_s - before_s < _IDLE_SHARE:
            return
        before_s = now_s


def memory(pid: int) -> Memory:
    used = psutil.Process(pid).memory_full_info()
    return Memory(used.rss // 1024, used.pss // 1024)


def watches(pid: int) -> int:
    """Number of inotify watches that a live process has."""
    infos = Path(f"/proc/{pid}/fdinfo")
    return sum(_inotify_lines(info) for info in infos.iterdir())


def _inotify_lines(info: Path) -> int:
    try:
        return sum(line.startswith("inotify ") for line in info.read_text("ascii").splitlines())
    except OSError:  # the descriptor was closed in between
        return 0


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Sum values up as `median (lowest - highest)`; one value as it is."""
    middle, low, high = statistics.median(values), min(values), max(values)
    if len(values) == 1:
        return f"{middle:,.{digits}f}"
    return f"{middle:,.{digits}f} ({low:,.{digits}f} - {high:,.{digits}f})"


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie; the nearest one, not interpolated."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
