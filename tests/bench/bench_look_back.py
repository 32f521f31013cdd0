"""What an audit costs after more and more days of bronze: of all events, and of snapshots."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from pyspark.sql import SparkSession  # noqa: E402 - path first

from spark_rollup import audit  # noqa: E402
from spark_rollup.bronze import snapshots  # noqa: E402
from spark_rollup.bronze.load import load  # noqa: E402
from spark_rollup.config import AuditOptions  # noqa: E402
from spark_rollup.intake import closed  # noqa: E402
from spark_rollup.report.write import Outcome  # noqa: E402
from spark_rollup.spark import needs  # noqa: E402
from spark_rollup.spark.session import build_session  # noqa: E402
from tests.bench import fleet  # noqa: E402
from tests.bench.bench_rollup import CORES, Meter, make  # noqa: E402
from tests.bench.report import Options, Section  # noqa: E402

LOOK_BACK_DAYS = 1
SMALL, FULL = (3, 4), (3, 5, 9)
"""Days of bronze."""


def run(options: Options) -> Section:
    """Measure every number of days in a process of its own."""
    results = []
    for days in FULL if options.full else SMALL:
        words = [
            sys.executable,
            __file__,
            str(options.work / str(days)),
            "--size",
            json.dumps(asdict(size_of(days, full=options.full))),
        ]
        done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
        results.append(json.loads(done.stdout.splitlines()[-1]))
    return section(results)


def size_of(days: int, *, full: bool) -> fleet.Size:
    """Choose a fleet that tells about a million events a day, or a few thousand; its first day begins at 11:06."""
    pods = 40 if full else 1
    return fleet.Size(pods=pods, hours=24 * (days - 1) + 6, bugs=3, benign=21)


def section(results: Sequence[Mapping[str, float]]) -> Section:
    """Lay results out, fewest days first."""
    return Section(
        "Look-back",
        "The same fleet after more and more days, audited twice on `local[2]`: all events, and one day's look-back"
        " (today and yesterday) with the snapshots of the days before. A day's snapshot is made once, by `compact`."
        " The start of Spark is not counted.",
        (
            "days of bronze",
            "events",
            "audit of all, CPU",
            "audit of the look-back, CPU",
            "events of the look-back",
            "events in snapshots",
            "a day's snapshot, CPU",
            "open findings of all / of the look-back (without churn and unwatched times)",
        ),
        [
            (
                f"{one['days']:.0f}",
                f"{one['events']:,.0f}",
                f"{one['all_cpu_s']:.0f} s",
                f"{one['look_back_cpu_s']:.0f} s",
                f"{one['read']:,.0f}",
                f"{one['carried']:,.0f}",
                f"{one['sum_cpu_s'] / one['summed']:.0f} s",
                f"{one['open_all']:.0f} / {one['open_look_back']:.0f}",
            )
            for one in results
        ],
        [],
    )


def measure(spark: SparkSession, size: fleet.Size, work: Path) -> dict[str, float]:
    """Measure one fleet; seconds of wall time and of CPU."""
    bronze, meter = work / "bronze", Meter(spark)
    make(spark, size, work)
    days = snapshots.days(bronze)
    everything = AuditOptions(bronze, work / "all", every_event=True)
    look_back = AuditOptions(bronze, work / "look-back", look_back_days=LOOK_BACK_DAYS)
    # in this order: what comes last finds a Java that is warm, so the look-back is not favoured
    summed = meter.timed("sum", lambda: closed.run(spark, bronze))
    recent = meter.timed("look_back", lambda: audit.run(spark, look_back))
    whole = meter.timed("all", lambda: audit.run(spark, everything))
    loaded = load(spark, bronze, audit.reading(look_back))
    assert loaded.carried is not None
    return {
        **meter.seconds,
        "days": len(days),
        "events": load(spark, bronze).events.count(),
        "read": loaded.events.count(),
        "carried": loaded.carried.events.count(),
        "summed": len(summed),
        "open_all": _open(whole),
        "open_look_back": _open(recent),
    }


def _open(outcome: Outcome) -> int:
    """Count open findings but for those that speak of the time audited: of churn, and of what nobody watched."""
    return sum(
        row["status"] == "open" and row["detector"] not in ("task-churn", "unaudited")
        for row in outcome.data.findings
    )


def main() -> int:
    """Measure one fleet, by hand or for `run`."""
    parser = argparse.ArgumentParser(prog="bench_look_back", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("--size", type=json.loads, default={}, help="fields of `fleet.Size` as JSON")
    chosen = parser.parse_args()
    chosen.work.mkdir(parents=True, exist_ok=True)
    size = fleet.Size(**chosen.size)
    os.environ.setdefault("SPARK_LOCAL_DIRS", str(chosen.work / "scratch"))
    spark = build_session(
        (1 << 30) if size.pods > 1 else 0,
        master=f"local[{CORES}]",
        jars=needs.bring([needs.DELTA], None, {}),
        delta=True,
    )
    sys.stdout.write(f"{json.dumps(measure(spark, size, chosen.work))}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
