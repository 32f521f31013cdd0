"""Write the outputs: Parquet tables, JSON lines, the page, and last of all the success marker."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from agent.contract.audited import AGENT, FLEET, FleetIncident, gather
from agent.contract.codec import rfc3339
from agent.contract.events import Severity, Status
from agent.contract.mechanisms import TITLES
from spark_rollup import __version__, clock
from spark_rollup.bronze.later import UNKNOWN_MAJOR, of_another_major
from spark_rollup.fleet import judge, reduce
from spark_rollup.fleet.meta import Row
from spark_rollup.fleet.reduce import Question
from spark_rollup.fleet.restarts import UNDECIDED
from spark_rollup.judging.told import Told
from spark_rollup.report import incident_rows, last_audit, page, since_last
from spark_rollup.report.expected import Expected
from spark_rollup.report.page.data import counts_as, pod_key
from spark_rollup.report.restart_answer import Known, with_steps
from spark_rollup.schemas import CHURN, COVERAGE, FINDING, INCIDENT, PODS, QUARANTINE, RESTARTS, TIMELINE
from spark_rollup.spark import outputs
from spark_rollup.spark.outputs import MARKER
from spark_rollup.spark.py4j_cache import run_parallel
from spark_rollup.spark.rows import frame_of, rows_of

MAX_TASKS_DRAWN = 200  # of so many tasks the page draws timelines, the worst first; the table has all
MAX_GAPS_DRAWN = 50  # of a pod so many unwatched intervals are drawn, the longest, and those that last

Rows = Sequence[Row]

Quarantine = Rows | DataFrame
"""A large input may have more lines that cannot be used than the driver can hold."""


@dataclass(frozen=True, slots=True)
class Tables:
    """Everything an audit computes, and what it was asked; `not_asked` are rules that another audit may ask."""

    told: Told
    quarantine: Quarantine
    asked: Question
    not_asked: Collection[str] = ()
    expected: Expected | None = None
    unfinished: Mapping[str, str] = field(default_factory=dict)  # see `unpacked.unfinished`

    @property
    def titles(self) -> Mapping[str, str]:
        """Titles of rules, which may be a mechanism by themselves."""
        return {rule.meta.id: rule.meta.title for rule in self.asked.rules}


def write(spark: SparkSession, tables: Tables, output: Path, began_us: int = 0) -> page.PageData:
    """Write what an audit found, and give what the page shows; the same tables give the same findings, line by line.

    `began_us`: when the run began; 0 = not known. Raises `UsageError`: the output directory cannot be written, or holds
    files of others.
    """
    place, as_of_us, since_us = outputs.begin(output), tables.asked.as_of_us, tables.asked.since_us
    order = ("detector", "reported_by", "namespace", "application_id", "task_id", "pod", "opened_at", "id")
    findings = sorted(
        ({name: row[name] for name in FINDING.names} for row in tables.told.of(judge.FINDINGS)),
        key=lambda row: (row["status"], -Severity(row["severity"]).rank, _key(row, order)),
    )
    incidents = gather(findings, {**TITLES, **tables.titles})
    of = incident_rows.homes(incidents)
    for row in findings:
        row["incident_id"] = of[incident_rows.key(row)]
    listed = [incident_rows.row_of(one) for one in incidents]
    restarts = with_steps(tables.told.of(judge.RESTARTS), incidents)
    frames = _frames(spark, tables, findings, restarts)
    frames["incidents"] = frame_of(spark, listed, INCIDENT).coalesce(1)
    run_parallel(spark, partial(_write_table, place), frames.items())
    for name, rows in (("findings", findings), ("incidents", listed)):
        lines = [json.dumps(row, ensure_ascii=True, separators=(",", ":")) for row in rows]
        (place / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
    reasons = _reasons(tables.quarantine)
    shown = _page_data(tables, findings, incidents, restarts, reasons, began_us)
    if (last := since_last.read(output)) is not None:
        seen = _seen(tables, shown)
        shown = replace(shown, since_last=since_last.compare(last, listed, seen, as_of_us))
    (place / "report.html").write_text(page.render(shown), encoding="utf-8")
    written = rfc3339(shown.written_us)
    verified = tables.asked.proofs is not None
    known = (shown.restarts, shown.known_pods, shown.disabled)
    last_audit.write(Known(*known, as_of_us, verified, shown.unread, shown.unfinished), written, place)
    since_last.write(shown.since_last, written, place)
    marker = {
        "written": written,
        "watermark": rfc3339(as_of_us),
        "since": rfc3339(since_us) if since_us else None,
        "version": __version__,
        "findings": _counts(findings),
        "incidents": dict(Counter(map(counts_as, shown.open_incidents()))),
        "open": {reporter: _open(findings, reporter) for reporter in (FLEET, AGENT)},
        "lacking": shown.lacking(),
        "expected": None if tables.expected is None else tables.expected.row(),
        "since_last": None if shown.since_last is None else shown.since_last.counts(),
        "quarantined": dict(sorted(reasons.items())),
        "disabled": shown.undetected(),
    }
    (place / MARKER).write_text(json.dumps(marker, indent=2, sort_keys=True) + "\n", encoding="ascii")
    outputs.swap(output)
    return shown


def _write_table(place: Path, named: tuple[str, DataFrame]) -> None:
    name, frame = named
    frame.write.mode("overwrite").option("compression", "zstd").parquet(str(place / name))


def _seen(tables: Tables, shown: page.PageData) -> since_last.Seen:
    off = {(str(row["detector"]), pod_key(row)) for row in shown.disabled}
    never = {(detector, None) for detector in tables.not_asked}
    doubts = {pod_key(row): str(row["doubt"] or "") for row in shown.known_pods}
    return since_last.Seen(doubts, frozenset(off | never), tables.titles)


def _open(findings: Sequence[Mapping[str, object]], reporter: str) -> dict[str, int]:
    return _counts(x for x in findings if (x["status"], x["reported_by"]) == (Status.OPEN.value, reporter))


def _counts(findings: Iterable[Mapping[str, object]]) -> dict[str, int]:
    """Count by severity, and questions apart."""
    return dict(Counter(UNDECIDED if x["detector"] == UNDECIDED else str(x["severity"]) for x in findings))


def _key(row: Row, names: Iterable[str]) -> tuple[tuple[bool, Any], ...]:
    """Order rows by columns; what is not known comes first."""
    return tuple((row[name] is not None, row[name]) for name in names)


def by(rows: Rows, *names: str) -> list[Row]:
    """Put rows into the order of some columns; what is not known comes first."""
    return sorted(rows, key=lambda row: _key(row, names))


_TABLES: Mapping[str, tuple[T.StructType, tuple[str, ...]]] = {
    "findings": (FINDING, ("id",)),
    "timelines": (TIMELINE, ("namespace", "application_id", "task_id", "pod", "lane", "from_us")),
    "coverage": (COVERAGE, ("namespace", "pod")),
    "pods": (PODS, ("namespace", "pod")),
    "churn": (CHURN, ("namespace", "application_id", "task_id", "hour_us")),
    "restarts": (RESTARTS, ("namespace", "pod", "application_id", "task_id")),
    "quarantine": (QUARANTINE, ("file", "reason", "line")),
}
"""Table -> its columns, and what its rows are ordered by."""


def _frames(spark: SparkSession, tables: Tables, findings: Rows, restarts: Rows) -> dict[str, DataFrame]:
    rows = {**tables.told.rows, "findings": findings, "restarts": restarts}
    many = {"timelines": tables.told.timelines}
    if isinstance(tables.quarantine, DataFrame):
        many["quarantine"] = tables.quarantine
    else:
        rows["quarantine"] = tables.quarantine
    found = {}
    for name, (schema, order) in _TABLES.items():
        frame, more = frame_of(spark, by(rows.get(name, ()), *order), schema), many.get(name)
        if more is not None:
            frame = frame.unionByName(more)
        frame = frame.coalesce(1)
        found[name] = frame if more is None else frame.sortWithinPartitions(*order)
    return found


def _reasons(quarantine: Quarantine) -> dict[str, int]:
    if isinstance(quarantine, DataFrame):
        return {str(x["reason"]): int(x["count"]) for x in quarantine.groupBy("reason").count().collect()}
    return dict(Counter(str(row["reason"]) for row in quarantine))


def _page_data(
    tables: Tables, findings: Rows, incidents: Sequence[FleetIncident], restarts: Rows, reasons: Mapping[str, int],
    began_us: int,
) -> page.PageData:  # fmt: skip
    tasks = ((row["namespace"], row["application_id"], row["task_id"]) for row in findings if row["task_id"])
    keys = list(dict.fromkeys(tasks))[:MAX_TASKS_DRAWN]
    of = tables.told.of
    return page.PageData(
        as_of_us=tables.asked.as_of_us,
        version=__version__,
        incidents=incidents,
        findings=findings,
        coverage=by(of(reduce.COVERAGE), "namespace", "pod"),
        pods=by(of(reduce.PODS), "namespace", "pod"),
        timelines=_drawn(tables.told, keys, tables.asked.as_of_us),
        quarantine=reasons,
        unread=of_another_major(tables.quarantine) if UNKNOWN_MAJOR in reasons else {},
        unfinished=tables.unfinished,
        releases=by(of(reduce.RELEASES), "namespace", "application_id"),
        disabled=by(of(reduce.DISABLED), "detector", "namespace", "pod", "application_id"),
        restarts=by(restarts, "namespace", "pod", "application_id", "task_id"),
        known_pods=by(of(reduce.KNOWN_PODS), "namespace", "pod"),
        written_us=(written_us := clock.now_us()),
        took_s=(written_us - began_us) / 1e6 if began_us else None,
        expected=tables.expected,
    )


def _drawn(told: Told, keys: Sequence[tuple[object, ...]], as_of_us: int) -> Rows:
    """Keep the timeline rows of the drawn tasks, and what concerns their pods as a whole: what lasts, however short."""
    applications, tasks = ({str(key[part]) for key in keys} for part in (1, 2))
    rows = list(told.of(reduce.TIMELINES))
    if told.timelines is not None:
        one = F.col("application_id").isin(*applications) & F.col("task_id").isin(*tasks)
        rows += rows_of(told.timelines.where(one))
    kept = [row for row in rows if row["application_id"] in applications and row["task_id"] in tasks]
    pods: dict[tuple[object, object], list[Row]] = defaultdict(list)
    for row in rows:
        if row["task_id"] is None and row["lane"] == "unknown":
            pods[row["namespace"], row["pod"]].append(row)
    for own in pods.values():
        own.sort(key=lambda row: (row["from_us"] - row["to_us"], row["from_us"], row["detail"]))
        kept += own[:MAX_GAPS_DRAWN]
        kept += [row for row in own[MAX_GAPS_DRAWN:] if row["to_us"] >= as_of_us]
    return by(kept, "namespace", "application_id", "task_id", "pod", "from_us", "lane")
