"""An honest yardstick for the rollup: two of its rules beside the same rules by hand in DuckDB (`ask_rules.py`).

    python -m tests.bench.hand_written WORK [--size '{"pods": 20, "hours": 2}'] [--taken]

Spark computes what all rules read (`audit.gather`), then these two; DuckDB only what these two need. So the facts of
Spark are shared by eleven rules, which the comparison tells apart.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_rollup import audit
from spark_rollup.config import FLEET, AuditOptions
from spark_rollup.correlate import split_owner, unrestored_task
from spark_rollup.judging.base import Facts
from spark_rollup.judging.job import judged
from spark_rollup.spark import needs
from spark_rollup.spark.session import build_session
from tests.bench.versions import ROOT

Timed = Callable[[str, Callable[[], Any]], Any]
"""`bench_rollup.Meter.timed`."""

COLUMNS = (
    "id_of", "namespace", "application_id", "task_id", "store", "pod", "opened_at", "severity", "confidence", "status",
    "pods",
)  # fmt: skip
"""Of a finding: what says who is to blame for what, since when and how surely, as `ask_rules.py` tells it. Sentences
are left out."""

RULES = {"unrestored-task": unrestored_task.RULE, "split-owner": split_owner.RULE}


def measure(
    spark: SparkSession, work: Path, timed: Timed, seconds: Mapping[str, float], limits: tuple[int, str]
) -> dict[str, float]:
    """Find with both, from the same bronze; CPU seconds of each, and how many findings only one of the two has.

    Args:
        spark: The session.
        work: Directory that has `bronze`.
        timed: Does something and notes what it cost in `seconds`.
        seconds: By name.
        limits: Threads and memory of DuckDB.
    """
    options = AuditOptions(work / "bronze", work / "out")
    past, loaded, as_of_us = audit.prepare(spark, options)
    facts = timed("rules facts", lambda: audit.gather(past, options, as_of_us, loaded.carried, loaded.ahead))
    for name in RULES:
        timed(f"rules {name}", partial(_write, facts, name, work / "rules" / name))
    words = (work / "bronze", work / "rules-by-hand", *limits, as_of_us, work / "rules")
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.ask_rules", *map(str, words)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    told = json.loads(done.stdout.splitlines()[-1])
    sys.stderr.write(f"{done.stdout}\n")
    by_hand = {key: cpu_s for key, (_, cpu_s) in told["seconds"].items()}
    return {
        "rules_facts_cpu_s": seconds["rules facts_cpu_s"],
        "rules_cpu_s": sum(seconds[f"rules {name}_cpu_s"] for name in RULES),
        "hand_facts_cpu_s": by_hand.pop("facts"),
        "hand_cpu_s": sum(by_hand.values()),
        "rules_findings": sum(count for count, _, _ in told["different"].values()),
        "rules_different": sum(mine + theirs for _, mine, theirs in told["different"].values()),
    }


def _write(facts: Facts, name: str, target: Path) -> None:
    found = judged(facts, [RULES[name]], None).findings.where(F.col("reported_by") == FLEET)
    found = found.withColumnRenamed("detector", "id_of")
    found.select(*(F.col(column) for column in COLUMNS)).coalesce(1).write.mode("overwrite").parquet(
        str(target)
    )


def note(one: Mapping[str, float]) -> str:
    """Say in a sentence what came of it."""
    spark_s, hand_s = (
        one["rules_facts_cpu_s"] + one["rules_cpu_s"],
        one["hand_facts_cpu_s"] + one["hand_cpu_s"],
    )
    return (
        f"`unrestored-task` and `split-owner` by hand in DuckDB, {one['events']:,.0f} events: {hand_s:.1f} CPU s"
        f" ({one['hand_facts_cpu_s']:.1f} of them for facts); Spark {spark_s:.1f} ({one['rules_facts_cpu_s']:.1f} for"
        f" the facts of all rules): {spark_s / hand_s:.1f} x. {one['rules_findings']:.0f} findings, of which"
        f" {one['rules_different']:.0f} differ."
    )


def main() -> int:
    """Measure one size by itself."""
    from tests.bench import bench_rollup, fleet  # it measures this, too

    parser = argparse.ArgumentParser(prog="hand_written", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("--size", type=json.loads, default={}, help="fields of `fleet.Size` as JSON")
    parser.add_argument("--taken", action="store_true", help="WORK/bronze is there already")
    chosen = parser.parse_args()
    chosen.work.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("SPARK_LOCAL_DIRS", str(chosen.work / "scratch"))
    limits = (bench_rollup.CORES, bench_rollup.MEMORY)
    jars = needs.bring([needs.DELTA], None, {})
    spark = build_session(0, master=f"local[{limits[0]}]", jars=jars, delta=True)
    if not chosen.taken:
        bench_rollup.make(spark, fleet.Size(**chosen.size), chosen.work)
    meter = bench_rollup.Meter(spark)
    told = measure(spark, chosen.work, meter.timed, meter.seconds, limits)
    events = audit.prepare(spark, AuditOptions(chosen.work / "bronze", chosen.work / "out"))[0].count()
    sys.stdout.write(f"{note(told | {'events': events})}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
