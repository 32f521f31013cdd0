"""Injected truth: what the fleet audit finds on a simulated fleet, and what it wrongly confirms when evidence is lost.

    python tests/bench/recall.py            20 idle pods, 3 of every bug, 15 benign scenarios
    python tests/bench/recall.py --full     1,000 pods x 20 tasks x 24 h, 50 of every bug, 1,000 benign

Exit code 1: a bug was missed or something was found that was not there (perfect delivery), or a wrong `confirmed`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from spark_rollup import audit, ingest  # noqa: E402 - path first
from spark_rollup.config import AuditOptions  # noqa: E402
from spark_rollup.session import build_session  # noqa: E402
from tests.bench import fleet  # noqa: E402

SMALL = fleet.Size()
FULL = fleet.Size(pods=1000, tasks=20, hours=24, bugs=50, benign=1000)

RULES = (
    "resurrected-checkpoint",
    "unrestored-task",
    "stale-eos-state",
    "diverged-replica",
    "missing-standby",
    "unprotected-task",
)
"""Rules whose bugs are injected; any other finding of warning or above (but `unaudited`) is a false alarm."""


@dataclass(frozen=True, slots=True)
class Score:
    """How one rule did: findings counted per application and task."""

    injected: int
    found: int
    missed: int
    wrong: int


def score(spark: SparkSession, size: fleet.Size, work: Path) -> dict[str, Score]:
    """Write a fleet, take it in, audit it, and hold findings of warning or above against the truth.

    Only `confirmed` findings count: what says `suspected` or `unknown` claims nothing.
    """
    fleet.write(spark, size, work / "raw")
    ingest.run(spark, work / "raw" / "events", work / "bronze")
    outcome = audit.run(spark, AuditOptions(work / "bronze", work / "out"))
    return judge(fleet.truth(work / "raw"), outcome.findings)


def judge(truth: dict[str, set[tuple[str, str]]], findings: Sequence[object]) -> dict[str, Score]:
    """Compare what was confirmed with what was injected."""
    expected = {(rule, application, task) for application, bugs in truth.items() for rule, task in bugs}
    found = {
        (str(row["detector"]), str(row["application_id"]), str(row["task_id"]))
        for row in findings
        if isinstance(row, dict)
        and row["severity"] != "info"
        and row["confidence"] == "confirmed"
        and row["detector"] != "unaudited"
    }
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
    """Score one fleet twice: delivered perfectly, and badly."""
    parser = argparse.ArgumentParser(prog="recall", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--full", action="store_true", help="the size of the promise (about 32 million events)"
    )
    chosen = parser.parse_args(arguments)
    size = FULL if chosen.full else SMALL
    spark = build_session(1 << 30 if chosen.full else 0)
    failed = False
    for name, one in (
        ("perfect delivery", size),
        ("5 % lost, doubled, skewed", replace(size, loss=0.05, doubled=0.02, skew_s=3.0)),
    ):
        with tempfile.TemporaryDirectory(prefix="statewarden-recall-") as work:
            scores = score(spark, one, Path(work))
        sys.stdout.write(f"== {name}\n{'rule':<24} {'injected':>8} {'found':>6} {'missed':>6} {'wrong':>6}\n")
        for rule, row in scores.items():
            sys.stdout.write(f"{rule:<24} {row.injected:>8} {row.found:>6} {row.missed:>6} {row.wrong:>6}\n")
        sys.stdout.flush()
        failed |= any(row.wrong or (row.missed and one is size) for row in scores.values())
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
