"""Injected truth: what the fleet audit finds on a simulated fleet, and what it wrongly confirms when evidence is lost.

    python tests/bench/recall.py            20 idle pods, 3 of every bug, 15 benign scenarios
    python tests/bench/recall.py --full     1,000 pods x 20 tasks x 24 h, 50 of every bug, 1,000 benign

Exit code 1: a bug was missed or something was found that was not there (perfect delivery), or a wrong `confirmed`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from spark_rollup import audit  # noqa: E402 - path first
from spark_rollup.bronze.store import read_events  # noqa: E402
from spark_rollup.config import AuditOptions  # noqa: E402
from spark_rollup.intake import ingest  # noqa: E402 - path first
from spark_rollup.spark import needs  # noqa: E402
from spark_rollup.spark.session import build_session  # noqa: E402
from tests.bench import fleet  # noqa: E402

SMALL = fleet.Size()
FULL = fleet.Size(pods=1000, tasks=20, hours=24, bugs=50, benign=1000)

STRAIGHT_FROM = 20_000
"""From this many pods x tasks x hours on the idle pods go into bronze without the way through JSON."""

RULES = (
    "resurrected-checkpoint",
    "unrestored-task",
    "stale-eos-state",
    "diverged-replica",
    "cloned-process",
    "cloned-volume",
    "split-owner",
    "missing-standby",
    "unprotected-task",
    "task-churn",
)
"""Rules whose bugs are injected; any other finding of warning or above (but `unaudited`) is a false alarm."""

WHILE_IT_LASTS = dict.fromkeys(
    ("missing-standby", "resurrected-checkpoint", "stale-eos-state", "unrestored-task"), "unprotected-task"
)
"""An audit in the middle of a story rightly says this of the same task: the copy that was missing is missing then, and
one that is damaged is no second copy."""


@dataclass(frozen=True, slots=True)
class Score:
    """How one rule did: findings counted per application and task."""

    injected: int
    found: int
    missed: int
    wrong: int


def score(spark: SparkSession, size: fleet.Size, work: Path) -> dict[str, dict[str, Score]]:
    """Write a fleet, take it in as it arrives, audit it at half time and at the end; give scores by audit and rule.

    Only `confirmed` findings of warning or above count: what says `suspected` or `unknown` claims nothing.
    """
    straight = size.pods * size.tasks * size.hours > STRAIGHT_FROM
    shapes = fleet.write(spark, size, work / "raw", idle=not straight)
    bronze, found, scenarios = work / "bronze", {}, fleet.scenarios(work / "raw")
    for wave, name in enumerate(("half time", "the end")):
        ingest.run(spark, work / "raw" / "events" / f"wave={wave}", bronze)
        if straight:
            fleet.fill(spark, shapes, size, bronze, wave)
        began = time.monotonic()
        outcome = audit.run(spark, AuditOptions(bronze, work / "out"))
        events = read_events(spark, bronze).count()
        sys.stdout.write(f"{name}: {events:,} events, audit {time.monotonic() - began:.0f} s\n")
        sys.stdout.flush()
        truth = fleet.truth(work / "raw")
        if name == "half time":
            truth = {application: lasting(bugs) for application, bugs in truth.items()}
        found[name] = judge(truth, outcome.findings)
        for rule, application, task in sorted(confirmed(outcome.findings)):
            if (rule, task) not in truth.get(application, set()):
                sys.stdout.write(
                    f"wrong: {rule} {application} {task}: {scenarios.get(application, application)}\n"
                )
    return found


def lasting(bugs: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Add what is true of the same tasks while their story goes on."""
    return bugs | {(WHILE_IT_LASTS[rule], task) for rule, task in bugs if rule in WHILE_IT_LASTS}


def confirmed(findings: Sequence[object]) -> set[tuple[str, str, str]]:
    """Take rule, application and task of what is confirmed at warning or above."""
    return {
        (str(row["detector"]), str(row["application_id"]), str(row["task_id"]))
        for row in findings
        if isinstance(row, dict)
        and row["severity"] != "info"
        and row["confidence"] == "confirmed"
        and row["reported_by"] == "fleet"
        and row["detector"] != "unaudited"
    }


def judge(truth: dict[str, set[tuple[str, str]]], findings: Sequence[object]) -> dict[str, Score]:
    """Compare what was confirmed with what was injected."""
    expected = {(rule, application, task) for application, bugs in truth.items() for rule, task in bugs}
    found = confirmed(findings)
    counts = {
        name: Counter(rule for rule, _, _ in rows)
        for name, rows in (
            ("injected", expected),
            ("found", found & expected),
            ("missed", expected - found),
            ("wrong", found - expected),
        )
    }
    rules = sorted({*RULES, *(rule for rule, _, _ in found)})
    return {
        rule: Score(*(counts[name][rule] for name in ("injected", "found", "missed", "wrong")))
        for rule in rules
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Score one fleet three times: delivered perfectly, with clocks that differ, and badly."""
    parser = argparse.ArgumentParser(prog="recall", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--full", action="store_true", help="the size of the promise (about 32 million events)"
    )
    chosen = parser.parse_args(arguments)
    size = FULL if chosen.full else SMALL
    spark = build_session(
        1 << 30 if chosen.full else 0, jars=needs.bring([needs.DELTA], None, {}), delta=True
    )
    failed = False
    for name, one in (
        ("perfect", size),
        # alone too: where events are lost nearly everything is in doubt already, which hides what clocks do
        ("clocks", replace(size, skew_s=3.0)),
        ("bad", replace(size, loss=0.05, doubled=0.02, skew_s=3.0, late_s=600.0)),
    ):
        sys.stdout.write(f"== {name} delivery\n")
        with tempfile.TemporaryDirectory(prefix="statewarden-recall-") as work:
            scores = score(spark, one, Path(work))
        for moment, rows in scores.items():
            sys.stdout.write(f"{moment:<24} {'injected':>8} {'found':>6} {'missed':>6} {'wrong':>6}\n")
            for rule, row in rows.items():
                sys.stdout.write(
                    f"{rule:<24} {row.injected:>8} {row.found:>6} {row.missed:>6} {row.wrong:>6}\n"
                )
            complete = one is size and moment == "the end"
            failed |= any(row.wrong or (row.missed and complete) for row in rows.values())
        sys.stdout.flush()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
