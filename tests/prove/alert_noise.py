"""Alert noise: a simulated fleet with benign rebalances must not page anybody, and one with bugs must.

Events of the simulated fleet (`tests/bench/fleet.py`) become the series that its agents and the fleet audit, run
again and again while the stories go on, would have exposed; promtool evaluates the committed rules at every minute.

    python tests/prove/alert_noise.py           1,000 benign rebalances among 20 idle pods of 20 tasks, in 3 hours

Idle pods have no findings: more of them show nothing more. One of every injected bug is the counter-proof. Exit code
1: a page about an application without a bug, or a bug that must page and did not.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from agent.contract.audited import gather  # noqa: E402 - path first
from agent.contract.events import Affected, Confidence, Level, Severity, Status  # noqa: E402
from agent.contract.finding import Finding  # noqa: E402
from spark_rollup import audit  # noqa: E402
from spark_rollup.bronze.load import load  # noqa: E402
from spark_rollup.config import AuditOptions  # noqa: E402
from spark_rollup.intake import ingest  # noqa: E402
from spark_rollup.registry import severities  # noqa: E402
from spark_rollup.report import metrics  # noqa: E402
from spark_rollup.report.page import PageData  # noqa: E402
from spark_rollup.spark import needs  # noqa: E402
from spark_rollup.spark.session import build_session  # noqa: E402
from tests.bench import fleet  # noqa: E402
from tests.support.noise import (  # noqa: E402
    MINUTE_US,
    NAMESPACE,
    Fired,
    Labels,
    Span,
    Told,
    alerts_fired,
    incident_spans,
)
from tests.support.recorded_fleet import EXPECTED  # noqa: E402

LEAD_US = 2 * MINUTE_US
"""The series begin a little before the first event, as the first value of a counter must be seen."""

AFTER_US = 40 * MINUTE_US
"""The recordings last up to 22 minutes; the last alert must have the time to fire."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A fleet, and how often it is audited (minutes)."""

    size: fleet.Size
    audit_every_m: int


FULL = Plan(fleet.Size(pods=20, tasks=20, hours=3, bugs=1, benign=1000), 30)
SMALL = Plan(fleet.Size(pods=2, tasks=1, hours=0.25, bugs=1, benign=5), 15)


@dataclass(frozen=True, slots=True)
class Truth:
    """Which applications have an injected bug, which of those must page, and which are benign."""

    buggy: frozenset[str]
    loud: frozenset[str]
    benign: frozenset[str]


@dataclass(frozen=True, slots=True)
class Noise:
    """What fired, and what should have."""

    fired: set[Fired]
    truth: Truth

    def pages(self) -> set[Fired]:
        return {one for one in self.fired if one.severity == Severity.CRITICAL.value}

    def wrong(self) -> set[Fired]:
        """List pages about anything without a bug, the fleet as a whole included."""
        return {one for one in self.pages() if one.application_id not in self.truth.buggy}

    def unpaged(self) -> set[str]:
        """List applications with a loud bug that nobody was paged about."""
        return set(self.truth.loud) - {one.application_id for one in self.pages()}


def measure(spark: SparkSession, plan: Plan, work: Path, tell: Callable[[str], None]) -> Noise:
    """Write the fleet, derive its series, evaluate the rules."""
    fleet.write(spark, plan.size, work / "raw")
    truth = injected(work / "raw")
    size = plan.size
    tell(
        f"{len(truth.benign)} benign rebalances, {len(truth.buggy)} bugs, {size.pods} idle pods of {size.tasks} tasks, "
        f"{size.hours:g} h"
    )
    begin_us = fleet.START_US
    end_us = begin_us + int(plan.size.hours * 60) * MINUTE_US + AFTER_US
    added = ingest.run(spark, work / "raw" / "events", work / "bronze")
    tell(f"{added.events:,} events")
    events = load(spark, work / "bronze").events
    spans = [*incident_spans(told(events), end_us), *agent_spans(events, end_us)]
    spans += audit_spans(spark, work, begin_us, end_us, plan.audit_every_m * MINUTE_US, tell)
    origin_us = begin_us - LEAD_US
    minutes = (end_us - origin_us) // MINUTE_US
    tell(f"{len({one.labels for one in spans}):,} series over {minutes} minutes")
    return Noise(alerts_fired(spans, origin_us, minutes, work), truth)


def injected(raw: Path) -> Truth:
    rows = [json.loads(line) for line in (raw / "truth.jsonl").read_text(encoding="utf-8").splitlines()]
    benign = frozenset(row["application"] for row in rows if row["scenario"] in fleet.BENIGN)
    loud = frozenset(
        row["application"]
        for row in rows
        if any(verdict[-1] == Severity.CRITICAL.value for verdict in EXPECTED.get(row["scenario"], ()))
    )
    return Truth(frozenset(row["application"] for row in rows) - benign, loud, benign)


def told(events: DataFrame) -> Iterator[Told]:
    """List the finding events."""
    for row in events.where(F.col("kind") == "finding").collect():
        yield Told(row["pod"], row["observed_at_us"], finding_of(row))


def finding_of(row: Row) -> Finding:
    """Read a finding event, without what no series shows."""
    return Finding(
        id=row["finding_id"], detector=row["detector"], level=Level(row["level"]), severity=Severity(row["severity"]),
        confidence=Confidence(row["confidence"]), status=Status(row["status"]),
        application_id=row["application_id"] or "", task_id=row["task_id"], store=row["store"], identity=None,
        opened_at_us=row["opened_at_us"], resolved_at_us=row["resolved_at_us"], upstream=(),
        affected=Affected(row["affected"]), missing_facts=(), summary="", evidence=(), next_action="",
        mechanism=row["mechanism"] or "", incident_id=row["incident_id"] or "", lasting=bool(row["lasting"]),
    )  # fmt: skip


def agent_spans(events: DataFrame, end_us: int) -> Iterator[Span]:
    """Tell of every agent that it is there, and when it was blind or dropped events."""
    lives = events.groupBy("pod").agg(F.min("observed_at_us").alias("from_us"))
    for row in lives.collect():
        place = {"namespace": NAMESPACE, "pod": row["pod"]}
        for name, more in (
            ("up", {"job": "statewarden-agent"}),
            ("statewarden_agent_up", {}),
            ("statewarden_agent_ready", {}),
        ):
            yield Span(_labels(name, {**place, **more}), row["from_us"], end_us)
    beats = events.where(F.col("kind") == "heartbeat")
    blind = beats.select("pod", F.explode("blind").alias("blind")).select("pod", "blind.*").distinct()
    for row in blind.collect():
        labels = _labels(
            "statewarden_agent_blind", {"namespace": NAMESPACE, "pod": row["pod"], "cause": row["cause"]}
        )
        yield Span(labels, row["from_us"], row["to_us"] or end_us)
    drops = events.where(F.col("kind") == "drop").select(
        "pod", "dropped_kind", "dropped_count", "observed_at_us"
    )
    for row in drops.collect():
        labels = _labels(
            "statewarden_agent_spool_drops_total",
            {"namespace": NAMESPACE, "pod": row["pod"], "kind": row["dropped_kind"]},
        )
        yield Span(labels, row["observed_at_us"], end_us, row["dropped_count"])


def audit_spans(
    spark: SparkSession, work: Path, begin_us: int, end_us: int, every_us: int, tell: Callable[[str], None]
) -> Iterator[Span]:
    """Audit again and again as of then, and give what each run would have left for Prometheus until the next."""
    options = AuditOptions(work / "bronze", work / "out")
    looks = range(begin_us + every_us, end_us - AFTER_US + 1, every_us)
    for number, as_of_us in enumerate(looks, 1):
        started = time.monotonic()
        read, about = audit.prepare(spark, AuditOptions(options.input, options.output, as_of_us))
        told = audit.tell(read, audit.asking(spark, options, about))
        found = told.of("findings")
        data = PageData(as_of_us, "", gather(found), found, told.of("coverage"))
        facts = metrics.Facts(data, severities(verified=False), as_of_us)
        loud = Counter(str(row["severity"]) for row in found)
        took_s = time.monotonic() - started
        tell(f"audit {number} of {len(looks)}: {dict(loud)}, {took_s:.0f} s")
        until_us = end_us if as_of_us == looks[-1] else as_of_us + every_us - 1
        yield from rollup_spans(facts, as_of_us, until_us, begin_us - LEAD_US)


def rollup_spans(facts: metrics.Facts, from_us: int, to_us: int, origin_us: int) -> Iterator[Span]:
    """Give the series of one audit; times count from the origin, where promtool's clock begins."""
    for metric in metrics.CATALOGUE:
        for values, value in metric.read(facts).items():
            shift = origin_us / 1_000_000 if metric.name.endswith("_timestamp_seconds") else 0.0
            labels = dict(zip(metric.labels, values, strict=True))
            yield Span(_labels(metric.name, labels), from_us, to_us, value - shift)


def _labels(name: str, labels: dict[str, str]) -> Labels:
    return (("__name__", name), *sorted(labels.items()))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="alert_noise", description=(__doc__ or "").partition("\n")[0])
    parser.parse_args(arguments)
    spark = build_session(1 << 30, jars=needs.bring([needs.DELTA], None, {}), delta=True)

    def tell(text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    with tempfile.TemporaryDirectory(prefix="statewarden-noise-") as work:
        noise = measure(spark, FULL, Path(work), tell)
    for kind, has_bug in (("benign or idle", False), ("with a bug", True)):
        counted = Counter(
            (one.severity, one.alert)
            for one in noise.fired
            if (one.application_id in noise.truth.buggy) is has_bug
        )
        tell(
            f"== {kind}: {_total(counted, Severity.CRITICAL)} pages, {_total(counted, Severity.WARNING)} tickets"
        )
        for (severity, alert), times in sorted(counted.items()):
            tell(f"   {severity:<9} {alert:<44} {times}")
    for one in sorted(noise.wrong(), key=str):
        tell(f"wrong page: {one}")
    for application in sorted(noise.unpaged()):
        tell(f"nobody was paged about {application}")
    return int(bool(noise.wrong() or noise.unpaged()))


def _total(counted: Counter[tuple[str, str]], severity: Severity) -> int:
    return sum(times for (found, _), times in counted.items() if found == severity.value)


if __name__ == "__main__":
    sys.exit(main())
