"""The processes that the watch benchmark compares: C inotifywait, the bare watch, and the whole agent."""

from __future__ import annotations

import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO, Protocol

from deploy.demo.agents import free_port
from tests.bench.measure import watches
from tests.bench.versions import AFTER, ROOT, Version
from tests.support.exposed import series_of

PATIENCE_S = 300.0
_EVENTS = ("create", "delete", "moved_from", "moved_to", "close_write", "delete_self")
"""The kinds that the agent asks for; inotifywait has no other way to choose its mask."""


class Watcher(Protocol):
    """A process that watches a state directory."""

    name: str
    pid: int

    def wait_ready(self) -> None:
        """Wait until its watches stand."""
        ...

    def stop(self) -> int:
        """End it; tell how many notifications it read."""
        ...


class _Process:
    """A child whose output goes to a file: nobody must read a pipe while the clock runs."""

    def __init__(self, output: Path, *command: str, at: Path = ROOT) -> None:
        self.output = output
        self._file: IO[bytes] = output.open("wb")
        self._child = subprocess.Popen(command, cwd=at, stdout=self._file, stderr=subprocess.DEVNULL)
        self.pid = self._child.pid

    def wait(self, is_true: Callable[[], bool], what: str) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while not is_true():
            if self._child.poll() is not None or time.monotonic() > deadline_s:
                self.end()
                raise RuntimeError(f"{self.output.stem} did not become {what}")
            time.sleep(0.1)

    def end(self) -> str:
        if self._child.poll() is None:
            self._child.terminate()
            self._child.wait(timeout=60)
        self._file.close()
        return self.output.read_text("utf-8", errors="replace")


class InotifyWait:
    """C inotifywait of inotify-tools, which writes one line per notification."""

    name = "inotifywait (C)"

    def __init__(self, root: Path, work: Path) -> None:
        kinds = [word for kind in _EVENTS for word in ("-e", kind)]
        words = ("inotifywait", "-q", "-m", "-r", *kinds, "--format", "%w%f %e", str(root))
        self._directories = 1 + sum(path.is_dir() for path in root.rglob("*"))
        self._process = _Process(work / "inotifywait.out", *words)
        self.pid = self._process.pid

    @classmethod
    def is_there(cls) -> bool:
        return shutil.which("inotifywait") is not None

    def wait_ready(self) -> None:
        """Wait until every directory has a watch."""
        self._process.wait(lambda: watches(self.pid) >= self._directories, "ready")

    def stop(self) -> int:
        """End it and count its lines."""
        return len(self._process.end().splitlines())


class BareWatch:
    """`agent.watch` without the pipeline."""

    name = "agent.watch alone"

    def __init__(self, root: Path, work: Path, version: Version = AFTER) -> None:
        command = (version.python, "-m", "tests.bench.watch_only", str(root))
        self._process = _Process(work / "watch-only.out", *command, at=version.root)
        self.pid = self._process.pid

    def wait_ready(self) -> None:
        """Wait for its first hint."""
        self._process.wait(lambda: self._process.output.read_text("utf-8").startswith("ready"), "ready")

    def stop(self) -> int:
        """End it; its last word is the count."""
        return int(self._process.end().split()[-1])


class Agent:
    """`statewarden run`, with `/metrics`."""

    name = "agent"

    def __init__(
        self,
        root: Path,
        work: Path,
        *,
        with_spool: bool = False,
        more: tuple[str, ...] = (),
        version: Version = AFTER,
    ) -> None:
        """Start it, with `more` arguments."""
        self._port = free_port()
        spool = ("--spool", str(work / "spool")) if with_spool else ()
        shutil.rmtree(work / "spool", ignore_errors=True)
        listen = f"127.0.0.1:{self._port}"
        options = ("--listen", listen, "--pod", "bench", "--log-level", "WARNING", *spool, *more)
        command = (version.python, "-m", "agent", "run", str(root), *options)
        self._process = _Process(work / "agent.out", *command, at=version.root)
        self.pid = self._process.pid

    def wait_ready(self) -> None:
        """Wait for `/readyz`, and for one scrape that knows the tasks."""
        self._process.wait(lambda: self._get("/readyz") is not None, "ready")
        self._process.wait(lambda: bool(self.offsets()), "informed")

    def stop(self) -> int:
        events = int(self.metrics().get("statewarden_agent_watch_events_total", 0))
        self._process.end()
        return events

    def metrics(self) -> dict[str, float]:
        """Scrape once: series as written -> value."""
        return series_of(self._get("/metrics") or "")

    def wait_until_heard(self, settle_s: float) -> float:
        """Wait until nothing has waited for its worker for a while; tell how long that took, without that while."""
        began_s = quiet_s = time.monotonic()
        while time.monotonic() - quiet_s < settle_s and time.monotonic() - began_s < PATIENCE_S:
            if self.metrics().get("statewarden_agent_mailbox_waiting", 0.0) > 0:
                quiet_s = time.monotonic()
            time.sleep(1.0)
        return quiet_s - began_s

    def offsets(self) -> dict[int, int]:
        """Scrape once: number of the task -> offset of its checkpoint."""
        return self.by_task("statewarden_task_checkpoint_offset")

    def by_task(self, family: str) -> dict[int, int]:
        """Scrape once: number of the task -> value of one family."""
        found = {}
        for line in (self._get("/metrics") or "").splitlines():
            if line.startswith(f"{family}{{"):
                task = line.partition('task_id="0_')[2].partition('"')[0]
                found[int(task)] = int(float(line.rpartition(" ")[2]))
        return found

    def _get(self, path: str) -> str | None:
        url = f"http://127.0.0.1:{self._port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return str(answer.read(), "utf-8")
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None
