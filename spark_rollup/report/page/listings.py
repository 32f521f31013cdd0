"""The two tables of the page: pods, and what single agents said."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from spark_rollup.report.page.data import SEVERITIES, PageData, Row, severity_rank
from spark_rollup.report.page.drawing import coverage_strip
from spark_rollup.report.page.text import (
    escape,
    first_seen_us,
    integer,
    items_of,
    name,
    number,
    percent,
    place,
)

ROWS = 50
"""How many lines of a table are shown at once."""

_POD_HEADS = (
    "Pod",
    "Namespace",
    "Node",
    "Agent",
    "*Tasks held",
    "Watched",
    "*",
    "*Events lost",
    "Open findings",
)
_AGENT_HEADS = ("Severity", "Detector", "Task", "Summary", "Status", "Fleet")
_DISABLED_HEADS = ("Detector", "Reason", "Pods")
"""Names of columns; `*` = numbers, to the right."""

PODS_NAMED = 10


def disabled(data: PageData) -> str:
    """Name the detectors that agents have disabled, why, and on which pods; nothing if there are none."""
    places: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for row in data.disabled:
        places[str(row["detector"]), str(row["reason"])][name(row["pod"])] = None
    lines = []
    for (detector, reason), found in sorted(places.items()):
        more = f" and {len(found) - PODS_NAMED} more" if len(found) > PODS_NAMED else ""
        lines.append(
            f'<tr><td class="k">{escape(detector)}</td><td>{escape(reason)}</td>'
            f"<td>{', '.join([*found][:PODS_NAMED])}{more}</td></tr>"
        )
    if not lines:
        return ""
    return (
        '<h2 id="disabled">Disabled detectors</h2><p class="lead">By the settings of agents: what these '
        f"detectors would find is not in this report.</p>{_tables(_DISABLED_HEADS, lines, 'detectors')}"
    )


def pods(data: PageData) -> str:
    """Render one line per pod: state, what it holds, how well it was watched, what was found."""
    watch = {(row["namespace"], row["pod"]): row for row in data.coverage}
    first = first_seen_us(data)
    gaps: dict[tuple[object, object], list[Row]] = defaultdict(list)
    for gap in data.timelines:
        if gap["lane"] == "unknown" and gap["task_id"] is None:
            gaps[gap["namespace"], gap["pod"]].append(gap)
    counts: dict[tuple[object, object], Counter[str]] = defaultdict(Counter)
    for item in data.findings:
        if item["status"] == "open":
            counts[item["namespace"], item["pod"]][str(item["severity"])] += 1
    lines: list[tuple[bool, str]] = []
    for row in data.pods:
        key = (row["namespace"], row["pod"])
        seen, whole, found = watch.get(key, {}), gaps[key], counts[key]
        chips = " ".join(
            f'<span class="chip {level}">{found[level]} {level}</span>'
            for level in SEVERITIES
            if found[level]
        )
        state = str(row["agent_state"])
        quiet = not chips and not whole and state != "silent"
        lines.append(
            (
                quiet,
                f'<tr><td class="k">{name(row["pod"])}</td><td class="k">{name(row["namespace"])}</td>'
                f'<td class="k">{name(row["node"])}</td>'
                f'<td><span class="chip {"warning" if state == "silent" else "quiet"}">{escape(state)}</span></td>'
                f'<td class="n" data-name="tasks held">{integer(row["tasks_held"])}</td>'
                f'<td data-name="watched">{coverage_strip(whole, first, data.as_of_us)}</td>'
                f'<td class="n">{percent(number(seen.get("watched_ratio")))}</td>'
                f'<td class="n" data-name="events lost">{integer(seen.get("lost_events"))}</td><td>{chips}</td></tr>',
            )
        )
    # a stable sort: what needs attention first, each part by name
    shown = [line for _, line in sorted(lines, key=lambda line: line[0])]
    return (
        '<h2 id="pods">Pods</h2><p class="lead">Grey stretches were not watched: what happened there is unknown, '
        f"not fine. Pods with a finding or a gap come first.</p>{_tables(_POD_HEADS, shown, 'pods')}"
    )


def agents(data: PageData) -> str:
    """Render what single agents reported, and whether the fleet explains it."""
    explained = {
        (row["namespace"], str(item)): verdict
        for verdict, word in (
            ("taken into account", "explains"),
            ("refuted", "refutes"),
            ("confirmed", "confirms"),
        )
        for row in data.findings
        for item in items_of(row[word])
    }
    parts = ['<h2 id="agents">What the agents said</h2>']
    if not data.local:
        return parts[0] + '<p class="lead">No agent reported a warning, an error or damage.</p>'
    lines = [
        f'<tr><td><span class="chip {escape(row["severity"])}">{escape(row["severity"])}</span></td>'
        f"<td><code>{escape(row['detector'])}</code></td><td>{place(row)}</td><td>{escape(row['summary'])}</td>"
        f'<td data-name="agent:">{escape(row["status"])}</td>'
        f'<td data-name="fleet:">{explained.get(_key(row), "local only")}</td></tr>'
        for row in sorted(
            data.local,
            key=lambda row: (row["status"] != "open", _key(row) in explained, severity_rank(row["severity"])),
        )
    ]
    return (
        f'{parts[0]}<p class="lead">Findings of single pods, as last reported. '
        "<em>Local only</em>: no rule of the fleet says more about it.</p>"
        f"{_tables(_AGENT_HEADS, lines, 'findings of agents')}"
    )


def _key(row: Row) -> tuple[object, str]:
    """Name an agent's finding: of another namespace it is another one, whatever its id."""
    return row["namespace"], str(row["finding_id"])


def _tables(heads: Sequence[str], lines: Sequence[str], noun: str) -> str:
    """Make a table; of many lines several, all but the first folded."""
    head = "".join(
        f'<th scope="col"{" class=n" if text.startswith("*") else ""}>{text.removeprefix("*")}</th>'
        for text in heads
    )
    tables = [
        f'<div class="scroll"><table class="stack"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(lines[start : start + ROWS])}</tbody></table></div>"
        for start in range(0, max(len(lines), 1), ROWS)
    ]
    first, *others = tables
    folded = (
        f'<details class="page"><summary>{noun} {number_ * ROWS + 1} to {min((number_ + 1) * ROWS, len(lines))} of '
        f"{len(lines)}</summary>{table}</details>"
        for number_, table in enumerate(others, 1)
    )
    return first + "".join(folded)
