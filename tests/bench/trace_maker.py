"""A long trace made of the recorded ones: several applications side by side, each one recording after another.

Every recording keeps its own application id, content and pace; only its times are shifted. When it is over,
everything that it left is removed, as if the pod's volume had been emptied, so that it can be played again.
"""

from __future__ import annotations

import gzip
import heapq
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

Row = dict[str, Any]
LANES = 8
"""Applications side by side in one state directory."""

_START_S = 1_700_000_000.0
_PAUSE_S = 1.0


def write_trace(target: Path, traces: Path, operations: int) -> None:
    """Write a trace of exactly so many operations, out of recorded ones."""
    scenarios = sorted(path.parent for path in traces.glob("*/scenario.json"))
    lanes = [_lane(scenarios[number::LANES]) for number in range(LANES)]
    merged = heapq.merge(*lanes, key=lambda row: float(row["t"]))
    with gzip.open(target, "wt", compresslevel=1, encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in islice(merged, operations))


def _lane(scenarios: list[Path]) -> Iterator[Row]:
    now_s = _START_S
    while True:
        for scenario in scenarios:
            for trace in sorted(scenario.glob("trace-*.jsonl.gz")):
                for row in _shifted(trace, now_s):
                    yield row
                    now_s = row["t"] + _PAUSE_S


def _shifted(trace: Path, begin_s: float) -> Iterator[Row]:
    left: dict[str, str] = {}
    now_s, shift_s = begin_s, None
    with gzip.open(trace, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            shift_s = begin_s - row["t"] if shift_s is None else shift_s
            now_s = row["t"] = round(row["t"] + shift_s, 6)
            _note(row, left)
            yield row
    for path in sorted(left, key=lambda x: (x.count("/"), x), reverse=True):
        now_s = round(now_s + 0.001, 6)
        yield {"t": now_s, "op": left[path], "path": path}


def _note(row: Row, left: dict[str, str]) -> None:
    """Keep account of what is on the disk, and how it is removed."""
    op, path = row["op"], row.get("path", "")
    if op in ("create", "mkdir"):
        left[path] = "unlink" if op == "create" else "rmdir"
    elif op in ("unlink", "rmdir"):
        left.pop(path, None)
    elif op == "rename" and path in left:
        left[row["to"]] = left.pop(path)
