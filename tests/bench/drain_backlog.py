"""Drain a spool into a directory, in a process of its own: `drain_backlog.py SPOOL SINK`; prints memory on the way.

Prints JSON: CPU and wall seconds of recovery and of shipping, segments, records, and resident KiB after recovery, at
the middle and at the end. The sink's files are deleted as they come: what counts is this process.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from agent.clock import SystemClock
from agent.contract.events import Origin
from agent.ship.shipper import Outcome, Shipper
from agent.ship.sinks.directory import DirectorySink
from agent.ship.spool import Spool
from agent.ship.values import Limits
from tests.bench.measure import memory

ORIGIN = Origin(pod_uid="bench-pod", boot_id="drain", pod="bench")


def main() -> None:
    """Recover, ship, report."""
    spool_dir, sink_dir = Path(sys.argv[1]), Path(sys.argv[2])
    began = time.process_time(), time.monotonic()
    spool = Spool(spool_dir, ORIGIN, clock=SystemClock(), limits=Limits(cap_bytes=1 << 40))
    recovered = time.process_time(), time.monotonic()
    waiting = spool.stats().segments
    resident = [memory(os.getpid()).rss_kib]
    shipper = Shipper(spool, DirectorySink(sink_dir))
    highest = resident[0]
    while shipper.ship_once(0.0) is Outcome.SHIPPED:
        done = shipper.stats().shipped_segments
        if done % 50 == 0:
            highest = max(highest, memory(os.getpid()).rss_kib)
            for path in sink_dir.rglob("*.jsonl.gz"):
                path.unlink()
        if done == waiting // 2:
            resident.append(memory(os.getpid()).rss_kib)
    shipped = time.process_time(), time.monotonic()
    resident.append(memory(os.getpid()).rss_kib)
    answer = {
        "segments": waiting,
        "records": shipper.stats().shipped_records,
        "recovery_cpu_s": recovered[0] - began[0],
        "recovery_wall_s": recovered[1] - began[1],
        "ship_cpu_s": shipped[0] - recovered[0],
        "ship_wall_s": shipped[1] - recovered[1],
        "resident_kib": resident,
        "highest_kib": highest,
    }
    spool.close()
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
