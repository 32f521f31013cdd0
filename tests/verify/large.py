"""A store as large as is asked for, its changelog in a real broker, and what a command takes that reads them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.agent.verify.changelog_double import APP, StateDir
from tests.lab.processes import Broker

ROOT = Path(__file__).resolve().parents[2]
TOPIC = f"{APP}-kv-changelog"
ALTERED, REMOVED = 7, 11
BATCH, WAITING = 10_000, 200_000
SAMPLE_S = 0.1


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
        while running.poll() is None:
            for pid in _family(running.pid):
                seen = _status(pid)
                if seen is not None:
                    name, kib, cpu[pid] = seen
                    peaks[pid] = name, max(kib, peaks.get(pid, ("", 0))[1])
            time.sleep(SAMPLE_S)
    seconds = time.monotonic() - began
    by_name: dict[str, int] = {}
    for name, kib in peaks.values():
        by_name[name] = max(kib, by_name.get(name, 0))
    return Took(running.returncode, seconds, sum(cpu.values()), by_name, out.read_text(), err.read_text())


def _family(pid: int) -> list[int]:
    """Give a process and all that it has started and that run."""
    try:
        started = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return [pid]
    return [pid, *(one for child in started for one in _family(int(child)))]


def _status(pid: int) -> tuple[str, int, float] | None:
    """Read a process's program, highest resident memory in KiB, and CPU seconds; None when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        counted = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    values = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    ticks = int(counted[11]) + int(counted[12])
    kib = int(values.get("VmHWM", "0 kB").split()[0])
    return values["Name"], kib, ticks / os.sysconf("SC_CLK_TCK")
