"""What the tests of the rollup's sources share: a session that runs commands, and agents' segments in every sink."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.delivery import ShipSettings
from agent.ship.sinks.base import make_sink
from spark_rollup.spark import jars
from tests.delivery import servers

JARS = servers.VENV / "spark-jars"
EACH_S3 = [pytest.param("moto", marks=pytest.mark.heavy), "versitygw"]
"""What takes a minute or more is done beside one make in `make check`, and beside both in `make prove`."""


@dataclass(frozen=True)
class Told:
    """How a command ended."""

    code: int
    out: str
    err: str


class Rollup:
    """Commands of the rollup, in one Spark session of another process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, *arguments: str | Path, claim: Mapping[str, float] | None = None, **hadoop: str) -> Told:
        """Run a command; names of Hadoop's settings have two underscores for a dot."""
        order = {
            "arguments": [str(word) for word in arguments],
            "hadoop": {key.replace("__", "."): value for key, value in hadoop.items()},
            "claim": dict(claim or {}),
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return Told(**json.loads(self._process.stdout.readline()))

    def ingest(self, source: str | Path, bronze: str | Path, *more: str | Path) -> str:
        """Take in; returns what was told."""
        told = self.run("ingest", "--input", source, "--bronze", bronze, *more)
        assert told.code == 0, told.err
        return told.out

    def findings(self, bronze: Path) -> bytes:
        """Audit, and give the findings as they were written."""
        output = bronze.with_name(f"{bronze.name}-out")
        told = self.run("audit", "--input", bronze, "--output", output)
        assert told.code in (0, 1), told.err
        return (output / "findings.jsonl").read_bytes()


def cache(work: Path) -> Path:
    """Make a cache directory, where commands look for jars: what the set-up fetched, not this user's own."""
    (work / "cache" / "statewarden").mkdir(parents=True)
    (work / "cache" / "statewarden" / f"jars-spark-{jars.installed_spark()}").symlink_to(JARS)
    return work / "cache"


@contextmanager
def rollup(log: Path) -> Iterator[Rollup]:
    """Start the session, with the credentials of the tests' object stores in its environment."""
    script = [sys.executable, str(servers.ROOT / "tests/delivery/rollup_session.py")]
    keys = {"AWS_ACCESS_KEY_ID": servers.KEY, "AWS_SECRET_ACCESS_KEY": servers.SECRET}
    with log.open("w") as err:
        process = subprocess.Popen(
            [*script, *(str(JARS / kind) for kind in jars.KINDS)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, text=True,
            env={**os.environ, **keys, "XDG_CACHE_HOME": str(cache(log.parent))},
        )  # fmt: skip
    try:
        yield Rollup(process)
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.wait(120)
        process.stdout.close()


def ship(segments: Sequence[Path], root: Path, ship_to: str, **settings: Any) -> None:
    """Hand segments to the agents' own sink for an address, as their shipper does."""
    sink = make_sink(ship_to, ShipSettings(**settings), None)
    for path in segments:
        name = str(path.relative_to(root)).removesuffix(".jsonl.gz")
        sink.put(name, b"".join(lines(path)))


def lines(segment: Path) -> list[bytes]:
    return gzip.decompress(segment.read_bytes()).splitlines(keepends=True)


def rows(bronze: str | Path, query: str, **storage: str) -> list[Any]:
    """Ask DuckDB, through delta-rs, about the table `events` of bronze."""
    import duckdb
    from deltalake import DeltaTable, QueryBuilder

    table = DeltaTable(f"{bronze}/events", storage_options=dict(storage))
    events = QueryBuilder().register("stored", table).execute("select * from stored")
    with duckdb.connect() as database:
        database.register("events", events)
        return list(database.execute(query).fetchall())


def count(bronze: Path) -> tuple[int, int]:
    ((total, distinct),) = rows(bronze, "select count(*), count(distinct id) from events")
    return int(total), int(distinct)
