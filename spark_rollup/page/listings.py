"""The two tables of the page: pods, and what single agents said."""

from __future__ import annotations

from collections import Counter, defaultdict

from spark_rollup.page.data import SEVERITIES, PageData, Row
from spark_rollup.page.drawing import coverage_strip
from spark_rollup.page.text import escape, integer, items_of, name, number, parse_us, percent, place


def pods(data: PageData) -> str:
    """Render one line per pod: state, what it holds, how well it was watched, what was found."""
    watch = {(row["namespace"], row["pod"]): row for row in data.coverage}
    first = min(
        (parse_us(row["first_seen"]) or data.as_of_us for row in data.coverage), default=data.as_of_us
    )
    gaps: dict[tuple[object, object], list[Row]] = defaultdict(list)
    for gap in data.timelines:
        if gap["lane"] == "unknown" and gap["task_id"] is None:
            gaps[gap["namespace"], gap["pod"]].append(gap)
    counts: dict[tuple[object, object], Counter[str]] = defaultdict(Counter)
    for item in data.findings:
        if item["status"] == "open":
            counts[item["namespace"], item["pod"]][str(item["severity"])] += 1
    lines = []
    for row in data.pods:
        key = (row["namespace"], row["pod"])
        seen, whole, found = watch.get(key, {}), gaps[key], counts[key]
        chips = " ".join(
            f'<span class="chip {level}">{found[level]} {level}</span>'
            for level in SEVERITIES
            if found[level]
        )
        state = str(row["agent_state"])
        lines.append(
            f'<tr><td class="k">{name(row["pod"])}</td><td class="k">{name(row["namespace"])}</td>'
            f'<td class="k">{name(row["node"])}</td>'
            f'<td><span class="chip {"warning" if state == "silent" else "quiet"}">{escape(state)}</span></td>'
            f'<td class="n">{integer(row["tasks_held"])}</td>'
            f"<td>{coverage_strip(whole, first, data.as_of_us)}</td>"
            f'<td class="n">{percent(number(seen.get("watched_ratio")))}</td>'
            f'<td class="n">{integer(seen.get("lost_events"))}</td><td>{chips}</td></tr>'
        )
    return (
        '<h2 id="pods">Pods</h2><p class="lead">Grey stretches were not watched: what happened there is unknown, '
        "not fine.</p>"
        '<div class="scroll"><table><thead><tr><th>Pod</th><th>Namespace</th><th>Node</th><th>Agent</th>'
        '<th class="n">Tasks held</th><th>Watched</th><th class="n"></th><th class="n">Events lost</th>'
        f"<th>Open findings</th></tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def agents(data: PageData) -> str:
    """Render what single agents reported, and whether the fleet explains it."""
    explained = {
        str(item): verdict
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
    lines = "".join(
        f'<tr><td><span class="chip {escape(row["severity"])}">{escape(row["severity"])}</span></td>'
        f"<td><code>{escape(row['detector'])}</code></td><td>{place(row)}</td><td>{escape(row['summary'])}</td>"
        f"<td>{escape(row['status'])}</td>"
        f"<td>{explained.get(str(row['finding_id']), 'local only')}</td></tr>"
        for row in sorted(
            data.local,
            key=lambda row: (str(row["finding_id"]) in explained, SEVERITIES.index(str(row["severity"]))),
        )
    )
    return (
        f'{parts[0]}<p class="lead">Findings of single pods, as last reported. '
        "<em>Local only</em>: no rule of the fleet says more about it.</p>"
        '<div class="scroll"><table><thead><tr><th>Severity</th><th>Detector</th><th>Task</th><th>Summary</th>'
        f"<th>Status</th><th>Fleet</th></tr></thead><tbody>{lines}</tbody></table></div>"
    )
