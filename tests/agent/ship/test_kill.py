"""kill -9 at any point: what was appended is shipped, once or more, and nothing else is."""

from __future__ import annotations

import gzip
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from agent.ship.shipper import Outcome, Shipper
from agent.ship.sinks.directory import DirectorySink
from tests.agent.ship.ship_support import HandClock, json_lines, open_spool

ROUNDS = 8
WORKER = """
import os, sys
from pathlib import Path
from agent.clock import SystemClock
from agent.contract.events import Kind, Origin, Record
from agent.ship.shipper import Shipper, ShipperThread
from agent.ship.sinks.directory import DirectorySink
from agent.ship.values import Limits
from agent.ship.spool import Spool

spool_dir, sink_dir, ledger, boot = sys.argv[1:]
clock = SystemClock()
spool = Spool(Path(spool_dir), Origin("uid", boot, "pod"), clock=clock, limits=Limits(seal_bytes=16384))
thread = ShipperThread(spool, Shipper(spool, DirectorySink(Path(sink_dir))), clock, poll_s=0.001)
thread.start()
with open(ledger, "a", buffering=1) as book:
    while True:
        sequence = spool.append(Record(Kind.HEARTBEAT, clock.now_us(), {"tasks": 1}))
        book.write(f"{boot} {sequence}\\n")
"""


def test_nothing_is_lost_over_kills(
    tmp_path: Path, repository: Path, eventually: Callable[[Callable[[], object]], object]
) -> None:
    """An independent ledger of everything appended equals what the sink holds after a last clean run."""
    rng = random.Random(20685)
    spool_dir, sink_dir, ledger = tmp_path / "spool", tmp_path / "sink", tmp_path / "ledger"
    ledger.touch()
    for number in range(ROUNDS):
        wanted = ledger.stat().st_size + rng.randint(1, 8_000)
        command = [sys.executable, "-c", WORKER, str(spool_dir), str(sink_dir), str(ledger), f"boot{number}"]
        with subprocess.Popen(command, cwd=repository) as worker:
            eventually(partial(has_grown, ledger, wanted))
            worker.send_signal(signal.SIGKILL)
        assert worker.returncode == -signal.SIGKILL
    ship_what_is_left(spool_dir, sink_dir)
    shipped = [
        f"{event['data']['boot_id']} {event['data']['sequence']}"
        for path in sorted(sink_dir.rglob("*.jsonl.gz"))
        for event in json_lines(gzip.decompress(path.read_bytes()))
    ]
    written = [line for line in ledger.read_text().split("\n")[:-1] if line]
    assert len(shipped) == len(set(shipped))
    assert set(written) <= set(shipped)
    # one record per kill may be in the spool without a line in the ledger
    assert len(shipped) - len(written) <= ROUNDS


def has_grown(path: Path, size_bytes: int) -> bool:
    """Tell whether a file has reached a size."""
    return path.stat().st_size >= size_bytes


def ship_what_is_left(spool_dir: Path, sink_dir: Path) -> None:
    clock = HandClock()
    with open_spool(spool_dir, clock) as spool:
        shipper = Shipper(spool, DirectorySink(sink_dir))
        while (outcome := shipper.ship_once(clock.at_s)) is not Outcome.IDLE:
            assert outcome is Outcome.SHIPPED
        if spool.stats().corrupt_segments:
            pytest.fail("a kill left a corrupt segment")
