"""The timelines of all tasks that have a finding."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby

from spark_rollup.page.data import PageData, Row
from spark_rollup.page.drawing import LEGEND, Axis, Flag, axis_of, task_drawing
from spark_rollup.page.text import count, name, parse_us


def timelines(data: PageData) -> str:
    """Draw every task that has a finding, all of one application on one time axis."""
    parts = ['<h2 id="timelines">Task timelines</h2>']
    tasks = _tasks(data)
    if not tasks:
        return parts[0] + '<p class="lead">No task has a finding, so none is drawn.</p>'
    parts.append(
        '<p class="lead">One row per pod. The line is the changelog offset that the copy claims, the area what was '
        "really put into it: a line far above its area is a copy with a hole.</p>" + LEGEND
    )
    unknown = [row for row in data.timelines if row["lane"] == "unknown"]
    rows, findings = _by_task(data.timelines), _by_task(data.findings)
    for application, group in groupby(tasks, key=lambda key: key[:2]):
        keys = list(group)
        flags = {key: _flags(findings[key], key) for key in keys}
        axis = axis_of(
            (row for key in keys for row in rows[key]), (flag for key in keys for flag in flags[key])
        )
        if axis is None:
            continue
        parts.append(f"<h3>{name(application[1])}</h3>")
        parts += [_figure(key, rows[key], unknown, flags[key], axis) for key in keys]
    return "".join(parts)


def _figure(
    key: tuple[str, str, str], rows: Sequence[Row], unknown: Sequence[Row], flags: Sequence[Flag], axis: Axis
) -> str:
    pods = sorted({str(row["pod"]) for row in rows} | {flag.pod for flag in flags})
    fog = [row for row in unknown if row["namespace"] == key[0] and row["task_id"] in (None, key[2])]
    return (
        f"<figure><figcaption>{name(key[2])} <small>{count(len(flags), 'finding')}</small></figcaption>"
        f"{task_drawing(rows, fog, pods, flags, axis)}</figure>"
    )


def _tasks(data: PageData) -> list[tuple[str, str, str]]:
    drawn = {_key(row) for row in data.timelines if row["task_id"] is not None}
    return sorted(drawn & {_key(row) for row in data.findings if row["task_id"]})


def _by_task(rows: Sequence[Row]) -> Mapping[tuple[str, str, str], list[Row]]:
    found: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        found[_key(row)].append(row)
    return found


def _key(row: Row) -> tuple[str, str, str]:
    return str(row["namespace"]), str(row["application_id"]), str(row["task_id"])


def _flags(rows: Sequence[Row], key: tuple[str, str, str]) -> list[Flag]:
    return [
        Flag(str(row["pod"]), at_us, str(row["severity"]), f"{row['detector']}: {row['summary']}")
        for row in rows
        if _key(row) == key and row["pod"] and (at_us := parse_us(row["opened_at"])) is not None
    ]
