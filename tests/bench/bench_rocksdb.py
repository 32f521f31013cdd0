"""Cost of reading status, offsets and counters of many stores, side by side with rocksdict, which reads less."""

from __future__ import annotations

import json
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from agent.observe.kernel_disk import KernelDisk
from agent.observe.rocksdb.cache import SstCache
from agent.observe.rocksdb.coding import Unread
from agent.observe.rocksdb.store import read_store
from tests.bench.measure import ROOT, run_child, spread
from tests.bench.report import Measured, Options
from tests.bench.tree_maker import recorded_store

STORES = 1_000
TRACE = ROOT / "tests" / "data" / "traces" / "benign-restart-alos-4.3.1" / "trace-pod-a.jsonl.gz"


def run(options: Options) -> list[Measured]:
    """Read 1,000 copies of a store of Kafka Streams 4.3, in the page cache; rocksdict opens each read-only."""
    root = options.work / "stores"
    store = recorded_store(TRACE)
    for number in range(STORES):
        (root / f"{number:04d}").mkdir(parents=True)
        for name, content in store.files.items():
            (root / f"{number:04d}" / name).write_bytes(content)
    own = [_read_all(KernelDisk(root)) for _ in range(options.rounds)]
    measured = [Measured("reading a store, CPU ms", [x / STORES * 1_000 for x in own], digits=3)]
    if find_spec("rocksdict") is None:
        sys.stderr.write("SKIPPED: no comparison, rocksdict: make setup-delivery\n")
        return measured
    peer = [_ask_rocksdict(root) for _ in range(options.rounds)]
    ratios = [mine / other for mine, other in zip(own, peer, strict=True)]
    per_store = f"rocksdict {spread([x / STORES * 1_000 for x in peer])} ms, offsets only"
    return [
        *measured,
        Measured("reading a store, CPU, times rocksdict's", ratios, peer=per_store, goal="rocksdb"),
    ]


def _read_all(disk: KernelDisk) -> float:
    began_s, cache = time.process_time(), SstCache()
    for number in range(STORES):
        facts = read_store(disk, f"{number:04d}", cache)
        if isinstance(facts, Unread) or facts.offsets is None or facts.offsets.status is None:
            raise RuntimeError(f"store {number} could not be read: {facts}")
    return time.process_time() - began_s


def _ask_rocksdict(root: Path) -> float:
    peer = str(Path(__file__).with_name("ask_rocksdict.py"))
    answer = json.loads(run_child(sys.executable, peer, str(root)).output)
    if answer["entries"] < STORES:
        raise RuntimeError("rocksdict found stores without offsets")
    return float(answer["cpu_s"])
