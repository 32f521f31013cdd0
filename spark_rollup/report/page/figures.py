"""The timelines of all tasks that have a finding."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spark_rollup.report.page.address import (
    Cards,
    card_of,
    has_namespaces,
    marks,
    natural,
    pod_key,
    task_key,
    timeline_id,
)
from spark_rollup.report.page.caps import OPEN_AT_ONCE, TIMELINES_BYTES, fitting, paged
from spark_rollup.report.page.data import PageData, Row, TaskKey, level
from spark_rollup.report.page.drawing import LEGEND, Axis, Flag, axis_of, task_drawing
from spark_rollup.report.page.text import clip, count, name, parse_us


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


def timelines(data: PageData, drawn: Sequence[Chart], cards: Cards) -> tuple[str, frozenset[TaskKey]]:
    """Draw tasks that have a finding, all of one application on one time axis, as far as the page has room.

    Args:
        data: The page's data.
        drawn: What to draw.
        cards: Incidents that have a card.

    Returns:
        The section, and the tasks that are drawn.
    """
    head = '<section aria-labelledby="timelines"><h2 id="timelines">Task timelines</h2>'
    if not drawn:
        return f'{head}<p class="lead">No task has a finding, so none is drawn.</p></section>', frozenset()
    parts = [
        head,
        '<p class="lead">One row per pod. The line is the changelog offset that the copy claims, the area what was '
        "really put into it: a line far above its area is a copy with a hole.</p>",
        LEGEND,
    ]
    unknown = [row for row in data.timelines if row["lane"] == "unknown"]
    rows, findings, links = _by_task(data.timelines), _by_task(data.findings), _links(data, cards)
    left_bytes, before, keys = TIMELINES_BYTES, 0, list[TaskKey]()
    for chart in drawn:
        figures = fitting(
            (_figure(key, rows[key], unknown, findings[key], chart.axis, links) for key in chart.tasks),
            left_bytes,
        )
        left_bytes -= sum(len(figure.encode()) for figure in figures)
        keys += chart.tasks[: len(figures)]
        if not figures:
            break
        title, body = name(chart.application), "".join(paged(figures, "tasks"))
        if before < OPEN_AT_ONCE:
            parts.append(f"<h3>{title}</h3>{body}")
        else:
            many = count(len(figures), "task")
            parts.append(
                f'<details class="page group"><summary>{title} &middot; {many}</summary>{body}</details>'
            )
        before += min(len(figures), OPEN_AT_ONCE)
    left = len({task_key(row) for row in data.findings if row["task_id"]}) - len(keys)
    if left > 0:
        parts.append(
            f'<p class="lead rest">Not drawn: {count(left, "task")} more with findings; all are in the table '
            "<code>timelines</code>.</p>"
        )
    return "".join(parts) + "</section>", frozenset(keys)


def _figure(
    key: TaskKey,
    rows: Sequence[Row],
    unknown: Sequence[Row],
    findings: Sequence[Row],
    axis: Axis,
    links: Mapping[TaskKey, Sequence[str]],
) -> str:
    flags = _flags(findings)
    pods = sorted({str(row["pod"]) for row in rows} | {flag.pod for flag in flags})
    unwatched = [row for row in unknown if pod_key(row)[0] == key[0] and row["task_id"] in (None, key[2])]
    words = ", ".join(links.get(key, ())) or count(len(findings), "finding")
    return (
        f'<figure id="{timeline_id(key)}"{marks([key[0]], [key[1]], pods)}>'
        f'<figcaption><a href="#{timeline_id(key)}">{name(key[2])}</a> <small>{words}</small></figcaption>'
        f"{task_drawing(rows, unwatched, pods, flags, axis)}</figure>"
    )


def _links(data: PageData, cards: Cards) -> Mapping[TaskKey, list[str]]:
    """Link each task to its incidents, at most four."""
    found: dict[TaskKey, list[str]] = defaultdict(list)
    for incident in data.incidents:
        address = card_of(incident, cards)
        if not address:
            continue
        link = f'<a href="#{address}"><code>{clip(incident.id, 80)}</code></a>'
        for key in dict.fromkeys(task_key(one.row) for _, one in incident.findings if one.task_id):
            if len(found[key]) < 4:
                found[key].append(link)
    return found


def _by_task(rows: Sequence[Row]) -> Mapping[TaskKey, list[Row]]:
    found: dict[TaskKey, list[Row]] = defaultdict(list)
    for row in rows:
        if row["task_id"] is not None:
            found[task_key(row)].append(row)
    return found


def _flags(rows: Sequence[Row]) -> list[Flag]:
    return [
        Flag(str(row["pod"]), at_us, level(row["severity"]), f"{row['detector']}: {row['summary']}"[:300])
        for row in rows
        if row["pod"] and (at_us := parse_us(row["opened_at"])) is not None
    ]
