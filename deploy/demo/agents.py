"""Real `statewarden run` processes: start one, follow its log, read its memory, stop it."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

LogLine = Mapping[str, Any]

REPOSITORY = Path(__file__).resolve().parents[2]
READY_WAIT_S = 120.0
STOP_WAIT_S = 60.0
POLL_S = 0.05


class AgentError(Exception):
    """An agent did not start, or did not stop in order."""


class Agent:
    """One agent process that watches one pod's state directory."""

    def __init__(
        self,
        pod: str,
        state_dir: Path,
        own_dir: Path,
        ship_to: Path | str,
        settings: Mapping[str, str],
        on_line: Callable[[str, LogLine], None] | None = None,
        launcher: Sequence[str] = (sys.executable, "-m", "agent"),
    ) -> None:
        """Start the agent; it is not ready yet (see `wait_ready`).

        Args:
            pod: Pod name that it reports.
            state_dir: What it watches.
            own_dir: Its own volume: spool and error output.
            ship_to: Directory or address that it ships sealed segments to.
            settings: Operator's settings, given as `--set`.
            on_line: Called with pod and parsed line for each line of its log, on its own thread.
            launcher: Command that runs the agent's command line.
        """
        self.pod = pod
        self.lines: list[LogLine] = []
        self._on_line = on_line or (lambda _pod, _line: None)
        self._errors = own_dir / "stderr.txt"
        own_dir.mkdir(parents=True, exist_ok=True)
        address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{address}"
        options = [
            "--pod",
            pod,
            "--spool",
            str(own_dir / "spool"),
            "--ship-to",
            str(ship_to),
            "--listen",
            address,
        ]
        sets = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [*launcher, "run", str(state_dir), *options, *sets],
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=REPOSITORY,
                env=os.environ | {"POD_UID": f"uid-of-{pod}"},
                start_new_session=True,  # Ctrl-C is for the demo, which stops its agents in order
            )
        self._reader = threading.Thread(target=self._follow, name=f"log-{pod}", daemon=True)
        self._reader.start()

    @property
    def errors(self) -> str:
        """What the agent wrote on stderr so far."""
        return self._errors.read_text(errors="replace").strip()

    def wait_ready(self) -> None:
        """Wait until `/readyz` says yes: its watches are installed and the first reading is done.

        Raises:
            AgentError: the process ended, or is not ready in time.
        """
        give_up_at = time.monotonic() + READY_WAIT_S
        while not self._is_ready():
            if self._process.poll() is not None:
                raise AgentError(
                    f"agent of {self.pod} ended with code {self._process.returncode}: {self.errors}"
                )
            if time.monotonic() > give_up_at:
                raise AgentError(
                    f"agent of {self.pod} is not ready after {READY_WAIT_S:.0f} s: {self.errors}"
                )
            time.sleep(POLL_S)

    def memory_mib(self) -> tuple[float, float]:
        """Read resident memory from /proc: now and at its highest, MiB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        kib = {
            name: int(value)
            for name, value in re.findall(r"^(VmRSS|VmHWM):\s+(\d+) kB", status, re.MULTILINE)
        }
        return kib["VmRSS"] / 1024, kib["VmHWM"] / 1024

    def stop(self) -> int:
        """Ask the agent to stop (SIGTERM: a last flush) and wait; kill it if it does not.

        Returns:
            Its exit code.

        Raises:
            AgentError: it had to be killed.
        """
        self._process.terminate()
        try:
            code = self._process.wait(STOP_WAIT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AgentError(f"agent of {self.pod} did not stop within {STOP_WAIT_S:.0f} s") from None
        self._reader.join()
        return code

    def kill(self) -> None:
        """End the agent at once; harmless if it has ended."""
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=10) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def _follow(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for raw in lines:
                line = _parse(raw)
                self.lines.append(line)
                self._on_line(self.pod, line)


def _parse(raw: bytes) -> LogLine:
    try:
        line = json.loads(raw)
    except ValueError:
        line = None
    return line if isinstance(line, dict) else {"message": raw.decode(errors="replace").strip()}


def free_port() -> int:
    """Find a TCP port of the loopback interface that no process listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
