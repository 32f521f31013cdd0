"""Time and cost of `statewarden scan` on many task directories, as a whole process."""

from __future__ import annotations

from tests.bench.measure import ROOT, run_module
from tests.bench.report import Measured, Options, compared
from tests.bench.tree_maker import make_tree, recorded_store

FULL, SMALL = 10_000, 1_000
TRACE = ROOT / "tests" / "data" / "traces" / "benign-move-3.9.2" / "trace-pod-a.jsonl.gz"
_ENDS = (0, 1, 3)  # 3: nothing is told, and something depends on it


def run(options: Options) -> list[Measured]:
    """Scan 10,000 task directories (small: 1,000), each with a store that a real release left, from the page cache."""
    tasks, root = FULL if options.full else SMALL, options.work / "state"
    make_tree(root, tasks, recorded_store(TRACE))
    scans = options.each(
        lambda version: run_module("agent", "scan", str(root), "--json", expected=_ENDS, version=version)
    )
    goal = "scan" if options.full else None
    return [
        compared(f"scan of {tasks:,} tasks, wall s", scans, lambda x: x.wall_s, goal),
        compared("scan, CPU s", scans, lambda x: x.cpu_s),
        compared("scan, peak resident MiB", scans, lambda x: x.peak_kib / 1024, digits=0),
    ]
