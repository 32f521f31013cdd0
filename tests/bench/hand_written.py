"""A second opinion on the rollup, and its yardstick: two rules beside the same by hand in DuckDB (`ask_rules.py`).

The rollup tells all tables with these two rules; DuckDB only finds what the two find.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from agent.contract.audited import FLEET
from spark_rollup import audit
from spark_rollup.config import AuditOptions
from spark_rollup.correlate import split_owner, unrestored_task
from spark_rollup.judging.told import Told
from spark_rollup.schemas import FINDING
from spark_rollup.spark.rows import frame_of
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
    """Find with both, from `work/bronze`; CPU seconds of each, and how many findings only one of the two has.

    `timed` does something and notes what it cost in `seconds`; `limits` are threads and memory of DuckDB.
    """
    options = AuditOptions(work / "bronze", work / "out")
    read, about = audit.prepare(spark, options)
    asked = audit.asking(spark, options, about, list(RULES.values()))
    told = timed("rules", lambda: audit.tell(read, asked))
    for name in RULES:
        _write(spark, told, name, work / "rules" / name)
    words = (work / "bronze", work / "rules-by-hand", *limits, about.as_of_us, work / "rules")
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.ask_rules", *map(str, words)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    answer = json.loads(done.stdout.splitlines()[-1])
    sys.stderr.write(f"{done.stdout}\n")
    by_hand = {key: cpu_s for key, (_, cpu_s) in answer["seconds"].items()}
    return {
        "rules_cpu_s": seconds["rules_cpu_s"],
        "hand_facts_cpu_s": by_hand.pop("facts"),
        "hand_cpu_s": sum(by_hand.values()),
        "rules_findings": sum(count for count, _, _ in answer["different"].values()),
        "rules_different": sum(mine + theirs for _, mine, theirs in answer["different"].values()),
    }


def _write(spark: SparkSession, told: Told, name: str, target: Path) -> None:
    rows = [row for row in told.of("findings") if row["reported_by"] == FLEET and row["detector"] == name]
    found = frame_of(spark, rows, FINDING).withColumnRenamed("detector", "id_of")
    found.select(*COLUMNS).coalesce(1).write.mode("overwrite").parquet(str(target))
