"""Cost of reading status and offsets of many stores, side by side with rocksdict."""

from __future__ import annotations

import json
import statistics
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from agent.observe.kernel_disk import KernelDisk
from agent.observe.rocksdb.cache import SstCache
from agent.observe.rocksdb.reading import Unread
from agent.observe.rocksdb.store import read_store
from tests.bench.measure import ROOT, run_child, spread
from tests.bench.report import Measured, Options, Section
from tests.bench.tree_maker import recorded_store

STORES = 1_000
TRACE = ROOT / "tests" / "data" / "traces" / "benign-restart-alos-4.3.1" / "trace-pod-a.jsonl.gz"


def run(options: Options) -> Section:
    """Read 1,000 copies of a store of Kafka Streams 4.3."""
    root = options.work / "stores"
    _make_stores(root)
    disk = KernelDisk(root)
    cold, cached, lean = [], [], []
    for _ in range(options.rounds):
        cache = SstCache(STORES * len(list((root / "0000").glob("*.sst"))))
        cold.append(_read_all(disk, cache))
        cached.append(_read_all(disk, cache))
        lean.append(_read_all(disk, SstCache(), with_counters=False))
    rows = [
        _row("agent, nothing known", cold, cold),
        _row("agent, SST files known", cached, cold),
        _row("agent, status and offsets only", lean, cold),
    ]
    notes, measured = [], []
    if find_spec("rocksdict") is None:
        notes.append("SKIPPED: no comparison, rocksdict: make setup-delivery")
    else:
        peer = [_ask_rocksdict(root) for _ in range(options.rounds)]
        rows.append(_row("rocksdict, offsets only", peer, cold))
        ratios = [own / other for own, other in zip(cold, peer, strict=True)]
        per_store = f"rocksdict {spread([x / STORES * 1_000 for x in peer])} ms, offsets only"
        measured.append(Measured("reading a store, CPU, times rocksdict's", ratios, (), per_store, "rocksdb"))
    return Section(
        "Reading RocksDB",
        f"Status, offsets and counters of {STORES:,} stores of Kafka Streams 4.3, files in the page"
        " cache. The agent reads without writing; rocksdict opens each store read-only and reads the same family,"
        " which leaves a LOG in every directory.",
        ("reader", "CPU ms per store", "ratio"),
        rows,
        notes,
        measured,
    )


def _make_stores(root: Path) -> None:
    store = recorded_store(TRACE)
    for number in range(STORES):
        directory = root / f"{number:04d}"
        directory.mkdir(parents=True)
        for name, content in store.files.items():
            (directory / name).write_bytes(content)


def _read_all(disk: KernelDisk, cache: SstCache, *, with_counters: bool = True) -> float:
    began_s = time.process_time()
    for number in range(STORES):
        facts = read_store(disk, f"{number:04d}", cache, with_counters=with_counters)
        if isinstance(facts, Unread) or facts.offsets is None or facts.offsets.status is None:
            raise RuntimeError(f"store {number} could not be read: {facts}")
    return time.process_time() - began_s


def _ask_rocksdict(root: Path) -> float:
    answer = json.loads(
        run_child(sys.executable, str(Path(__file__).with_name("ask_rocksdict.py")), str(root)).output
    )
    if answer["entries"] < STORES:
        raise RuntimeError("rocksdict found stores without offsets")
    return float(answer["cpu_s"])


def _row(name: str, times: list[float], base: list[float]) -> tuple[str, ...]:
    ratio = statistics.median(times) / statistics.median(base)
    return name, spread([x / STORES * 1_000 for x in times], 3), f"{ratio:.2f} x"
