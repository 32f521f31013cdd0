"""The fleet audit on simulated fleets of growing size: cost, growth, memory, the next quarter of an hour.

Each size in a process of its own, on `local[2]` with 4 GiB for the driver. CPU is told beside wall time: machines are
shared. One size by hand: `python tests/bench/bench_rollup.py WORK --size '{"pods": 200, "together": 200}'`, here with
one hot application instead of ten.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from spark_rollup import audit  # noqa: E402 - path first
from spark_rollup.bronze.store import read_events  # noqa: E402
from spark_rollup.config import AuditOptions  # noqa: E402
from spark_rollup.intake import ingest  # noqa: E402
from spark_rollup.spark import needs  # noqa: E402
from spark_rollup.spark.session import build_session  # noqa: E402
from tests.bench import fleet, hand_written  # noqa: E402
from tests.bench.goals import GOALS  # noqa: E402
from tests.bench.measure import cpu_seconds  # noqa: E402
from tests.bench.report import Measured, Options  # noqa: E402

Result = TypeVar("Result")

SMALL = (fleet.Size(hours=0.25), fleet.Size(hours=2))
FULL = (fleet.Size(pods=950, hours=4), fleet.Size(pods=950, hours=40))
"""About 15,000 and 60,000 events; 5 and 50 million: idle pods beside copies of recorded scenarios."""

STRAIGHT_FROM = 1_000_000
"""From this many events on the idle pods go straight into bronze: JSON for all of them would take hours."""

CONSTANT_BELOW = 30_000
"""An audit of fewer events costs what any audit does."""

CORES, MEMORY = 2, "4GB"


def run(options: Options) -> list[Measured]:
    """Audit simulated fleets, each size once in a process of its own, smallest first; Spark's start is not counted.

    Then 1/96 of a day's events more is taken in.
    """
    results: list[Mapping[str, float]] = []
    for number, size in enumerate(FULL if options.full else SMALL):
        words = (__file__, str(options.work / str(number)), "--size", json.dumps(asdict(size)))
        done = subprocess.run(
            (sys.executable, *words), cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True
        )
        results.append(json.loads(done.stdout.splitlines()[-1]))
    first, last = results[0], results[-1]
    growth = math.log(last["audit_cpu_s"] / first["audit_cpu_s"]) / math.log(last["events"] / first["events"])
    told = [
        Measured("audit, exponent of CPU by events, constant part included", [growth], goal="audit-growth")
    ]
    for one in results:
        of = f"{one['events']:,.0f} events"
        constant = "audit-constant" if one["events"] < CONSTANT_BELOW else None
        told += [
            Measured(f"audit of {of}, CPU s", [one["audit_cpu_s"]], goal=constant, digits=1),
            Measured(f"audit of {of}, peak MiB of Java", [one["peak_mib"]], digits=0),
            Measured(
                f"{one['slice_events']:,.0f} events more after {of}, CPU s", [one["slice_cpu_s"]], digits=1
            ),
        ]
        if "hand_cpu_s" in one:
            goal = f"rules-{round(one['events'] / 5e6) * 5}"
            by_hand = one["hand_facts_cpu_s"] + one["hand_cpu_s"]
            differ, found = [one["rules_different"]], f"{one['rules_findings']:.0f} findings by hand"
            told += [
                Measured(f"two rules, {of}, findings that differ", differ, peer=found, goal="rules-equal", digits=0),
                Measured(
                    f"two rules, {of}, CPU, times DuckDB's", [one["rules_cpu_s"] / by_hand],
                    peer=f"DuckDB {by_hand:.1f} CPU s", goal=goal if goal in GOALS else None, digits=1,
                ),
            ]  # fmt: skip
        else:
            sys.stderr.write("SKIPPED: no second opinion, duckdb: make setup-delivery\n")
    return told


def measure(spark: SparkSession, size: fleet.Size, work: Path, *, taken: bool = False) -> dict[str, float]:
    """Measure one size; seconds of wall time and of CPU, and the peak resident memory of the driver's Java.

    `taken`: WORK/bronze is there already.
    """
    bronze = work / "bronze"
    if not taken:
        make(spark, size, work)
    meter = Meter(spark)
    result = meter.timed("audit", lambda: audit.run(spark, AuditOptions(bronze, work / "out")))
    sys.stderr.write(f"{len(result.findings)} findings\n")
    meter.seconds["events"] = read_events(spark, bronze).count()
    by_hand = (
        hand_written.measure(spark, work, meter.timed, meter.seconds, (CORES, MEMORY))
        if find_spec("duckdb")
        else {}
    )
    _slice(spark, size, work, meter)
    return {**meter.seconds, "peak_mib": _peak_mib(spark), **by_hand}


def make(spark: SparkSession, size: fleet.Size, work: Path) -> None:
    events = size.pods * (size.tasks + 2) * size.hours * 60
    straight = events >= STRAIGHT_FROM
    shapes = fleet.write(spark, size, work / "raw", idle=not straight)
    for wave in (0, 1):
        ingest.run(spark, work / "raw" / "events" / f"wave={wave}", work / "bronze")
        if straight:
            fleet.fill(spark, shapes, size, work / "bronze", wave)


class Meter:
    """Seconds of wall time and of the driver's CPU, by name."""

    def __init__(self, spark: SparkSession) -> None:
        """Find the driver's Java."""
        self.pid = int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
        self.seconds: dict[str, float] = {}

    def timed(self, name: str, work: Callable[[], Result]) -> Result:
        """Do something and note what it cost as `<name>_s` and `<name>_cpu_s`."""
        wall_s, cpu_s = time.monotonic(), cpu_seconds(self.pid)
        result = work()
        self.seconds[f"{name}_s"] = time.monotonic() - wall_s
        self.seconds[f"{name}_cpu_s"] = cpu_seconds(self.pid) - cpu_s
        sys.stderr.write(
            f"{name}: {self.seconds[f'{name}_s']:.1f} s, CPU {self.seconds[f'{name}_cpu_s']:.1f} s\n"
        )
        return result


def _slice(spark: SparkSession, size: fleet.Size, work: Path, meter: Meter) -> None:
    """Take in a quarter of an hour of the same fleet, after all the rest: 1/96 of a day."""
    pods = replace(size, hours=0.25, bugs=0, benign=0, seed=size.seed + 1)
    source = work / "slice"
    fleet.write(spark, pods, source, begins_s=size.hours * 3600)
    taken = meter.timed("slice", lambda: ingest.run(spark, source / "events", work / "bronze"))
    meter.seconds["slice_events"] = taken.events


def _peak_mib(spark: SparkSession) -> float:
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main() -> int:
    """Measure one size, by hand or for `run`."""
    parser = argparse.ArgumentParser(prog="bench_rollup", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("--size", type=json.loads, default={}, help="fields of `fleet.Size` as JSON")
    parser.add_argument("--taken", action="store_true", help="WORK/bronze is there already")
    chosen = parser.parse_args()
    chosen.work.mkdir(parents=True, exist_ok=True)
    size = fleet.Size(**chosen.size)
    large = size.pods * size.tasks * size.hours > 1000
    os.environ.setdefault("SPARK_LOCAL_DIRS", str(chosen.work / "scratch"))
    spark = build_session(
        (1 << 30) if large else 0,
        master=f"local[{CORES}]",
        jars=needs.bring([needs.DELTA], None, {}),
        delta=True,
        audits=True,
    )
    sys.stdout.write(f"{json.dumps(measure(spark, size, chosen.work, taken=chosen.taken))}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
