"""The fleet audit on simulated fleets of growing size: cost, growth, memory, the next quarter of an hour, DuckDB.

Each size in a process of its own, on `local[2]` with 4 GiB for the driver. CPU is told beside wall time: machines are
shared. One size by hand: `python tests/bench/bench_rollup.py WORK --size '{"pods": 200, "together": 200}'`, here with
one hot application instead of ten.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from spark_rollup import audit, facts  # noqa: E402 - path first
from spark_rollup.bronze.load import load  # noqa: E402
from spark_rollup.columns import TASK  # noqa: E402
from spark_rollup.config import AuditOptions  # noqa: E402
from spark_rollup.fleet import gaps  # noqa: E402
from spark_rollup.fleet.application import SKEW_US  # noqa: E402
from spark_rollup.fleet.reduce import Question  # noqa: E402
from spark_rollup.fleet.rows import Gap  # noqa: E402
from spark_rollup.fleet.thin import OfPod  # noqa: E402
from spark_rollup.intake import ingest  # noqa: E402 - path first
from spark_rollup.judging.job import Wide, by_pods  # noqa: E402
from spark_rollup.spark import needs  # noqa: E402
from spark_rollup.spark.materialize import materialize  # noqa: E402
from spark_rollup.spark.session import build_session  # noqa: E402
from tests.bench import fleet, hand_written  # noqa: E402
from tests.bench.goals import GOALS  # noqa: E402
from tests.bench.measure import cpu_seconds  # noqa: E402
from tests.bench.report import Measured, Options, Section  # noqa: E402

Result = TypeVar("Result")

SMALL = (fleet.Size(hours=0.25), fleet.Size(hours=2))
FULL = (fleet.Size(pods=950, hours=4), fleet.Size(pods=950, hours=40))
"""About 15,000 and 60,000 events; 5 and 50 million: idle pods beside copies of recorded scenarios."""

STRAIGHT_FROM = 1_000_000
"""From this many events on the idle pods go straight into bronze: JSON for all of them would take hours."""

CONSTANT_BELOW = 30_000
"""An audit of fewer events costs what any audit does."""

CORES, MEMORY = 2, "4GB"


def run(options: Options) -> Section:
    """Measure every size in a process of its own."""
    results = []
    for number, size in enumerate(FULL if options.full else SMALL):
        words = [
            sys.executable,
            __file__,
            str(options.work / str(number)),
            "--size",
            json.dumps(asdict(size)),
        ]
        done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
        results.append(json.loads(done.stdout.splitlines()[-1]))
    return section(results)


def section(results: Sequence[Mapping[str, float]]) -> Section:
    """Lay results out, smallest size first."""
    first, last = results[0], results[-1]
    exponent = math.log(last["audit_cpu_s"] / first["audit_cpu_s"]) / math.log(
        last["events"] / first["events"]
    )
    rows = [
        (
            f"{one['events']:,.0f}",
            f"{one['audit_s']:.0f} s",
            f"{one['audit_cpu_s']:.0f} s",
            f"{one['audit_cpu_s'] / one['events'] * 1e6:.1f} s",
            f"{one['slice_cpu_s']:.1f} s" if one["slice_events"] else "-",
            f"{one['peak_mib']:,.0f} MiB",
            f"{one['spark_cpu_s']:.0f} s",
            f"{one['duckdb_cpu_s']:.0f} s" if one["duckdb_cpu_s"] else "-",
            f"{one['spark_cpu_s'] / one['duckdb_cpu_s']:.1f} x" if one["duckdb_cpu_s"] else "-",
        )
        for one in results
    ]
    return Section(
        "Fleet audit",
        "A simulated fleet (`tests/bench/fleet.py`: recorded incidents among idle pods, half of whose tasks tell new"
        " numbers every minute) is audited on `local[2]` with a driver of 4 GiB, once. The start of Spark is not"
        " counted; tables and report are. Then 1/96 of a day's events more is taken in from segments. Last, five"
        " questions (holders, holes, pauses, cloned volumes, diverged replicas) are asked of Spark and of DuckDB (2"
        " threads, 4 GB) over the same Parquet; answers are compared row by row.",
        (
            "events",
            "audit, wall",
            "audit, CPU",
            "CPU per million events",
            "ingest of a quarter of an hour, CPU",
            "peak memory of Java",
            "five questions, Spark, CPU",
            "DuckDB, CPU",
            "ratio",
        ),
        rows,
        [
            "Answers that differ: " + ", ".join(f"{int(one['different'])} rows" for one in results) + ".",
            *(hand_written.note(one) for one in results if "hand_cpu_s" in one),
        ],
        _measured(results, exponent),
    )


def _measured(results: Sequence[Mapping[str, float]], exponent: float) -> list[Measured]:
    """Name what has a goal; each is for one size."""
    told = [
        Measured("audit, exponent of CPU by events, constant part included", [exponent], goal="audit-growth")
    ]
    for one in results:
        size = f"{one['events']:,.0f} events"
        constant = "audit-constant" if one["events"] < CONSTANT_BELOW else None
        told.append(Measured(f"audit of {size}, CPU s", [one["audit_cpu_s"]], goal=constant, digits=1))
        if one["duckdb_cpu_s"]:
            goal = f"questions-{round(one['events'] / 1e6 / 5) * 5}"
            ratio = [one["spark_cpu_s"] / one["duckdb_cpu_s"]]
            peer = f"DuckDB {one['duckdb_cpu_s']:.1f} CPU s"
            known = goal if goal in GOALS else None
            told.append(Measured(f"five questions, {size}, CPU, times DuckDB's", ratio, (), peer, known, 1))
        if "hand_cpu_s" in one:
            differ = [one["rules_different"]]
            peer = f"{one['rules_findings']:.0f} findings by hand"
            told.append(
                Measured(f"two rules, {size}, findings that differ", differ, (), peer, "rules-equal", 0)
            )
    return told


def measure(spark: SparkSession, size: fleet.Size, work: Path, *, taken: bool = False) -> dict[str, float]:
    """Measure one size; seconds of wall time and of CPU, and the peak resident memory of the driver's Java.

    Args:
        spark: The session.
        size: The fleet.
        work: Directory to work in.
        taken: Bronze is there already.
    """
    bronze = work / "bronze"
    if not taken:
        make(spark, size, work)
    meter = Meter(spark)
    result = meter.timed("audit", lambda: audit.run(spark, AuditOptions(bronze, work / "out")))
    sys.stderr.write(f"{len(result.findings)} findings\n")
    about = audit.prepare(spark, AuditOptions(bronze, work / "out"))[1]
    read = wide(spark, bronze).until(about.as_of_us)
    meter.seconds["events"] = read.events.count()
    for name, frame in questions(read, about.as_of_us).items():
        meter.timed(f"spark {name}", partial(_write, frame, work / "spark" / name))
    peer = _ask_duckdb(bronze, work)
    if peer["duckdb_cpu_s"]:
        peer |= hand_written.measure(spark, work, meter.timed, meter.seconds, (CORES, MEMORY))
    _slice(spark, size, work, meter)
    spark_cpu_s = sum(
        value for key, value in meter.seconds.items() if key.startswith("spark ") and "cpu" in key
    )
    return {
        **meter.seconds, "spark_cpu_s": spark_cpu_s, "peak_mib": _peak_mib(spark), **peer,
    }  # fmt: skip


def make(spark: SparkSession, size: fleet.Size, work: Path) -> None:
    """Make the fleet's bronze."""
    events = size.pods * (size.tasks + 2) * size.hours * 60
    straight = events >= STRAIGHT_FROM
    shapes = fleet.write(spark, size, work / "raw", idle=not straight)
    for wave in (0, 1):
        ingest.run(spark, work / "raw" / "events" / f"wave={wave}", work / "bronze")
        if straight:
            fleet.fill(spark, shapes, size, work / "bronze", wave)


def wide(spark: SparkSession, bronze: Path) -> Wide:
    """Read bronze as a large input, whatever its size."""
    loaded = load(spark, bronze)
    return Wide(loaded.events.drop("line"), loaded.quarantine)


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


def questions(read: Wide, as_of_us: int) -> dict[str, Callable[[], DataFrame]]:
    """Ask what `ask_duckdb.py` asks, with the rollup's own stages; columns in its order."""
    events, spark = read.events, read.events.sparkSession
    pair = (*TASK, "store", "less_pod", "more_pod", "offset")
    clone = ("namespace", "application_id", "pod", "other_pod", "from_us", "to_us", "processes", "stores")
    gap = "namespace string, pod string, cause string, from_us long, to_us long, missing long"

    def holders() -> DataFrame:
        lanes = read.told(Question(as_of_us)).timelines
        assert lanes is not None
        held = lanes.where(F.col("lane").isin("holder", "cleaner"))
        lasting = F.coalesce(F.col("detail") == "lasting", F.lit(False)).alias("lasting")
        return held.select(*TASK, "pod", "from_us", "to_us", lasting)

    def gaps_of(find: Callable[[OfPod], Iterable[Gap]]) -> DataFrame:
        return spark.createDataFrame(by_pods(read, partial(_gaps, find)), gap)

    def diverged() -> DataFrame:
        looks = facts.sizes(events, facts.single_stores(events))
        copies = (
            looks.select(*TASK, "store", "pod")
            .distinct()
            .groupBy(*TASK, "store")
            .agg(F.count("*").alias("pods"))
        )
        several = copies.where(F.col("pods") > 1)
        settled = facts.settled_copies(looks.join(several, [*TASK, "store"], "left_semi"))
        place = [*TASK, "store", "offset"]
        copies = materialize(settled.select(*place, "pod", "entries_low", "entries_high"))
        less = copies.withColumnRenamed("pod", "less_pod").drop("entries_low")
        more = copies.withColumnRenamed("pod", "more_pod").drop("entries_high")
        both = less.join(more, place).where("entries_high < entries_low AND less_pod <> more_pod")
        return both.groupBy(*TASK, "store", "less_pod", "more_pod").agg(F.max("offset").alias("offset"))

    def clones() -> DataFrame:
        thing = ("namespace", "application_id", "what", "key", "task_id", "store")
        seen = materialize(facts.sightings(events).withColumn("thing", F.to_json(F.struct(*thing))))
        other = seen.select(
            "thing", *(F.col(name).alias(f"other_{name}") for name in ("pod", "from_us", "to_us"))
        )
        from_us, to_us = F.greatest("from_us", "other_from_us"), F.least("to_us", "other_to_us")
        both = seen.join(other, "thing").where(
            (F.col("pod") < F.col("other_pod")) & (to_us - from_us > SKEW_US)
        )
        return both.groupBy("namespace", "application_id", "pod", "other_pod").agg(
            F.min(from_us).alias("from_us"), F.max(to_us).alias("to_us"),
            F.count_distinct(F.when(F.col("what") == "process", F.col("key"))).alias("processes"),
            F.count_distinct(F.when(F.col("what") == "store", F.col("key"))).alias("stores"),
        )  # fmt: skip

    return {
        "holders": holders,
        "holes": lambda: gaps_of(_holes),
        "pauses": lambda: gaps_of(_pauses),
        "clones": lambda: clones().select(*clone),
        "diverged": lambda: diverged().select(*pair),
    }


def _holes(given: OfPod) -> Iterable[Gap]:
    return gaps.sequence_holes(given.beats, given.torn, given.events)


def _pauses(given: OfPod) -> Iterable[Gap]:
    return gaps.pauses(given.beats)


def _gaps(
    find: Callable[[OfPod], Iterable[Gap]], where: tuple[str, str], given: OfPod
) -> Iterator[tuple[object, ...]]:
    for x in find(given):
        yield (*where, x.cause, x.from_us, x.to_us, x.missing)


def _write(frame: Callable[[], DataFrame], target: Path) -> None:
    frame().coalesce(1).write.mode("overwrite").parquet(str(target))


def _ask_duckdb(bronze: Path, work: Path) -> dict[str, float]:
    if importlib.util.find_spec("duckdb") is None:
        sys.stderr.write("no DuckDB: `make setup-delivery` installs it\n")
        return {"duckdb_s": 0, "duckdb_cpu_s": 0, "different": 0}
    peer = str(Path(__file__).with_name("ask_duckdb.py"))
    words = [sys.executable, peer, str(bronze), str(work / "duckdb"), str(CORES), MEMORY, str(work / "spark")]
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
    told = json.loads(done.stdout.splitlines()[-1])
    sys.stderr.write(f"{done.stdout}\n")
    return {
        "duckdb_s": sum(wall_s for wall_s, _ in told["seconds"].values()),
        "duckdb_cpu_s": sum(cpu_s for _, cpu_s in told["seconds"].values()),
        "duckdb_peak_mib": told["peak_mib"],
        "different": sum(mine + theirs for _, mine, theirs in told["different"].values()),
    }


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
    )
    sys.stdout.write(f"{json.dumps(measure(spark, size, chosen.work, taken=chosen.taken))}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
