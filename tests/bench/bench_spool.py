"""Cost of the spool and of shipping to a directory."""

from __future__ import annotations

import time

from agent.clock import SystemClock
from agent.contract.events import Kind, Origin, Record
from agent.ship.shipper import Outcome, Shipper
from agent.ship.sinks.directory import DirectorySink
from agent.ship.spool import Spool
from agent.ship.values import Limits
from tests.bench.report import Measured, Options

_UNLIMITED = Limits(cap_bytes=1 << 40)
FULL, SMALL = 200_000, 20_000
_ORIGIN = Origin(
    pod_uid="bench-pod", boot_id="bench0", pod="bench", namespace="bench", node="bench", agent_version="bench"
)


def run(options: Options) -> list[Measured]:
    """Append 200,000 records (small: 20,000), sealed and synced as in the agent, then ship them on the same disk."""
    count = FULL if options.full else SMALL
    appended: list[float] = []
    shipped: list[float] = []
    sizes: list[float] = []
    for number in range(options.rounds):
        folder = options.work / str(number)
        spool = Spool(folder / "spool", _ORIGIN, clock=SystemClock(), limits=_UNLIMITED)
        began_s = time.process_time()
        for sequence in range(count):
            spool.append(_record(sequence))
        spool.seal()
        appended.append((time.process_time() - began_s) / count * 1e6)
        sizes.append(spool.stats().bytes / count)
        shipper = Shipper(spool, DirectorySink(folder / "sink"))
        began_s = time.process_time()
        while shipper.ship_once(0.0) is Outcome.SHIPPED:
            pass
        shipped.append((time.process_time() - began_s) / count * 1e6)
        if shipper.stats().shipped_records != count:
            raise RuntimeError(f"{shipper.stats().shipped_records} of {count} records were shipped")
        spool.close()
    return [
        Measured("append and seal, CPU us per record", appended, digits=1),
        Measured("ship to a directory, CPU us per record", shipped, digits=1),
        Measured("spool, bytes per record", sizes, digits=0),
    ]


def _record(sequence: int) -> Record:
    body = {
        "application_id": "bench-app", "process_id": "11111111-2222-4333-8444-555555555555",
        "task_id": f"0_{sequence % 1_000}", "store": None, "segment": None, "source": "inotify",
        "change": "checkpoint-written", "offset_before": sequence - 1, "offset_after": sequence, "puts": sequence,
        "offsets": [{"topic": "bench-app-counts-changelog", "partition": sequence % 1_000, "offset": sequence}],
        "occurred_at_us": 1_700_000_000_000_000 + sequence, "task_incarnation": 1, "held": True,
    }  # fmt: skip
    return Record(Kind.TRANSITION, 1_700_000_000_000_000 + sequence, body)
