"""Time and memory of `verify` on a large store, with one value altered, one key removed and one added.

    python tests/verify/scale.py --entries 10000000 --value-bytes 190 [--work DIR]

Needs Kafka's jars (tests/live) and the extra `verify`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.agent.verify.changelog_double import APP, AT_MS, StateDir
from tests.live.processes import Broker

ROOT = Path(__file__).resolve().parents[2]
TOPIC = f"{APP}-kv-changelog"
ALTERED, REMOVED = 7, 11


def rows(entries: int, value_bytes: int) -> Iterator[tuple[bytes, bytes]]:
    """Give keys in their order, and values that do not compress away."""
    for number in range(entries):
        unlike = (number * 0x9E3779B97F4A7C15) & (1 << 64) - 1
        yield b"%012d" % number, (b"%016x" % unlike * (value_bytes // 16 + 1))[:value_bytes]


def produce(broker: Broker, entries: int, value_bytes: int) -> None:
    """Write the changelog."""
    from confluent_kafka import Producer

    broker.do(f"topic {TOPIC} 1 retention.ms=-1")
    producer = Producer(
        {"bootstrap.servers": broker.address, "linger.ms": 50, "queue.buffering.max.messages": 500_000}
    )
    for key, value in rows(entries, value_bytes):
        while True:
            try:
                producer.produce(TOPIC, value, key, timestamp=AT_MS)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


def hold(state: StateDir, entries: int, value_bytes: int) -> None:
    """Write the store: all entries but one, one altered, one more."""
    import rocksdict

    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    store = state.store("kv")
    store.mkdir(parents=True)
    database = rocksdict.Rdict(str(store), options, column_families={"keyValueWithTimestamp": options})
    family = database.get_column_family("keyValueWithTimestamp")
    quick = rocksdict.WriteOptions()
    quick.disable_wal = True
    family.set_write_options(quick)
    at = AT_MS.to_bytes(8, "big")
    for number, (key, value) in enumerate(rows(entries, value_bytes)):
        if number != REMOVED:
            family[key] = at + (value[:-1] + b"!" if number == ALTERED else value)
    family[b"one more"] = at + b"v"
    family.flush()
    database.close()
    state.checkpoint(kv=entries - 1)


def high_water_kib(pid: int) -> int:
    """Give the highest resident memory of a process so far; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def main() -> int:
    """Measure; exit code 1 if the three differences were not found, or more than three."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--value-bytes", type=int, default=16)
    parser.add_argument("--work", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.work) as name:
        broker = Broker(Path(name) / "broker")
        try:
            state = StateDir(Path(name) / "state")
            hold(state, chosen.entries, chosen.value_bytes)
            produce(broker, chosen.entries, chosen.value_bytes)
            size = sum(x.stat().st_size for x in state.store("kv").iterdir())
            command = [sys.executable, "-m", "agent", "verify", str(state.root), "--json", "--work", name]
            began = time.monotonic()
            said = Path(name) / "said"
            with said.open("wb") as out:
                running = subprocess.Popen(
                    [*command, "--bootstrap-servers", broker.address], cwd=ROOT, stdout=out, stderr=out
                )
                peak_kib = 0
                while (
                    running.poll() is None
                ):  # what wait4 says of memory would be this process's, before the exec
                    peak_kib = max(peak_kib, high_water_kib(running.pid))
                    time.sleep(0.1)
            seconds = time.monotonic() - began
            counts = json.loads(said.read_text())["counts"]
        finally:
            broker.stop()
    print(
        f"{chosen.entries} entries, {size >> 20} MiB on disk: {seconds:.1f} s ({chosen.entries / seconds:.0f}/s),"
        f" peak {peak_kib >> 10} MiB; {counts}"
    )
    return int(counts != {"missing": 1, "extra": 1, "different": 1, "equal": chosen.entries - 2})


if __name__ == "__main__":
    sys.exit(main())
