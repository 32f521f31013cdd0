"""Answers on the terminal: why is this task as it is, how well was the fleet watched."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from agent.contract.codec import rfc3339
from spark_rollup import audit
from spark_rollup.config import FLEET, AuditOptions
from spark_rollup.correlate import RULES
from spark_rollup.errors import UsageError
from spark_rollup.facts import coverage, gaps, heartbeats, levels, settings
from spark_rollup.judging.base import last_local_findings
from spark_rollup.judging.job import judged
from spark_rollup.report import lanes, story
from spark_rollup.report.missed import in_words
from spark_rollup.spark.rows import rows_of

Row = Mapping[str, object]


def why(
    spark: SparkSession,
    options: AuditOptions,
    task: str,
    application: str | None,
    namespace: str | None = None,
) -> list[str]:
    """Return one task's story across pods: the verdict, what happened where, and what no agent saw.

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
    tasks = [] if places else _tasks(events)
    named = [(str(x[0]), str(x[1])) for x in places]
    space, application = _one_place(task, named, namespace, application, tasks)
    own = F.col("application_id").isNull() | (F.col("application_id") == application)
    about = events.where((F.col("namespace") == space) & own)
    of_task = of_task.where(F.col("namespace") == space)
    facts = audit.gather(about, options, as_of_us)
    drawn = lanes.timelines(facts)
    (found,) = audit.compute_all(judged(facts, RULES, None).findings)
    found = found.where(F.col("reported_by") == FLEET)
    pods = [str(row[0]) for row in of_task.select("pod").distinct().collect()]
    here = (F.col("task_id") == task) & (F.col("application_id") == application)
    of_pod = F.col("task_id").isNull() & F.col("pod").isin(pods)
    lived = (F.col("lane") == "process") & (F.col("application_id") == application)
    around = of_pod & ((F.col("lane") == "unknown") | lived)
    steps = rows_of(drawn.where(here | around).orderBy("from_us", "pod", "lane"))
    whole = F.col("task_id").isNull() & (F.col("application_id") == application)
    said = story.about_task(rows_of(facts.local.where(here | whole).orderBy("opened_at_us", "pod")), pods)
    verdicts = story.about_task(rows_of(found.where(here | whole).orderBy("opened_at", "detector")), pods)
    address = f"{space + '/' if space else ''}{application}/{task}"
    return [
        story.headline(address, pods, as_of_us, verdicts, said),
        *story.verdict_lines(verdicts),
        *story.said_lines(said),
        *story.story_lines(steps),
        *([unused] if (unused := settings.unused(events, options.overrides)) else []),
    ]


def _one_place(
    task: str,
    places: Sequence[tuple[str, str]],
    namespace: str | None,
    application: str | None,
    tasks: Sequence[str] = (),
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
    if not places:
        raise UsageError(f"no event of task {task}{f'; known tasks: {story.some(tasks)}' if tasks else ''}")
    known = here or sorted(places)
    names = ", ".join(sorted({name for _, name in known})) or "none"
    if len({space for space, _ in known}) > 1:
        spaces = ", ".join(sorted({space or "''" for space, _ in known}))
        raise UsageError(
            f"task {task}: name its place with --namespace ({spaces}) and --application ({names})"
        )
    raise UsageError(f"task {task}: name one of its applications with --application: {names}")


def _tasks(events: DataFrame) -> list[str]:
    rows = events.select("task_id").where(F.col("task_id").isNotNull()).distinct().collect()
    return sorted((str(row[0]) for row in rows), key=lambda name: [int(x) for x in re.findall(r"\d+", name)])


def covered(spark: SparkSession, options: AuditOptions, namespace: str | None = None) -> list[str]:
    """Return per pod how much of its time was watched, and list the times that no agent watched.

    Raises:
        UsageError: no event up to the time asked about, or none of this namespace.
    """
    events, _, as_of_us = audit.prepare(spark, options)
    (counted,) = audit.compute_all(heartbeats.beats(events))
    (unseen,) = audit.compute_all(gaps.find_gaps(events, counted, as_of_us))
    said = last_local_findings(events)
    heard = levels.with_missed(heartbeats.last_words(counted), counted, events, said)
    table = rows_of(coverage.coverage(heard, unseen, as_of_us).orderBy("namespace", "pod"))
    table = [row for row in table if namespace in (None, row["namespace"])]
    if not table:
        raise UsageError(
            f"no event up to {rfc3339(as_of_us)}{f' of namespace {namespace}' if namespace else ''}"
        )
    several = len({row["namespace"] for row in table}) > 1
    width = max(len("pod"), *(len(story.pod_name(row, several)) for row in table))
    lines = [f"{'pod':<{width}}  watched  unknown s  events lost  last seen"]
    lines += [
        f"{story.pod_name(row, several):<{width}}  {_share(row['watched_ratio']):>7}  {row['unknown_seconds']:>9.0f}"
        f"  {row['lost_events']:>11}  {row['last_seen']}"
        for row in table
    ]
    if missed := in_words(table):
        lines.append(f"  {missed}")
    here = unseen if namespace is None else unseen.where(F.col("namespace") == namespace)
    for row in rows_of(here.orderBy("namespace", "pod", "from_us").limit(story.MAX_LINES)):
        lines.append(
            f"  {story.pod_name(row, several)}: {story.moment(row['from_us'])} to"
            f" {story.moment(row['to_us'])}: {row['cause']}"
        )
    return lines


def _share(value: object) -> str:
    return "-" if value is None else f"{float(str(value)) * 100:.1f} %"
