"""One hot application against many small ones: does an audit of it wait for one task?"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from pyspark.sql import SparkSession  # noqa: E402 - path first

from spark_rollup import audit  # noqa: E402
from spark_rollup.bronze.load import load  # noqa: E402
from spark_rollup.config import AuditOptions  # noqa: E402
from spark_rollup.spark import needs  # noqa: E402
from spark_rollup.spark.session import build_session  # noqa: E402
from tests.bench import fleet  # noqa: E402
from tests.bench.bench_rollup import CORES, Meter, make  # noqa: E402
from tests.bench.report import Options, Section  # noqa: E402

SMALL = fleet.Size(pods=20, hours=0.25, bugs=1, benign=0, together=10)
FULL = fleet.Size(pods=200, hours=6, bugs=1, benign=0, together=10)

PARTITIONS = 16
"""Shuffle partitions, of one size in advance: merged ones would hide who has how much."""

SHORT_S = 1.0
"""Stages that take less in all do not count as the worst one."""


@dataclass(frozen=True, slots=True)
class Stages:
    """What the stages of an audit took.

    Args of the dataclass:
        total_s: Seconds of all tasks.
        longest_s: Seconds of the longest task of each stage, added up: what an unlimited number of cores would take.
        worst: Of the stages of more than `SHORT_S` with several tasks, the largest share that one task had.
    """

    total_s: float
    longest_s: float
    worst: float


def run(options: Options) -> Section:
    """Audit the same load as many applications and as one, each in a process of its own."""
    results = {}
    size = FULL if options.full else SMALL
    for name, together in ((f"{size.pods // size.together} applications", size.together), ("one", size.pods)):
        words = [
            sys.executable,
            __file__,
            str(options.work / str(together)),
            "--size",
            json.dumps(asdict(replace(size, together=together))),
        ]
        done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
        results[name] = json.loads(done.stdout.splitlines()[-1])
    return section(results)


def section(results: Mapping[str, Mapping[str, float]]) -> Section:
    """Lay results out."""
    rows = [
        (
            name,
            f"{one['events']:,.0f}",
            f"{one['audit_s']:.0f} s",
            f"{one['audit_cpu_s']:.0f} s",
            f"{one['total_s']:.1f} s",
            f"{one['longest_s']:.1f} s",
            f"{one['worst']:.0%}",
        )
        for name, one in results.items()
    ]
    return Section(
        "One hot application",
        f"The same idle pods as many applications and as one, audited on `local[2]` with {PARTITIONS} shuffle"
        " partitions. Times of Spark's own tasks, from its event log. `longest` adds up the longest task of each"
        " stage: what would remain with any number of cores.",
        (
            "applications",
            "events",
            "audit, wall",
            "audit, CPU",
            "all tasks",
            "longest",
            f"largest share of one task in a stage of over {SHORT_S:.0f} s",
        ),
        rows,
    )


def stages(lines: Iterable[str], since_ms: float) -> Stages:
    """Sum up the tasks of an event log that were started at or after a time.

    Args:
        lines: Spark's event log, one JSON object a line.
        since_ms: Milliseconds since the epoch.
    """
    seconds: dict[int, list[float]] = defaultdict(list)
    for line in lines:
        if '"SparkListenerTaskEnd"' not in line:
            continue
        ended = json.loads(line)
        if ended["Task Info"]["Launch Time"] >= since_ms:
            seconds[ended["Stage ID"]].append(ended["Task Metrics"]["Executor Run Time"] / 1000)
    shares = [max(x) / sum(x) for x in seconds.values() if len(x) > 1 and sum(x) > SHORT_S]
    return Stages(sum(map(sum, seconds.values())), sum(map(max, seconds.values())), max(shares, default=0.0))


def measure(spark: SparkSession, size: fleet.Size, work: Path) -> dict[str, float]:
    """Measure one fleet."""
    make(spark, size, work)
    meter, since_ms = Meter(spark), time.time() * 1000
    options = AuditOptions(work / "bronze", work / "out")
    meter.timed("audit", lambda: audit.run(spark, options))
    until_s = {"events": load(spark, work / "bronze").events.count()}
    spark.stop()  # the log is whole only then
    (log,) = (work / "log").iterdir()
    with log.open(encoding="utf-8") as lines:
        found = stages(lines, since_ms)
    return {**meter.seconds, **until_s, **asdict(found)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure one fleet, by hand or for `run`."""
    parser = argparse.ArgumentParser(prog="bench_skew", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("--size", type=json.loads, default={}, help="fields of `fleet.Size` as JSON")
    chosen = parser.parse_args(arguments)
    (chosen.work / "log").mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("SPARK_LOCAL_DIRS", str(chosen.work / "scratch"))
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{chosen.work / 'log'}",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
    }
    size = fleet.Size(**chosen.size)
    spark = build_session(
        1 << 30,
        master=f"local[{CORES}]",
        partitions=PARTITIONS,
        conf=conf,
        jars=needs.bring([needs.DELTA], None, {}),
        delta=True,
    )
    sys.stdout.write(f"{json.dumps(measure(spark, size, chosen.work))}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
