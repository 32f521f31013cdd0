"""Starts agents that keep an independent ledger, one per line of standard input: a fork each, so that a start is cheap.

Input: JSON `{"arguments": [...], "ledger": path, "log": path}`. Output: the agent's process id. An agent is the real
command `statewarden run`; all that is added is a line in the ledger after each `Spool.append` that returned.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent.cli.main import main as run_command
from agent.contract.events import Record
from agent.ship.spool import Spool

for name in ("agent.process.supervisor", "obstore.store", "confluent_kafka"):
    with suppress(ImportError):
        __import__(name)


def run_recorded(arguments: list[str], ledger: str, log: str) -> int:
    """Run one agent in this process."""
    book = os.open(ledger, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
    out = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
    os.dup2(out, 1)
    os.dup2(out, 2)
    real = Spool.append

    def append(self: Spool, record: Record) -> int:
        sequence = real(self, record)
        origin = self._queue._origin
        os.write(book, f"{origin.pod_uid} {origin.boot_id} {sequence}\n".encode())
        return sequence

    Spool.append = append  # type: ignore[method-assign]
    return run_command(arguments)


def serve() -> None:
    """Start an agent for each line."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os._exit(run_recorded(order["arguments"], order["ledger"], order["log"]))
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
