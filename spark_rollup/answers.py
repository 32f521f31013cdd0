"""Answers on the terminal: may this pod be restarted, why is this task as it is, how well was the fleet watched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from agent.contract.codec import rfc3339
from spark_rollup import audit, beats, coverage, gaps, lanes
from spark_rollup.config import AuditOptions
from spark_rollup.correlate.registry import RULES
from spark_rollup.errors import UsageError
from spark_rollup.restarts import ANSWERS, SAFE, restarts

Row = Mapping[str, object]

_WORST = list(ANSWERS)

MAX_LINES = 400
"""How long a task's story may get on a terminal; the middle is left out and counted."""


def safe_to_restart(spark: SparkSession, options: AuditOptions, pod: str | None) -> tuple[list[str], bool]:
    """Answer for one pod task by task, or for all pods in one table.

    Returns:
        Lines, and whether every pod asked about is safe.

    Raises:
        UsageError: no such pod in the input.
    """
    events, loaded, as_of_us = audit.prepare(spark, options)
    facts = audit.gather(events, options, as_of_us, loaded.carried)
    rows = _rows(restarts(facts).orderBy("namespace", "pod", "application_id", "task_id"))
    known = {str(row["pod"]) for row in facts.members.select("pod").distinct().collect()}
    if pod is not None and pod not in known:
        raise UsageError(f"no event of pod {pod}; known: {', '.join(sorted(known)[:20])}")
    asked = [row for row in rows if pod in (None, row["pod"])]
    lines = _one_pod(pod, asked) if pod else _all_pods(asked, sorted(known))
    return lines, all(row["answer"] == SAFE for row in asked)


def _one_pod(pod: str, rows: Sequence[Row]) -> list[str]:
    if not rows:
        return [f"{pod}: safe: it holds no task"]
    worst = max((str(row["answer"]) for row in rows), key=_WORST.index)
    lines = [f"{pod}: {worst}: {ANSWERS[worst]}"]
    for row in rows:
        good, bad = _items(row["healthy_elsewhere"]), _items(row["ill_elsewhere"])
        cost = f"; restoring costs {_bytes(row['restore_bytes'])}" if row["restore_bytes"] is not None else ""
        lines += [
            f"  {row['application_id']}/{row['task_id']}: {row['answer']}",
            f"      elsewhere: {', '.join(good) or 'no healthy copy'}"
            f"{'; not healthy: ' + ', '.join(bad) if bad else ''}{cost}",
            f"      if killed: {row['unclean_stop']}",
        ]
    return lines


def _all_pods(rows: Sequence[Row], pods: Sequence[str]) -> list[str]:
    width = max(map(len, (*pods, "pod")))
    lines = [f"{'pod':<{width}}  {'answer':<15}  tasks"]
    for pod in pods:
        found = Counter(str(row["answer"]) for row in rows if row["pod"] == pod)
        worst = max(found, key=_WORST.index, default=SAFE)
        told = ", ".join(f"{found[answer]} {answer}" for answer in _WORST if found[answer]) or "holds none"
        lines.append(f"{pod:<{width}}  {worst:<15}  {told}")
    return lines


def why(spark: SparkSession, options: AuditOptions, task: str, application: str | None) -> list[str]:
    """Tell one task's story across pods: what happened where, what nobody saw, what follows.

    Args:
        spark: The session.
        options: Input, time and settings.
        task: Task id.
        application: Application, where several have this task.

    Raises:
        UsageError: no such task, or several applications have it and none was named.
    """
    events, _, as_of_us = audit.prepare(spark, options)
    of_task = events.where(F.col("task_id") == task)
    names = sorted({str(row[0]) for row in of_task.select("application_id").distinct().collect()})
    if application is None and len(names) == 1:
        application = names[0]
    if application not in names:
        raise UsageError(
            f"task {task}: name one of its applications with --application: {', '.join(names) or 'none'}"
        )
    about = events.where(F.col("application_id").isNull() | (F.col("application_id") == application))
    facts = audit.gather(about, options, as_of_us)
    drawn = lanes.timelines(facts)
    found = reduce(DataFrame.unionByName, audit.together(*(rule.find(facts) for rule in RULES)))
    pods = [str(row[0]) for row in of_task.select("pod").distinct().collect()]
    here = F.col("task_id") == task
    unseen = F.col("task_id").isNull() & (F.col("lane") == "unknown") & F.col("pod").isin(pods)
    steps = _rows(drawn.where((here & (F.col("lane") != "size")) | unseen).orderBy("from_us", "pod", "lane"))
    said = _rows(facts.local.where(here).orderBy("opened_at_us", "pod"))
    verdicts = _rows(found.where(here).orderBy("opened_at", "detector"))
    return [
        f"{application}/{task} on {', '.join(sorted(pods))}",
        *_story(steps),
        *_said(said),
        *_verdicts(verdicts),
    ]


def _story(steps: Sequence[Row]) -> list[str]:
    lines = [f"  {_time(row['from_us'])}  {row['pod']}  {_step(row)}" for row in steps]
    lines = [line for index, line in enumerate(lines) if not index or line != lines[index - 1]]
    if len(lines) > MAX_LINES:
        half = MAX_LINES // 2
        lines = [*lines[:half], f"  ... {len(lines) - 2 * half} lines left out", *lines[-half:]]
    return lines


def _step(row: Row) -> str:
    until = "the last look" if row["detail"] == "lasting" else _time(row["to_us"])
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


def covered(spark: SparkSession, options: AuditOptions) -> list[str]:
    """Tell per pod how much of its time was watched, and list the times that nobody watched."""
    events, _, as_of_us = audit.prepare(spark, options)
    (counted,) = audit.together(beats.beats(events))
    (unseen,) = audit.together(gaps.find_gaps(events, counted, as_of_us))
    table = _rows(coverage.coverage(beats.last_words(counted), unseen, as_of_us).orderBy("namespace", "pod"))
    width = max((len(str(row["pod"])) for row in table), default=3)
    lines = [f"{'pod':<{width}}  watched  unknown s  events lost  last seen"]
    lines += [
        f"{row['pod']!s:<{width}}  {_share(row['watched_ratio']):>7}  {row['unknown_seconds']:>9.0f}"
        f"  {row['lost_events']:>11}  {row['last_seen']}"
        for row in table
    ]
    for row in _rows(unseen.orderBy("namespace", "pod", "from_us").limit(MAX_LINES)):
        lines.append(f"  {row['pod']}: {_time(row['from_us'])} to {_time(row['to_us'])}: {row['cause']}")
    return lines


def _rows(frame: DataFrame) -> list[Row]:
    return [row.asDict(recursive=True) for row in frame.collect()]


def _items(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _share(value: object) -> str:
    return "-" if value is None else f"{float(str(value)) * 100:.1f} %"


def _bytes(value: object) -> str:
    size = float(str(value))
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.0f} GiB"


def _time(at_us: object) -> str:
    return "?" if at_us is None else rfc3339(int(str(at_us)))[:23].replace("T", " ")
