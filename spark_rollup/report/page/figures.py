"""The timelines of all tasks that have a finding."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from spark_rollup.report.page.data import PageData, Row, TaskKey
from spark_rollup.report.page.drawing import LEGEND, Axis, Flag, axis_of, task_drawing
from spark_rollup.report.page.text import (
    PAGE,
    anchor,
    count,
    has_namespaces,
    name,
    natural,
    paged,
    parse_us,
    task_key,
    timeline_id,
)


@dataclass(frozen=True, slots=True)
class Chart:
    """Tasks of one application on one time axis; the application has its namespace where there are several."""

    application: str
    axis: Axis
    tasks: tuple[TaskKey, ...]


def charts(data: PageData) -> list[Chart]:
    """Choose what is drawn: tasks with a finding and something to see, applications with the worst finding first."""
    rows, findings = _by_task(data.timelines), _by_task(data.findings)
    places: dict[tuple[str, str], list[TaskKey]] = defaultdict(list)
    for key in dict.fromkeys(task_key(row) for row in data.findings if row["task_id"]):
        if key in rows:
            places[key[:2]].append(key)
    found = []
    several = has_namespaces(data)
    for (namespace, application), keys in places.items():
        flags = (flag for key in keys for flag in _flags(findings[key]))
        axis = axis_of((row for key in keys for row in rows[key]), flags)
        if axis is not None:
            title = f"{namespace or '-'}/{application}" if several else application
            found.append(Chart(title, axis, tuple(sorted(keys, key=natural))))
    return found


def timelines(data: PageData, drawn: Sequence[Chart], shown: Container[str]) -> str:
    """Draw every task that has a finding, all of one application on one time axis.

    Args:
        data: The page's data.
        drawn: What to draw.
        shown: Addresses of the findings that are on the page.
    """
    head = '<h2 id="timelines">Task timelines</h2>'
    if not drawn:
        return f'{head}<p class="lead">No task has a finding, so none is drawn.</p>'
    parts = [
        head,
        '<p class="lead">One row per pod. The line is the changelog offset that the copy claims, the area what was '
        "really put into it: a line far above its area is a copy with a hole.</p>",
        LEGEND,
    ]
    unknown = [row for row in data.timelines if row["lane"] == "unknown"]
    rows, findings = _by_task(data.timelines), _by_task(data.findings)
    before = 0
    for chart in drawn:
        figures = "".join(
            paged(
                [_figure(key, rows[key], unknown, findings[key], chart.axis, shown) for key in chart.tasks],
                "tasks",
            )
        )
        head, many = name(chart.application), count(len(chart.tasks), "task")
        if before < PAGE:
            parts.append(f"<h3>{head}</h3>{figures}")
        else:
            parts.append(
                f'<details class="page group"><summary>{head} &middot; {many}</summary>{figures}</details>'
            )
        before += min(len(chart.tasks), PAGE)
    return "".join(parts)


def _figure(
    key: TaskKey,
    rows: Sequence[Row],
    unknown: Sequence[Row],
    findings: Sequence[Row],
    axis: Axis,
    shown: Container[str],
) -> str:
    flags = _flags(findings)
    pods = sorted({str(row["pod"]) for row in rows} | {flag.pod for flag in flags})
    unwatched = [row for row in unknown if row["namespace"] == key[0] and row["task_id"] in (None, key[2])]
    words = count(len(findings), "finding")
    link = f'<a href="#{anchor(findings[0])}">{words}</a>' if anchor(findings[0]) in shown else words
    return (
        f'<figure id="{timeline_id(key)}"><figcaption>{name(key[2])} <small>{link}</small></figcaption>'
        f"{task_drawing(rows, unwatched, pods, flags, axis)}</figure>"
    )


def _by_task(rows: Sequence[Row]) -> Mapping[TaskKey, list[Row]]:
    found: dict[TaskKey, list[Row]] = defaultdict(list)
    for row in rows:
        if row["task_id"] is not None:
            found[task_key(row)].append(row)
    return found


def _flags(rows: Sequence[Row]) -> list[Flag]:
    return [
        Flag(str(row["pod"]), at_us, str(row["severity"]), f"{row['detector']}: {row['summary']}")
        for row in rows
        if row["pod"] and (at_us := parse_us(row["opened_at"])) is not None
    ]
