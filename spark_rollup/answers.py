"""Answers on the terminal: why is this task as it is, how well was the fleet watched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from agent.contract.codec import rfc3339
from spark_rollup import audit
from spark_rollup.config import AuditOptions
from spark_rollup.correlate import RULES
from spark_rollup.errors import UsageError
from spark_rollup.facts import coverage, gaps, heartbeats
from spark_rollup.report import lanes

Row = Mapping[str, object]

MAX_LINES = 400
"""How long a task's story may get on a terminal; the middle is left out and counted."""


def why(
    spark: SparkSession,
    options: AuditOptions,
    task: str,
    application: str | None,
    namespace: str | None = None,
) -> list[str]:
    """Print one task's story across pods: what happened where, what no agent saw, what follows.

    Args:
        spark: The session.
        options: Input, time and settings.
        task: Task id.
        application: Application, where several have this task.
        namespace: Namespace, where several have this application.

    Raises:
        UsageError: no such task, or several applications have it and none was named.
    """
    events, _, as_of_us = audit.prepare(spark, options)
    of_task = events.where(F.col("task_id") == task)
    places = of_task.select("namespace", "application_id").distinct().collect()
    space, application = _one_place(task, [(str(x[0]), str(x[1])) for x in places], namespace, application)
    own = F.col("application_id").isNull() | (F.col("application_id") == application)
    about = events.where((F.col("namespace") == space) & own)
    of_task = of_task.where(F.col("namespace") == space)
    facts = audit.gather(about, options, as_of_us)
    drawn = lanes.timelines(facts)
    found = reduce(DataFrame.unionByName, audit.together(*(rule.find(facts) for rule in RULES)))
    pods = [str(row[0]) for row in of_task.select("pod").distinct().collect()]
    here = (F.col("task_id") == task) & (F.col("application_id") == application)
    unseen = F.col("task_id").isNull() & (F.col("lane") == "unknown") & F.col("pod").isin(pods)
    steps = _rows(drawn.where((here & (F.col("lane") != "size")) | unseen).orderBy("from_us", "pod", "lane"))
    said = _rows(facts.local.where(here).orderBy("opened_at_us", "pod"))
    verdicts = _rows(found.where(here).orderBy("opened_at", "detector"))
    return [
        f"{space + '/' if space else ''}{application}/{task} on {', '.join(sorted(pods))}",
        *_story(steps),
        *_said(said),
        *_verdicts(verdicts),
    ]


def _one_place(
    task: str, places: Sequence[tuple[str, str]], namespace: str | None, application: str | None
) -> tuple[str, str]:
    """Choose the only namespace and application that are meant.

    Raises:
        UsageError: there is none, or more than one.
    """
    here = sorted(
        place for place in places if namespace in (None, place[0]) and application in (None, place[1])
    )
    if len(here) == 1:
        return here[0]
    known = here or sorted(places)
    names = ", ".join(sorted({name for _, name in known})) or "none"
    if len({space for space, _ in known}) > 1:
        spaces = ", ".join(sorted({space or "''" for space, _ in known}))
        raise UsageError(
            f"task {task}: name its place with --namespace ({spaces}) and --application ({names})"
        )
    raise UsageError(f"task {task}: name one of its applications with --application: {names}")


def _story(steps: Sequence[Row]) -> list[str]:
    lines = [f"  {_time(row['from_us'])}  {row['pod']}  {_step(row)}" for row in steps]
    lines = [line for index, line in enumerate(lines) if not index or line != lines[index - 1]]
    if len(lines) > MAX_LINES:
        half = MAX_LINES // 2
        lines = [*lines[:half], f"  ... {len(lines) - 2 * half} lines left out", *lines[-half:]]
    return lines


def _step(row: Row) -> str:
    until = "the last reading" if row["detail"] == "lasting" else _time(row["to_us"])
    spans = {
        "holder": f"holds the task until {until}",
        "cleaner": f"its cleaner has the lock until {until}",
        "process": f"the process lives until {until}",
        "unknown": f"not watched until {until}: {row['detail']}",
        "incarnation": f"store {row['store']}, {row['detail']}",
        "checkpoint": f"checkpoint at offset {row['offset']}",
    }
    return spans.get(str(row["lane"]), f"{row['lane']}: {row['detail']}")


def _said(rows: Iterable[Row]) -> list[str]:
    return [
        f"  agent on {row['pod']}: {row['severity']} {row['confidence']} {row['detector']} [{row['status']}]: "
        f"{row['summary']}"
        for row in rows
    ]


def _verdicts(rows: Sequence[Row]) -> list[str]:
    lines = []
    for row in rows:
        lines.append(f"  fleet: {row['severity']} {row['confidence']} {row['detector']}: {row['summary']}")
        lines.append(f"         -> {row['next_action']}")
    return lines or ["  fleet: no rule finds anything"]


def covered(spark: SparkSession, options: AuditOptions, namespace: str | None = None) -> list[str]:
    """Return per pod how much of its time was watched, and list the times that no agent watched.

    Raises:
        UsageError: no event up to the time asked about, or none of this namespace.
    """
    events, _, as_of_us = audit.prepare(spark, options)
    (counted,) = audit.together(heartbeats.beats(events))
    (unseen,) = audit.together(gaps.find_gaps(events, counted, as_of_us))
    table = _rows(
        coverage.coverage(heartbeats.last_words(counted), unseen, as_of_us).orderBy("namespace", "pod")
    )
    table = [row for row in table if namespace in (None, row["namespace"])]
    if not table:
        raise UsageError(
            f"no event up to {rfc3339(as_of_us)}{f' of namespace {namespace}' if namespace else ''}"
        )
    several = len({row["namespace"] for row in table}) > 1
    width = max(len("pod"), *(len(place(row, several)) for row in table))
    lines = [f"{'pod':<{width}}  watched  unknown s  events lost  last seen"]
    lines += [
        f"{place(row, several):<{width}}  {_share(row['watched_ratio']):>7}  {row['unknown_seconds']:>9.0f}"
        f"  {row['lost_events']:>11}  {row['last_seen']}"
        for row in table
    ]
    here = unseen if namespace is None else unseen.where(F.col("namespace") == namespace)
    for row in _rows(here.orderBy("namespace", "pod", "from_us").limit(MAX_LINES)):
        lines.append(
            f"  {place(row, several)}: {_time(row['from_us'])} to {_time(row['to_us'])}: {row['cause']}"
        )
    return lines


def place(row: Row, several: bool) -> str:
    """Name a pod, with its namespace where there are several."""
    return f"{row['namespace'] or '-'}/{row['pod']}" if several else str(row["pod"])


def _rows(frame: DataFrame) -> list[Row]:
    return [row.asDict(recursive=True) for row in frame.collect()]


def _share(value: object) -> str:
    return "-" if value is None else f"{float(str(value)) * 100:.1f} %"


def _time(at_us: object) -> str:
    return "?" if at_us is None else rfc3339(int(str(at_us)))[:23].replace("T", " ")
