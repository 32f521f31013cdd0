"""Throughput of the spool and of shipping to a directory."""

from __future__ import annotations

import time

from agent.clock import SystemClock
from agent.contract.events import Kind, Origin, Record
from agent.ship.shipper import Outcome, Shipper
from agent.ship.sinks.directory import DirectorySink
from agent.ship.spool import Spool
from agent.ship.values import Limits
from tests.bench.measure import spread
from tests.bench.report import Options, Section

_UNLIMITED = Limits(cap_bytes=1 << 40)
FULL, SMALL = 200_000, 20_000
_ORIGIN = Origin(
    pod_uid="bench-pod", boot_id="bench0", pod="bench", namespace="bench", node="bench", agent_version="bench"
)


def run(options: Options) -> Section:
    """Append 200,000 records (small: 20,000), then ship them."""
    count = FULL if options.full else SMALL
    appended, shipped, sizes = [], [], []
    for number in range(options.rounds):
        folder = options.work / str(number)
        spool = Spool(folder / "spool", _ORIGIN, clock=SystemClock(), limits=_UNLIMITED)
        began = time.process_time(), time.monotonic()
        for sequence in range(count):
            spool.append(_record(sequence))
        spool.seal()
        appended.append((time.process_time() - began[0], time.monotonic() - began[1]))
        sizes.append(spool.stats().bytes)
        shipper = Shipper(spool, DirectorySink(folder / "sink"))
        began = time.process_time(), time.monotonic()
        while shipper.ship_once(0.0) is Outcome.SHIPPED:
            pass
        shipped.append((time.process_time() - began[0], time.monotonic() - began[1]))
        if shipper.stats().shipped_records != count:
            raise RuntimeError(f"{shipper.stats().shipped_records} of {count} records were shipped")
        spool.close()
    return Section(
        "Spool and directory sink",
        f"{count:,} checkpoint transitions through the spool, sealed at its default size and synced as in the agent;"
        " then shipped to a directory on the same disk.",
        ("step", "records per CPU s", "records per wall s", "CPU microseconds per record"),
        [
            _row("append and seal", count, appended),
            _row("ship", count, shipped),
        ],
        [f"In the spool a record takes {sizes[0] / count:.0f} bytes."],
    )


def _row(name: str, count: int, times: list[tuple[float, float]]) -> tuple[str, ...]:
    return (
        name,
        spread([count / cpu_s for cpu_s, _ in times], 0),
        spread([count / wall_s for _, wall_s in times], 0),
        spread([cpu_s / count * 1e6 for cpu_s, _ in times], 1),
    )


def _record(sequence: int) -> Record:
    task = f"0_{sequence % 1_000}"
    body = {
        "application_id": "bench-app",
        "process_id": "11111111-2222-4333-8444-555555555555",
        "task_id": task,
        "store": None,
        "segment": None,
        "source": "inotify",
        "change": "checkpoint-written",
        "offsets": [
            {"topic": "bench-app-counts-changelog", "partition": sequence % 1_000, "offset": sequence}
        ],
        "offset_before": sequence - 1,
        "offset_after": sequence,
        "puts": sequence,
        "occurred_at_us": 1_700_000_000_000_000 + sequence,
        "task_incarnation": 1,
        "held": True,
    }
    return Record(Kind.TRANSITION, 1_700_000_000_000_000 + sequence, body)
