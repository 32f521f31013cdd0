"""Throughput and memory of `replay` on a long trace."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from agent.engine.pipeline import Pipeline
from agent.inventory.settings import SettingsBook
from agent.replay.memory_disk import MemoryDisk
from agent.replay.run import first_time_us, replay
from agent.replay.trace import read_trace
from tests.bench.measure import ROOT, run_module, spread
from tests.bench.report import Measured, Options, compared
from tests.bench.trace_maker import write_trace
from tests.bench.versions import Version

FULL, SMALL = 1_000_000, 100_000
TRACES = ROOT / "tests" / "data" / "traces"


def run(options: Options) -> list[Measured]:
    """Replay a trace of 1,000,000 operations (small: 100,000) in a process of its own; gzip and JSON included."""
    count, file = FULL if options.full else SMALL, options.work / "trace.jsonl.gz"
    write_trace(file, TRACES, count)

    def play(version: Version) -> dict[str, Any]:
        done = run_module(__name__, str(file), version=version)
        return json.loads(done.output) | {"peak_kib": done.peak_kib}

    told = options.each(play)
    peer = f"decompressing and parsing alone {spread([count / x['read_s'] for x in told['after']], 0)}"
    return [
        compared(
            "replay, operations per CPU second", told, lambda x: count / x["replay_s"], "replay", 0, peer
        ),
        compared("replay, peak resident MiB", told, lambda x: x["peak_kib"] / 1024, digits=0),
    ]


def measure(trace: Path) -> dict[str, float]:
    """Replay one trace here, and read it once without looking; CPU seconds."""
    began_s = time.process_time()
    disk = MemoryDisk()
    replay(trace, Pipeline(disk, SettingsBook(), first_time_us(trace), lambda record: None), disk, 0)
    replayed_s = time.process_time()
    for _ in read_trace(trace):
        pass
    return {"replay_s": replayed_s - began_s, "read_s": time.process_time() - replayed_s}


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]))))
