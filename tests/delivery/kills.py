"""kill -9 of the agent at random points under load, and an account of every event: `make prove ARGS=kill`.

An agent is started, killed after a random time, and started again on the same spool, while Kafka Streams' part (a
loader) rewrites checkpoints. The ledger, kept outside spool and sink, has a line for each record that the spool took.
At the end what the sink holds is fetched, ingested by the rollup, and compared with the ledger.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from agent.contract.codec import event_id  # noqa: E402 - path first
from agent.ship.database import BAD_NAME, DATABASE_NAME  # noqa: E402
from tests.delivery import servers  # noqa: E402
from tests.support.collector import collecting  # noqa: E402

TASKS = 12
LIVES_S = (0.02, 1.6)
"""Shortest and longest life of an agent: from before its spool is open to its second turn of shipping."""

Ingest = Callable[[Path, Path], object]
"""Takes events of a directory into bronze."""

SHIP = "seal_kib = 16\nseal_seconds = 0.2\ntimeout_seconds = 5\nallow_http = true\n"
POD = "kill-pod-uid"
TOPIC = "kills"


@dataclass(frozen=True)
class Place:
    """A sink under test."""

    name: str  # what it is
    ship_to: str  # setting
    ship: str  # more lines of `[ship]`
    fetch: Callable[[Path], Path]  # copies what it holds into a directory that `ingest` reads


@dataclass
class Account:
    """What was found."""

    name: str  # the sink
    kills: int  # how many agents were killed
    boots: int = 0  # how many of them had written a record
    written: int = 0  # records that the spool took, by the ledger
    delivered: int = 0  # events in the sink, copies included
    ingested: int = 0  # rows after the rollup's ingest
    distinct: int = 0  # distinct ids among them
    lost: int = 0  # ids in the ledger that are not among them
    unknown: int = 0  # ids beyond the ledger: at most one per kill, between the append and the ledger's line
    drops: int = 0  # drop records among them: nothing may have been given up
    quarantined: int = 0  # lines or files that the rollup could not use
    seconds: float = 0.0  # how long it took
    sample: list[str] = field(default_factory=list)

    @property
    def duplicates(self) -> int:
        """Rows that are there more than once after the dedupe."""
        return self.ingested - self.distinct

    @property
    def holds(self) -> bool:
        """Whether nothing was lost, doubled, given up or unreadable."""
        faults = (self.lost, self.duplicates, self.drops, self.quarantined, max(0, self.unknown - self.kills))
        return not any(faults) and self.written > 0


class Zygote:
    """Starts recorded agents."""

    def __init__(self, work: Path) -> None:
        self._work = work
        script = [sys.executable, str(ROOT / "tests/delivery/recorded_agent.py")]
        self._process = subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def start(self, *arguments: str) -> int:
        """Start an agent and tell its process id."""
        order = {"ledger": str(self._work / "ledger"), "log": str(self._work / "agent.log")}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"arguments": arguments, **order}) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End; agents that still run are not touched."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(120)
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextmanager
def load(state: Path) -> Iterator[None]:
    """Rewrite checkpoints of some tasks as Kafka Streams does, about 200 times a second."""
    for number in range(TASKS):
        (state / "orders" / f"0_{number}" / "rocksdb" / "counts").mkdir(parents=True)
    (state / "orders" / ".lock").touch()
    stop = threading.Event()

    def write() -> None:
        offset = 0
        while not stop.wait(0.005):
            offset += 1
            task = state / "orders" / f"0_{offset % TASKS}"
            temporary = task / ".checkpoint.tmp"
            temporary.write_text(f"0\n1\norders-counts-changelog {offset % TASKS} {offset}\n")
            temporary.rename(task / ".checkpoint")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def prove(place: Place, work: Path, kills: int, seed: int, ingest: Ingest) -> Account:
    """Kill agents that ship to a place, then account for every event; `ingest` takes in what arrived."""
    began_s = time.monotonic()
    state, spool = work / "state", work / "spool"
    state.mkdir(parents=True)
    config = work / "statewarden.toml"
    config.write_text(f"[ship]\n{SHIP}{place.ship}\n")
    arguments = [
        "run",
        str(state),
        "--spool",
        str(spool),
        "--ship-to",
        place.ship_to,
        "--config",
        str(config),
    ]
    arguments += ["--pod", "kill-pod", "--pod-uid", POD, "--listen", "", "--rescan-seconds", "3600"]
    chance, zygote = random.Random(seed), Zygote(work)
    try:
        with load(state):
            for _ in range(kills):
                pid = zygote.start(*arguments)
                time.sleep(chance.uniform(*LIVES_S))  # the random point is the test
                os.kill(pid, signal.SIGKILL)
                wait_for_end(pid)
        ship_the_rest(zygote, arguments, spool, work / "ledger")
    finally:
        zygote.close()
    account = Account(place.name, kills)
    settle(account, work, place.fetch(work / "fetched"), ingest)
    account.seconds = time.monotonic() - began_s
    return account


def ship_the_rest(zygote: Zygote, arguments: list[str], spool: Path, ledger: Path) -> None:
    """Let a last agent ship what is left, and stop it in order."""
    before = ledger.stat().st_size
    pid = zygote.start(*arguments, "--grace-seconds", "30")
    give_up_at = time.monotonic() + 120
    while ledger.stat().st_size == before:
        if time.monotonic() > give_up_at:
            raise RuntimeError(f"the last agent wrote nothing to {spool}: see agent.log")
        time.sleep(0.05)
    os.kill(pid, signal.SIGTERM)
    wait_for_end(pid)
    with contextlib.closing(sqlite3.connect(spool / DATABASE_NAME)) as database:
        left = database.execute("SELECT DISTINCT batch FROM records").fetchall()
    if left or (spool / BAD_NAME).exists():
        raise RuntimeError(f"the last flush left something: {left}")


def wait_for_end(pid: int, deadline_s: float = 60.0) -> None:
    """Wait until a process is gone; it is the zygote's child, so it cannot be waited for here."""
    give_up_at = time.monotonic() + deadline_s
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() > give_up_at:
            raise RuntimeError(f"process {pid} does not end")
        time.sleep(0.002)


def ingest_alone(fetched: Path, bronze: Path) -> None:
    """Take in by a process of its own."""
    command = ["ingest", "--input", str(fetched), "--bronze", str(bronze)]
    subprocess.run(
        [sys.executable, "-m", "spark_rollup", *command], cwd=ROOT, check=True, capture_output=True
    )


def settle(account: Account, work: Path, fetched: Path, ingest: Ingest) -> None:
    """Ingest what was fetched and compare it with the ledger."""
    import duckdb

    lines = [line.split(" ") for line in (work / "ledger").read_text().splitlines()]
    ledger = {event_id(pod, boot, int(sequence)) for pod, boot, sequence in lines}
    account.written, account.boots = len(ledger), len({boot for _, boot, _ in lines})
    bronze = work / "bronze"
    ingest(fetched, bronze)
    with duckdb.connect() as database:

        def rows(query: str) -> list[Any]:
            return list(database.execute(query).fetchall())

        account.delivered = rows(f"select count(*) from read_json('{fetched}/**/*.jsonl*')")[0][0]
        found = rows(f"select id, kind from read_parquet('{bronze}/events/**/*.parquet')")
        rejected = list((bronze / "quarantine").glob("*.parquet"))
        account.quarantined = sum(rows(f"select count(*) from read_parquet('{x}')")[0][0] for x in rejected)
    ids = {row[0] for row in found}
    account.ingested, account.distinct = len(found), len(ids)
    account.drops = sum(row[1] == "drop" for row in found)
    account.lost, account.unknown = len(ledger - ids), len(ids - ledger)
    account.sample = sorted(ledger - ids)[:5]


@contextmanager
def place_of(name: str, work: Path) -> Iterator[Place]:
    """Set a sink up."""
    work.mkdir(parents=True, exist_ok=True)
    if name == "directory":
        yield Place(name, str(work / "sink"), "", lambda _: work / "sink")
    elif name in ("moto", "versitygw"):
        with getattr(servers, name)(work) as service:
            given = {key: value for key, value in service.ship.items() if key != "allow_http"}
            lines = "".join(f'{key} = "{value}"\n' for key, value in given.items())
            yield Place(name, f"s3://{servers.BUCKET}/kills", lines, partial(fetch_objects, service))
    elif name == "kafka":
        with servers.kafka(work) as broker:
            broker.make_topic(TOPIC)
            yield Place(name, f"kafka://{broker.address}/{TOPIC}", "", partial(fetch_topic, broker))
    else:
        with collecting() as collector:

            def fetch(folder: Path) -> Path:
                folder.mkdir()
                lines = "".join(json.dumps(event) + "\n" for event in collector.events)
                (folder / "collected.jsonl").write_text(lines)
                return folder

            yield Place(name, collector.url, "", fetch)


def fetch_objects(service: servers.S3, folder: Path) -> Path:
    from tests.delivery.conftest import fetched

    return fetched(service, "kills/", folder)


def fetch_topic(broker: servers.Broker, folder: Path) -> Path:
    folder.mkdir()
    (folder / "topic.jsonl").write_bytes(b"".join(value + b"\n" for value in broker.values(TOPIC)))
    return folder


PLACES = ("directory", "moto", "versitygw", "kafka", "http")


def table(accounts: Sequence[Account]) -> str:
    head = "| sink | kills | boots | written | delivered | after ingest | lost | duplicates | beyond ledger |"
    lines = [head, "|---|" + "---:|" * 8]
    for x in accounts:
        cells = (x.kills, x.boots, x.written, x.delivered, x.ingested, x.lost, x.duplicates, x.unknown)
        lines.append(f"| {x.name} | " + " | ".join(f"{cell:,}" for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Prove all places, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("places", nargs="*", choices=[*PLACES, []], help="default: all")
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=20685)
    chosen = parser.parse_args()
    accounts = []
    for name in chosen.places or PLACES:
        if name == "versitygw" and servers.versitygw_binary() is None:
            sys.stdout.write("versitygw: not built here (needs Go), left out\n")
            continue
        with tempfile.TemporaryDirectory(prefix=f"statewarden-kills-{name}-") as folder:
            work = Path(folder)
            with place_of(name, work / "server") as place:
                account = prove(place, work / "agent", chosen.kills, chosen.seed, ingest_alone)
        accounts.append(account)
        verdict = "holds" if account.holds else f"FAILS: {account}"
        sys.stdout.write(f"{name}: {verdict} ({account.seconds:.0f} s)\n")
        sys.stdout.flush()
    sys.stdout.write(table(accounts))
    return int(not all(account.holds for account in accounts))


if __name__ == "__main__":
    sys.exit(main())
