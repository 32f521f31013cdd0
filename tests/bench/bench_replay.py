"""Throughput and memory of `replay` on a long trace."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from agent.engine.pipeline import Pipeline
from agent.inventory.settings import SettingsBook
from agent.replay.memory_disk import MemoryDisk
from agent.replay.run import first_time_us, replay
from agent.replay.trace import read_trace
from tests.bench.measure import ROOT, run_module, spread
from tests.bench.report import Measured, Options, Section
from tests.bench.trace_maker import LANES, write_trace
from tests.bench.versions import AFTER

FULL, SMALL = 1_000_000, 100_000
TRACES = ROOT / "tests" / "data" / "traces"


def run(options: Options) -> Section:
    """Replay a trace of 1,000,000 operations (small: 100,000) in a process of its own."""
    operations = FULL if options.full else SMALL
    halves = (operations // 2, operations)
    files = [options.work / f"trace-{count}.jsonl.gz" for count in halves]
    for file, count in zip(files, halves, strict=True):
        write_trace(file, TRACES, count)
    rows: list[tuple[str, ...]] = []
    measured: list[Measured] = []
    for file, count in zip(files, halves, strict=True):
        told: dict[str, list[dict[str, float]]] = {version.name: [] for version in options.versions}
        for number in range(options.rounds):
            for version in options.versions[:: -1 if number % 2 else 1]:
                if version is AFTER or count == operations:  # the older one's growth is of no interest
                    done = run_module(__name__, str(file), version=version)
                    told[version.name].append(json.loads(done.output) | {"peak_kib": done.peak_kib})
        rounds, before = told[AFTER.name], told.get("before", [])
        if count == operations:
            measured = [
                Measured(
                    "replay, operations per CPU second",
                    [count / x["replay_s"] for x in rounds],
                    [count / x["replay_s"] for x in before],
                    f"decompressing and parsing alone {spread([count / x['read_s'] for x in rounds], 0)}",
                    "replay",
                    0,
                ),
                Measured(
                    "replay, peak resident MiB",
                    [x["peak_kib"] / 1024 for x in rounds],
                    [x["peak_kib"] / 1024 for x in before],
                    digits=0,
                ),
            ]
        rows.append(
            (
                f"{count:,} operations",
                spread([count / x["replay_s"] for x in rounds], 0),
                spread([count / x["read_s"] for x in rounds], 0),
                spread([x["peak_kib"] / 1024 for x in rounds], 0),
                f"{rounds[0]['findings']:,}",
            )
        )
    return Section(
        "Replay of a long trace",
        f"The recorded scenarios played one after another in {LANES} applications side by side, until the trace has"
        " the stated number of operations; per CPU second of one core, gzip and JSON included. `reading alone` is"
        " the part that decompresses and parses and looks at nothing. Memory must not grow with the length.",
        ("trace", "operations/s", "reading alone, operations/s", "peak resident MiB", "findings"),
        rows,
        measured=measured,
    )


def measure(trace: Path) -> dict[str, float]:
    """Replay one trace here, and read it once without looking."""
    began_s = time.process_time()
    disk = MemoryDisk()
    pipeline = Pipeline(disk, SettingsBook(), first_time_us(trace), lambda record: None)
    replay(trace, pipeline, disk, 0)
    replay_s = time.process_time() - began_s
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began_s = time.process_time()
    for _ in read_trace(trace):
        pass
    read_s = time.process_time() - began_s
    findings = len(pipeline.ledger.findings())
    return {"replay_s": replay_s, "read_s": read_s, "peak_kib": peak_kib, "findings": findings}


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]))))
