"""Time and cost of `statewarden scan` on many task directories."""

from __future__ import annotations

from tests.bench.measure import ROOT, Finished, run_module, spread
from tests.bench.report import Measured, Options, Section
from tests.bench.tree_maker import make_tree, recorded_store

FULL, SMALL = 10_000, 1_000
TRACE = ROOT / "tests" / "data" / "traces" / "benign-move-3.9.2" / "trace-pod-a.jsonl.gz"
_FOUND_OR_NOT = (0, 1)


def run(options: Options) -> Section:
    """Scan 10,000 task directories (small: 1,000), each with a store that a real release left."""
    tasks = FULL if options.full else SMALL
    root = options.work / "state"
    store = recorded_store(TRACE)
    make_tree(root, tasks, store)
    rounds: dict[str, list[Finished]] = {version.name: [] for version in options.versions}
    for number in range(options.rounds):
        for version in options.versions[:: -1 if number % 2 else 1]:
            done = run_module("agent", "scan", str(root), "--json", expected=_FOUND_OR_NOT, version=version)
            rounds[version.name].append(done)
    scans, before = rounds["after"], rounds.get("before", [])
    idle = [run_module("agent", "detectors") for _ in range(options.rounds)]
    files = len(store.files)
    size_bytes = sum(map(len, store.files.values()))
    return Section(
        "Scan of many tasks",
        f"`statewarden scan --json` as a whole process. Every task has a `.checkpoint` and one store of Kafka Streams"
        f" 3.9.2 ({files} files, {size_bytes:,} bytes). The directory is in the page cache: the tree was just written."
        " CPU is that of all processes of the command, memory that of the one that judges.",
        ("command", "wall s", "CPU s", "peak resident MiB"),
        [
            (
                f"scan of {tasks:,} tasks",
                spread([x.wall_s for x in scans]),
                spread([x.cpu_s for x in scans]),
                spread([x.peak_kib / 1024 for x in scans], 0),
            ),
            (
                "for comparison: `statewarden detectors`",
                spread([x.wall_s for x in idle]),
                spread([x.cpu_s for x in idle]),
                spread([x.peak_kib / 1024 for x in idle], 0),
            ),
        ],
        measured=[
            Measured(
                f"scan of {tasks:,} tasks, wall s",
                [x.wall_s for x in scans],
                [x.wall_s for x in before],
                goal="scan" if tasks == FULL else None,
            ),
            Measured("scan, CPU s", [x.cpu_s for x in scans], [x.cpu_s for x in before]),
            Measured(
                "scan, peak resident MiB of its process",
                [x.peak_kib / 1024 for x in scans],
                [x.peak_kib / 1024 for x in before],
                digits=0,
            ),
        ],
    )
