"""The tables at the end of the page: disabled detectors, agents, and what single agents said."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

from spark_rollup.report.page.address import (
    first_seen_us,
    has_namespaces,
    marks,
    place,
    pod_key,
    pod_name,
    restart_id,
)
from spark_rollup.report.page.caps import AGENTS_BYTES, PODS_BYTES, fitting
from spark_rollup.report.page.data import SEVERITIES, WORDS, PageData, PodKey, Row, level, severity_rank
from spark_rollup.report.page.drawing import coverage_strip
from spark_rollup.report.page.text import (
    clip,
    count,
    escape,
    integer,
    items_of,
    name,
    named,
    number,
    percent,
)
from spark_rollup.report.page.verdict import is_open

ROWS = 50
"""How many lines of a table are shown at once."""

_POD_HEADS = (
    "Pod",
    "Node",
    "Agent",
    "Version",
    "*Tasks held",
    "Watched",
    "*Share",
    "*Events lost",
    "Incidents",
)
_AGENT_HEADS = ("Severity", "Detector", "Task", "Summary", "Status", "Fleet")
_DISABLED_HEADS = ("Detector", "Reason", "Pods")
"""Names of columns; `*` = numbers, to the right."""

PODS_NAMED = 10


def disabled(data: PageData) -> str:
    """Name the detectors that agents have disabled, why, and on which pods; nothing if there are none."""
    places: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for row in data.disabled:
        places[str(row["detector"]), str(row["reason"])][str(row["pod"])] = None
    lines = [
        f'<tr><td class="k">{clip(detector, 100)}</td><td>{clip(reason, 500)}</td>'
        f"<td>{named(list(found), PODS_NAMED)}</td></tr>"
        for (detector, reason), found in sorted(places.items())
    ]
    if not lines:
        return ""
    return (
        '<section aria-labelledby="disabled"><h2 id="disabled">Disabled detectors</h2><p class="lead">By the settings '
        "of agents: what these detectors would find is not in this report.</p>"
        f"{_tables(_DISABLED_HEADS, lines, 'disabled detectors')}</section>"
    )


def pods(data: PageData, answered: Collection[PodKey]) -> str:
    """Render one line per pod: its agent, what it holds, how well it was watched, its incidents.

    Args:
        data: The page's data.
        answered: Pods whose answer about a restart is on the page.
    """
    watch = {pod_key(row): row for row in data.coverage}
    first, several = first_seen_us(data), has_namespaces(data)
    gaps: dict[PodKey, list[Row]] = defaultdict(list)
    for gap in data.timelines:
        if gap["lane"] == "unknown" and gap["task_id"] is None:
            gaps[pod_key(gap)].append(gap)
    counts: dict[PodKey, Counter[str]] = defaultdict(Counter)
    for incident in data.incidents:
        if is_open(incident):
            for pod in incident.pods:
                counts[incident.namespace, pod][level(incident.severity)] += 1

    def attention(row: Row) -> tuple[bool, bool]:
        key = pod_key(row)
        return row["agent_state"] != "silent", not (counts[key] or gaps[key])

    def line(row: Row) -> str:
        key = pod_key(row)
        return _pod(row, watch.get(key, {}), coverage_strip(gaps[key], first, data.as_of_us), counts[key],
                    _linked(row, answered, several=several))  # fmt: skip

    # a stable sort: what needs attention first, each part by name
    ordered = sorted(data.pods, key=attention)
    lines = fitting(map(line, ordered), PODS_BYTES)
    return (
        '<section aria-labelledby="pods"><h2 id="pods">Agents</h2><p class="lead">Grey stretches were not '
        "watched: what happened there is unknown, not fine. Pods that are silent, have an incident or a gap come "
        "first.</p>"
        f"{_tables(_POD_HEADS, lines, 'pods')}{_rest(len(ordered) - len(lines), 'pod', 'pods')}</section>"
    )


def _linked(row: Row, answered: Collection[PodKey], *, several: bool) -> str:
    key = pod_key(row)
    words = pod_name(key, several)
    return f'<a href="#{restart_id(key)}">{words}</a>' if key in answered else words


def _pod(row: Row, seen: Row, strip: str, found: Counter[str], linked: str) -> str:
    chips = " ".join(f'<span class="chip {x}">{found[x]} {WORDS[x]}</span>' for x in SEVERITIES if found[x])
    state = str(row["agent_state"])
    tone = "quiet" if state in ("watching", "stopped") else "warning"
    applications = items_of(row["applications"])
    return (
        f'<tr{marks([row["namespace"]], applications, [row["pod"]])}><td class="k">{linked}</td>'
        f'<td class="k">{name(row["node"])}</td><td><span class="chip {tone}">{escape(state)}</span></td>'
        f'<td class="k" data-name="version">{name(row["agent_version"])}</td>'
        f'<td class="n" data-name="tasks held">{integer(row["tasks_held"])}</td>'
        f'<td data-name="watched">{strip}</td>'
        f'<td class="n">{percent(number(seen.get("watched_ratio")))}</td>'
        f'<td class="n" data-name="events lost">{integer(seen.get("lost_events"))}</td><td>{chips}</td></tr>'
    )


def _rest(left: int, noun: str, table: str) -> str:
    if left <= 0:
        return ""
    return (
        f'<p class="lead rest">Not on this page: {count(left, noun)} more; all are in the table '
        f"<code>{table}</code>.</p>"
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
    head = '<section aria-labelledby="agents"><h2 id="agents">What agents said</h2>'
    if not data.local:
        return f'{head}<p class="lead">No agent reported a warning, an error or damage.</p></section>'
    ordered = sorted(
        data.local,
        key=lambda row: (row["status"] != "open", _key(row) in explained, severity_rank(row["severity"])),
    )
    lines = fitting((_said(row, explained.get(_key(row), "local only")) for row in ordered), AGENTS_BYTES)
    left = len(ordered) - len(lines)
    rest = f'<p class="lead rest">{count(left, "finding")} more are left out here.</p>' if left else ""
    return (
        f'{head}<p class="lead">Findings of single pods, as last reported. '
        "<em>Local only</em>: no rule of the fleet says more about it.</p>"
        f"{_tables(_AGENT_HEADS, lines, 'findings of agents')}{rest}</section>"
    )


def _said(row: Row, verdict: str) -> str:
    severity = level(row["severity"])
    where = marks([row["namespace"]], [row["application_id"]], [row["pod"]], severity)
    return (
        f'<tr{where}><td><span class="chip {severity}">{escape(row["severity"])}</span></td>'
        f"<td><code>{clip(row['detector'], 100)}</code></td><td>{place(row)}</td><td>{clip(row['summary'], 600)}</td>"
        f'<td data-name="agent:">{escape(row["status"])}</td><td data-name="fleet:">{verdict}</td></tr>'
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
        f'<div class="scroll" role="region" tabindex="0" aria-label="{noun} from {start + 1}">'
        f'<table class="stack"><thead><tr>{head}</tr></thead>'
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
