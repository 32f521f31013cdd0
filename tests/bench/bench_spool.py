"""Throughput of the spool and of shipping to a directory, and a backlog that drains without growing memory."""

from __future__ import annotations

import json
import time

from agent.clock import SystemClock
from agent.contract.events import Kind, Origin, Record
from agent.ship.shipper import Outcome, Shipper
from agent.ship.sinks.directory import DirectorySink
from agent.ship.spool import Spool
from agent.ship.values import Limits
from tests.bench.measure import run_module, spread
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
        " then shipped to a directory on the same disk."
        f" Then a backlog of {_mib(_backlog_bytes(options))} that an earlier agent left is drained by a fresh process.",
        ("step", "records per CPU s", "records per wall s", "CPU microseconds per record"),
        [
            _row("append and seal", count, appended),
            _row("ship", count, shipped),
            *(drained := _drain(options))[0],
        ],
        [f"In the spool a record takes {sizes[0] / count:.0f} bytes.", drained[1]],
    )


def _backlog_bytes(options: Options) -> int:
    return 1 << 30 if options.full else 32 << 20


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 20):,.0f} MiB"


def _drain(options: Options) -> tuple[list[tuple[str, ...]], str]:
    """Leave a backlog as a killed agent would, and let another process drain it, once."""
    folder = options.work / "backlog"
    spool = Spool(folder / "spool", _ORIGIN, clock=SystemClock(), limits=_UNLIMITED)
    sequence = 0
    while spool.stats().bytes < _backlog_bytes(options) if sequence % 1_000 == 0 else True:
        spool.append(_record(sequence))
        sequence += 1
    spool.close()
    told = run_module("tests.bench.drain_backlog", str(folder / "spool"), str(folder / "sink"))
    found = json.loads(told.output)
    if found["records"] != sequence:
        raise RuntimeError(f"{found['records']} of {sequence} records were shipped")
    recovery = [(found["recovery_cpu_s"], found["recovery_wall_s"])]
    shipping = [(found["ship_cpu_s"], found["ship_wall_s"])]
    start, middle, end = (f"{kib / 1024:.1f}" for kib in found["resident_kib"])
    note = (
        f"Backlog: {sequence:,} records in {found['segments']:,} segments. Resident memory of the draining process:"
        f" {start} MiB after its start, {middle} MiB half-way, {end} MiB at the end, {found['highest_kib'] / 1024:.1f}"
        f" MiB at most while shipping, {told.peak_kib / 1024:.1f} MiB at its peak, recovery included."
    )
    return [
        _row("recover the backlog", sequence, recovery),
        _row("drain the backlog", sequence, shipping),
    ], note


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
