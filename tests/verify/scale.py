"""Time and memory of `verify` and `digest` on a large store, and of comparing its digests with changelogs on Spark.

    python tests/verify/scale.py --entries 10000000 --value-bytes 190 [--work DIR]
    python tests/verify/scale.py --entries 10000000 --value-bytes 16 --digests 1,3,10 --tasks 1,3 [--heap 1g]

One value is altered, one key removed and one added. Each of `--digests` is a number of copies, each of another
partition with as many records; each of `--tasks` a number of tasks that one process compares with `verify`. All
partitions have the same records, and all tasks the same store.

Needs Kafka's jars (tests/lab) and the extra `verify`; with `--digests` what tests/delivery needs, too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.agent.verify.changelog_double import APP, StateDir
from tests.delivery import rollups
from tests.lab.processes import Broker

ROOT = Path(__file__).resolve().parents[2]
TOPIC = f"{APP}-kv-changelog"
ALTERED, REMOVED = 7, 11
BATCH, WAITING = 10_000, 200_000
SAMPLE_S = 0.1
PLANTED = {"missing": 1, "extra": 1, "different": 1}


def rows(entries: int, value_bytes: int) -> Iterator[tuple[bytes, bytes]]:
    """Give keys in their order, and values that cannot be compressed: the same ones every time."""
    chosen = random.Random(entries)
    for number in range(entries):
        yield b"%012d" % number, chosen.randbytes(value_bytes)


def produce(broker: Broker, entries: int, value_bytes: int, partitions: int) -> None:
    """Write the changelog: the same records into every partition."""
    from confluent_kafka import Producer

    broker.do(f"topic {TOPIC} {partitions} retention.ms=-1")
    limits = {"queue.buffering.max.messages": 2 * WAITING, "queue.buffering.max.kbytes": 1 << 20}
    producer = Producer(
        {"bootstrap.servers": broker.address, "linger.ms": 50, "batch.size": 1 << 19, **limits}
    )
    batch: list[dict[str, object]] = []
    for number, (key, value) in enumerate(rows(entries, value_bytes), 1):
        batch.append({"key": key, "value": value})
        if len(batch) < BATCH and number < entries:
            continue
        for partition in range(partitions):
            while len(producer) > WAITING:
                producer.poll(0.1)
            if producer.produce_batch(TOPIC, batch, partition=partition) != len(batch):
                raise RuntimeError("the producer's queue is full")
        batch = []
    producer.flush()


def hold(state: StateDir, entries: int, value_bytes: int) -> None:
    """Write the store of the task, one without times: all entries but one, one altered, one more."""
    import rocksdict

    store = state.store("kv")
    store.mkdir(parents=True)
    database = rocksdict.Rdict(str(store), rocksdict.Options(raw_mode=True))
    quick = rocksdict.WriteOptions()
    quick.disable_wal = True
    database.set_write_options(quick)
    for number, (key, value) in enumerate(rows(entries, value_bytes)):
        if number != REMOVED:
            database[key] = value[:-1] + bytes([value[-1] ^ 1]) if number == ALTERED else value
    database[b"one more"] = b"v"
    database.flush()
    database.close()
    state.checkpoint(kv=entries - 1)


def add_task(state: StateDir, number: int) -> None:
    """Give the state directory one more task with the same store; its files are links to the first one's."""
    store = state.task.with_name(f"0_{number}") / "rocksdb" / "kv"
    store.mkdir(parents=True)
    for file in state.store("kv").iterdir():
        os.link(file, store / file.name)
    checkpoint = (state.task / ".checkpoint").read_text()
    (store.parents[1] / ".checkpoint").write_text(checkpoint.replace(f"{TOPIC} 0 ", f"{TOPIC} {number} "))


@dataclass(frozen=True)
class Took:
    """What a command took, and what it said."""

    code: int  # its exit code
    seconds: float  # elapsed time
    cpu_s: float  # CPU time of it and of every process that it started
    peak_kib: Mapping[str, int]
    """Highest resident memory of any of these processes, by program: `java`, `python`, ."""
    out: str  # standard output
    err: str  # standard error

    def __str__(self) -> str:
        """Say it in a line."""
        peaks = ", ".join(
            f"{name} {kib >> 10} MiB" for name, kib in sorted(self.peak_kib.items()) if kib > 10_240
        )
        return f"{self.seconds:.1f} s, {self.cpu_s:.1f} s of CPU, peak {peaks}"


def measured(command: Sequence[str], work: Path, environment: Mapping[str, str]) -> Took:
    """Run a command and watch it, and all that it starts, until it ends."""
    out, err = work / "said", work / "said.err"
    cpu: dict[int, float] = {}
    peaks: dict[int, tuple[str, int]] = {}
    began = time.monotonic()
    with out.open("wb") as to_out, err.open("wb") as to_err:
        running = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=ROOT,
            stdout=to_out,
            stderr=to_err,
            env={**os.environ, **environment},
        )
        # what wait4 says of memory would be this process's, before the exec
        root = psutil.Process(running.pid)
        while running.poll() is None:
            for one in (root, *root.children(recursive=True)):
                with suppress(psutil.Error, OSError):  # it has ended
                    status = Path(f"/proc/{one.pid}/status").read_text()
                    kib = int(status.partition("VmHWM:")[2].partition("kB")[0] or 0)
                    used = one.cpu_times()
                    cpu[one.pid] = used.user + used.system
                    peaks[one.pid] = one.name(), max(kib, peaks.get(one.pid, ("", 0))[1])
            time.sleep(SAMPLE_S)
    seconds = time.monotonic() - began
    by_name: dict[str, int] = {}
    for name, kib in peaks.values():
        by_name[name] = max(kib, by_name.get(name, 0))
    return Took(running.returncode, seconds, sum(cpu.values()), by_name, out.read_text(), err.read_text())


class Scale:
    """One store, one topic, and what was measured and found wrong."""

    def __init__(self, work: Path, broker: Broker, entries: int) -> None:
        """Take the place for the store; nothing is written yet."""
        self.state = StateDir(work / "state")
        self.wrong: list[str] = []
        self._work = work
        self._broker = broker
        self._entries = entries
        self._tasks = 1

    def digest(self, copies: int) -> Path:
        """Make the digest of the store; gives the directory with it and those of copies of other partitions."""
        folder = self._work / "digests"
        folder.mkdir()
        made = folder / "0.jsonl"
        took = measured(["agent", "digest", str(self.state.root), "--output", str(made)], self._work, {})
        self._say(f"digest: {took}; {made.stat().st_size >> 10} KiB", took.code == 0, took)
        line = json.loads(made.read_text())
        for number in range(1, copies):
            (whole,) = line["digests"]
            own = {"task_id": f"0_{number}", "digests": [whole | {"partition": number}]}
            other = line | own
            (folder / f"{number}.jsonl").write_text(json.dumps(other) + "\n")
        return folder

    def verify(self, tasks: int) -> None:
        """Compare so many tasks, one after the other in one process, with their changelogs."""
        for number in range(self._tasks, tasks):
            add_task(self.state, number)
        self._tasks = max(tasks, self._tasks)
        command = ["agent", "verify", str(self.state.root), "--json", "--work", str(self._work)]
        took = measured([*command, "--bootstrap-servers", self._broker.address], self._work, {})
        counts = [json.loads(line)["counts"] for line in took.out.splitlines()]
        self._say(
            f"verify, {tasks} tasks: {took}; {self._rate(tasks, took)}; {counts[:1]}",
            counts == [PLANTED | {"equal": self._entries - 2}] * tasks,
            took,
        )

    def spark(self, digests: Path, copies: int, heap: str | None) -> None:
        """Compare so many digests with their changelogs on Spark."""
        chosen = self._work / f"digests-{copies}"
        chosen.mkdir()
        for number in range(copies):
            (chosen / f"{number}.jsonl").symlink_to(digests / f"{number}.jsonl")
        output = self._work / f"out-{copies}"
        command = ["spark_rollup", "verify", "--digests", str(chosen), "--kafka", self._broker.address]
        command += ["--spark-conf", f"spark.local.dir={self._work}"]
        command += ["--spark-conf", f"spark.driver.memory={heap}"] if heap else []
        environment = {"XDG_CACHE_HOME": str(self._work / "cache")}
        took = measured([*command, "--output", str(output)], self._work, environment)
        rows: Sequence[dict[str, object]] = (
            [json.loads(line) for line in (output / "verdicts.jsonl").read_text().splitlines()]
            if took.code in (0, 1)
            else []
        )
        found = [{name: row[name] for name in PLANTED} for row in rows]
        self._say(
            f"Spark, {copies} digests: {took}; {self._rate(copies, took)}; {[x['verdict'] for x in rows]} {found[:1]}",
            found == [PLANTED] * copies,
            took,
        )

    def _rate(self, stores: int, took: Took) -> str:
        return f"{stores * self._entries / took.seconds:.0f} records/s"

    def _say(self, line: str, is_good: bool, took: Took) -> None:
        print(f"{time.strftime('%H:%M:%S')} {'ok ' if is_good else 'BAD'} {line}", flush=True)
        if not is_good:
            self.wrong.append(line)
            print(took.code, took.out[-2000:], took.err[-2000:], flush=True)


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",") if word]


def main() -> int:
    """Measure; exit code 1 if the three differences were not found, or more than three."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--value-bytes", type=int, default=16)
    parser.add_argument("--tasks", type=_numbers, default=[1])
    parser.add_argument("--digests", type=_numbers, default=[])
    parser.add_argument("--heap", help="heap of Spark's driver, such as 1g; default: the rollup's own")
    parser.add_argument("--work", type=Path)
    chosen = parser.parse_args()
    parts = max([*chosen.tasks, *chosen.digests, 1])
    with tempfile.TemporaryDirectory(dir=chosen.work) as name:
        work = Path(name)
        broker = Broker(work / "broker")
        try:
            scale = Scale(work, broker, chosen.entries)
            began = time.monotonic()
            hold(scale.state, chosen.entries, chosen.value_bytes)
            held_s = time.monotonic() - began
            produce(broker, chosen.entries, chosen.value_bytes, parts)
            made_s = time.monotonic() - began - held_s
            size = sum(x.stat().st_size for x in scale.state.store("kv").iterdir())
            print(
                f"{chosen.entries} entries, {size >> 20} MiB on disk, written in {held_s:.0f} s;"
                f" {parts} partitions with as many records in {made_s:.0f} s",
                flush=True,
            )
            if chosen.digests:
                rollups.cache(work)
            digests = scale.digest(parts)
            for tasks in chosen.tasks:
                scale.verify(tasks)
            for copies in chosen.digests:
                scale.spark(digests, copies, chosen.heap)
        finally:
            broker.stop()
    return int(bool(scale.wrong))


if __name__ == "__main__":
    sys.exit(main())
