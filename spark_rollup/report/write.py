"""Write the outputs: Parquet tables, JSON lines, the page, and last of all the success marker."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from agent.contract.codec import rfc3339
from agent.contract.events import Severity, Status
from agent.contract.mechanisms import TITLES
from spark_rollup import __version__, clock
from spark_rollup.config import AGENT, FLEET
from spark_rollup.judging.incidents import FleetIncident, gather
from spark_rollup.report import incident_rows, last_audit, page
from spark_rollup.report.missed import missed
from spark_rollup.schemas import FINDING, LOCAL_FINDING
from spark_rollup.spark import outputs
from spark_rollup.spark.outputs import MARKER
from spark_rollup.spark.py4j_cache import run_parallel
from spark_rollup.spark.rows import rows_of

MAX_TASKS_DRAWN = 200
"""The page draws the timelines of at most this many tasks, the worst first; the table has all."""

MAX_LOCAL_FINDINGS = 500

MAX_GAPS_DRAWN = 50
"""Of a pod the page draws this many unwatched intervals, the longest, and those that last: there may be very many."""


@dataclass(frozen=True, slots=True)
class Tables:
    """Everything an audit computes, not yet evaluated. `local`, `releases` and `disabled` are only shown.

    `verified` says whether what `verify` found is in them; `titles` are those of rules that are a mechanism by
    themselves, by their ids.
    """

    findings: DataFrame
    timelines: DataFrame
    coverage: DataFrame
    pods: DataFrame
    churn: DataFrame
    restarts: DataFrame
    known_pods: DataFrame
    quarantine: DataFrame
    local: DataFrame
    releases: DataFrame
    disabled: DataFrame
    as_of_us: int
    since_us: int = 0
    verified: bool = False
    titles: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an audit found: what its page shows, and where that is."""

    data: page.PageData
    page: Path

    def worst_open(self) -> Severity | None:
        """Find the highest severity of what is open, known or only counted by agents; None when nothing is."""
        levels = [
            Severity(str(row["severity"])) for row in self.data.findings if row["status"] == Status.OPEN.value
        ]
        return max((*levels, *missed(self.data.coverage)), key=lambda level: level.rank, default=None)


def write(tables: Tables, output: Path, began_us: int = 0) -> Outcome:
    """Evaluate and write; the same tables give the same findings, line by line.

    Args:
        tables: What to write.
        output: Where.
        began_us: When the run began, microseconds since the epoch; 0 = not known.

    Raises:
        UsageError: the output directory cannot be written, or holds files of others.
    """
    place = outputs.begin(output)
    rank = F.when(F.col("severity") == "critical", 0).when(F.col("severity") == "warning", 1).when(
        F.col("severity") == "info", 2
    )  # fmt: skip
    order = (F.col("status"), rank, F.col("detector"), F.col("reported_by"), F.col("namespace"),
             F.col("application_id"), F.col("task_id"),
             F.col("pod"), F.col("opened_at"), F.col("id"))  # fmt: skip
    # one partition is sorted in place; to sort more, Spark would read them twice
    ordered = tables.findings.coalesce(1).sortWithinPartitions(*order)
    findings = rows_of(ordered.select(*FINDING.names))
    incidents = gather(findings, {**TITLES, **tables.titles})
    of = incident_rows.homes(incidents)
    for row in findings:
        row["incident_id"] = of[incident_rows.key(row)]
    whole = replace(tables, findings=incident_rows.with_incidents(tables.findings, of))
    listed = [incident_rows.row_of(one) for one in incidents]
    frames = {
        name: frame.coalesce(1).sortWithinPartitions(*order_by)
        for name, (frame, order_by) in _frames(whole).items()
    }
    frames["incidents"] = incident_rows.frame(tables.findings, listed).coalesce(1)
    run_parallel(tables.findings.sparkSession, partial(_write_table, place), frames.items())
    for name, rows in (("findings", findings), ("incidents", listed)):
        lines = [json.dumps(row, ensure_ascii=True, separators=(",", ":")) for row in rows]
        (place / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
    reasons = {
        str(row["reason"]): int(row["count"]) for row in tables.quarantine.groupBy("reason").count().collect()
    }
    shown = _page_data(tables, findings, incidents, reasons, began_us)
    (place / "report.html").write_text(page.render(shown), encoding="utf-8")
    written = rfc3339(shown.written_us)
    last_audit.write(_about_restarts(tables, shown, written), place)
    marker = {
        "written": written,
        "watermark": rfc3339(tables.as_of_us),
        "since": rfc3339(tables.since_us) if tables.since_us else None,
        "version": __version__,
        "findings": dict(sorted(Counter(str(row["severity"]) for row in findings).items())),
        "incidents": incident_rows.count_open(incidents),
        "open": {reporter: _open(findings, reporter) for reporter in (FLEET, AGENT)},
        "quarantined": dict(sorted(reasons.items())),
        "disabled": sorted({str(row["detector"]) for row in shown.disabled}),
    }
    (place / MARKER).write_text(json.dumps(marker, indent=2, sort_keys=True) + "\n", encoding="ascii")
    outputs.swap(output)
    return Outcome(shown, output / "report.html")


def _write_table(place: Path, named: tuple[str, DataFrame]) -> None:
    name, frame = named
    frame.write.mode("overwrite").option("compression", "zstd").parquet(str(place / name))


def _about_restarts(tables: Tables, shown: page.PageData, written: str) -> last_audit.LastAudit:
    return last_audit.LastAudit(
        rows=shown.restarts,
        pods=shown.known_pods,
        disabled=[{key: row[key] for key in ("namespace", "pod", "detector")} for row in shown.disabled],
        as_of_us=tables.as_of_us,
        verified=tables.verified,
        written=written,
    )


def _open(findings: Sequence[Mapping[str, object]], reporter: str) -> dict[str, int]:
    rows = [row for row in findings if row["status"] == Status.OPEN.value and row["reported_by"] == reporter]
    return dict(sorted(Counter(str(row["severity"]) for row in rows).items()))


def _frames(tables: Tables) -> dict[str, tuple[DataFrame, tuple[str, ...]]]:
    return {
        "findings": (tables.findings, ("id",)),
        "timelines": (tables.timelines, ("namespace", "application_id", "task_id", "pod", "lane", "from_us")),
        "coverage": (tables.coverage, ("namespace", "pod")),
        "pods": (tables.pods, ("namespace", "pod")),
        "churn": (tables.churn, ("namespace", "application_id", "task_id", "hour_us")),
        "restarts": (tables.restarts, ("namespace", "pod", "application_id", "task_id")),
        "quarantine": (tables.quarantine, ("file", "reason", "line")),
    }


def _page_data(
    tables: Tables,
    findings: Sequence[Mapping[str, object]],
    incidents: Sequence[FleetIncident],
    reasons: Mapping[str, int],
    began_us: int,
) -> page.PageData:
    keys = list(
        dict.fromkeys(
            (row["namespace"], row["application_id"], row["task_id"]) for row in findings if row["task_id"]
        )
    )[:MAX_TASKS_DRAWN]
    frames = (
        _sorted(tables.coverage, "namespace", "pod"),
        _sorted(tables.pods, "namespace", "pod"),
        _drawn(tables.timelines, keys, tables.as_of_us),
        _local(tables.local),
        _sorted(tables.releases, "namespace", "application_id"),
        _sorted(tables.disabled, "detector", "namespace", "pod", "application_id"),
        _sorted(tables.restarts, "namespace", "pod", "application_id", "task_id"),
        _sorted(tables.known_pods, "namespace", "pod"),
    )
    coverage, pods, drawn, local, releases, disabled, restarts, known_pods = run_parallel(
        tables.findings.sparkSession, rows_of, frames
    )
    return page.PageData(
        as_of_us=tables.as_of_us,
        version=__version__,
        incidents=incidents,
        findings=findings,
        coverage=coverage,
        pods=pods,
        timelines=drawn,
        local=local,
        quarantine=reasons,
        releases=releases,
        disabled=disabled,
        restarts=restarts,
        known_pods=known_pods,
        written_us=(written_us := clock.now_us()),
        took_s=(written_us - began_us) / 1e6 if began_us else None,
    )


def _drawn(timelines: DataFrame, keys: Sequence[tuple[object, ...]], as_of_us: int) -> DataFrame:
    """Keep the timeline rows of the drawn tasks, and what concerns their pods as a whole: what lasts, however short."""
    applications = sorted({str(key[1]) for key in keys})
    tasks = sorted({str(key[2]) for key in keys})
    of_task = F.col("application_id").isin(applications) & F.col("task_id").isin(tasks)
    of_pod = F.col("task_id").isNull() & (F.col("lane") == "unknown")
    longest = W.partitionBy("namespace", "pod").orderBy(
        F.desc(F.col("to_us") - F.col("from_us")), "from_us", "detail"
    )
    ranked = timelines.where(of_pod).withColumn("rank", F.row_number().over(longest))
    lasts = F.col("to_us").isNull() | (F.col("to_us") >= as_of_us)
    kept = ranked.where((F.col("rank") <= MAX_GAPS_DRAWN) | lasts).drop("rank")
    return (
        timelines.where(of_task)
        .unionByName(kept)
        .orderBy("namespace", "application_id", "task_id", "pod", "from_us", "lane")
    )


def _local(local: DataFrame) -> DataFrame:
    chosen = local.where((F.col("severity") != "info") | (F.col("level") == "damage"))
    order = ("severity", "detector", "application_id", "task_id", "pod")
    return chosen.select(*LOCAL_FINDING.names).orderBy(*order).limit(MAX_LOCAL_FINDINGS)


def _sorted(frame: DataFrame, *names: str) -> DataFrame:
    return frame.coalesce(1).sortWithinPartitions(*names)
