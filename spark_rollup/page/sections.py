"""The page's sections, from top to bottom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from spark_rollup.page.data import PageData, Row
from spark_rollup.page.drawing import LEGEND, Axis, Flag, axis_of, coverage_strip, task_drawing
from spark_rollup.page.text import clock, count, day, escape, integer, name, parse_us, span

SEVERITIES = ("critical", "warning", "info")
MAX_STEPS = 12


def headline(data: PageData) -> str:
    """Say the verdict in one sentence."""
    bad = [row for row in data.findings if row["status"] == "open" and row["severity"] == "critical"]
    tasks = {(row["namespace"], row["application_id"], row["task_id"]) for row in bad if row["task_id"]}
    if tasks:
        places = sorted({str(pod) for row in bad for pod in [row["pod"]] if pod})
        where = f" on {', '.join(map(name, places))}" if 0 < len(places) <= 3 else ""
        return f"{count(len(tasks), 'task')} with state that cannot be trusted{where}"
    loud = [row for row in data.findings if row["status"] == "open" and row["severity"] == "warning"]
    if bad or loud:
        return f"No damage found; {count(len(bad) + len(loud), 'thing')} to look at"
    if any(row["detector"] == "unaudited" for row in data.findings):
        return "Nothing wrong found in what was watched"
    return "Nothing wrong found"


def header(data: PageData) -> str:
    """Render title, scope, and counts."""
    applications = sorted({str(app) for row in data.pods for app in _list(row["applications"])})
    first = min(
        (parse_us(row["first_seen"]) or data.as_of_us for row in data.coverage), default=data.as_of_us
    )
    shown = ", ".join(map(name, applications[:5])) + (" and others" if len(applications) > 5 else "")
    facts = (
        f"{count(len(data.pods), 'pod')} &middot; {count(len(applications), 'application')}"
        f"{': ' if shown else ''}{shown} &middot; {day(first)} {clock(first)} to "
        f"{day(data.as_of_us) + ' ' if day(data.as_of_us) != day(first) else ''}{clock(data.as_of_us)} UTC"
    )
    return (
        f'<p class="brand">statewarden fleet audit</p><h1>{headline(data)}</h1><p class="facts">{facts}</p>'
        '<nav aria-label="Sections"><a href="#findings">Findings</a><a href="#timelines">Task timelines</a>'
        '<a href="#pods">Pods</a><a href="#agents">What the agents said</a></nav>'
    )


def tiles(data: PageData) -> str:
    """Render the counts: open findings by severity, resolved ones, how much was watched."""
    alive = Counter(str(row["severity"]) for row in data.findings if row["status"] == "open")
    resolved = sum(1 for row in data.findings if row["status"] != "open")
    total = sum(_number(row["span_seconds"]) for row in data.coverage)
    unknown = sum(_number(row["unknown_seconds"]) for row in data.coverage)
    watched = 1 - unknown / total if total else 0.0
    cells = [(level if alive[level] else "none", str(alive[level]), f"{level}, open") for level in SEVERITIES]
    cells.append(("none" if not resolved else "", str(resolved), "resolved"))
    cells.append(("good" if watched > 0.99 else "warning", _percent(watched), "of pod time watched"))
    body = "".join(
        f'<div class="tile {kind}"><b>{value}</b><span>{label}</span></div>' for kind, value, label in cells
    )
    return f'<div class="tiles">{body}</div>'


def to_do(data: PageData) -> str:
    """Render what to do about open critical findings: one item per rule and pod, the other tasks named behind it."""
    groups: dict[tuple[str, str, str, str], list[Row]] = {}
    for row in data.findings:
        if row["status"] == "open" and row["severity"] == "critical":
            key = (str(row["namespace"]), str(row["application_id"]), str(row["detector"]), str(row["pod"]))
            groups.setdefault(key, []).append(row)
    if not groups:
        return ""
    items = "".join(f"<li>{_step(rows)}</li>" for rows in list(groups.values())[:MAX_STEPS])
    rest = len(groups) - MAX_STEPS
    more = f'<p class="who">and {rest} more, below</p>' if rest > 0 else ""
    return f'<section class="todo" aria-labelledby="todo"><h2 id="todo">Do this first</h2><ol>{items}</ol>{more}</section>'


def _step(rows: Sequence[Row]) -> str:
    first = rows[0]
    others = [name(row["task_id"]) for row in rows[1:] if row["task_id"]]
    also = f' <span class="who">The same for {", ".join(others[:12])}{" and others" if len(others) > 12 else ""}.</span>'
    link = f'<a href="#f-{escape(first["id"])}">why</a>'
    return f"{escape(first['next_action'])}{also if others else ''} {link}"


def findings(data: PageData) -> str:
    """Render findings, grouped by rule and application; the first critical one of each group is unfolded."""
    parts = ['<h2 id="findings">Findings</h2>']
    if not data.findings:
        return (
            parts[0] + '<p class="lead">No rule found anything. What nobody watched is listed under Pods.</p>'
        )
    parts.append(
        '<p class="lead">Statements that need several pods. Each opens to its chain of evidence.</p>'
    )
    for (status, rule, application), group in groupby(data.findings, key=_group):
        rows = list(group)
        state = "" if status == "open" else " &middot; resolved"
        app = f" &middot; {name(application)}" if application else ""
        parts.append(
            f'<p class="group"><code>{escape(rule)}</code>{app} &middot; {count(len(rows), "finding")}{state}</p>'
        )
        for index, row in enumerate(rows):
            unfold = index == 0 and status == "open" and row["severity"] == "critical"
            parts.append(_finding(row, unfold=unfold))
    return "".join(parts)


def _group(row: Row) -> tuple[str, str, str]:
    return str(row["status"]), str(row["detector"]), str(row["application_id"] or "")


def _finding(row: Row, *, unfold: bool) -> str:
    severity = str(row["severity"])
    confirms = len(_list(row["confirms"]))
    facts = [
        f"{escape(row['confidence'])}",
        f"opened {escape(str(row['opened_at'])[:19].replace('T', ' '))} UTC",
        f"upstream: {escape(', '.join(map(str, _list(row['upstream']))))}" if _list(row["upstream"]) else "",
        f"release affected: {escape(row['affected'])}" if row["level"] != "self" else "",
        f"explains {count(confirms, 'agent finding')}" if confirms else "",
        f"pods: {', '.join(map(name, _list(row['pods'])))}" if len(_list(row["pods"])) > 1 else "",
    ]
    missing = _list(row["missing_facts"])
    ask = (
        f'<p class="meta">Would decide more: {", ".join(f"<code>{escape(key)}</code>" for key in missing)} '
        "(<code>--set KEY=VALUE</code>).</p>"
        if missing
        else ""
    )
    return (
        f'<details class="finding" id="f-{escape(row["id"])}"{" open" if unfold else ""}><summary>'
        f'<span><span class="chip {escape(severity)}">{escape(severity)}</span></span>'
        f'<span class="where">{_place(row)} <small>{escape(row["confidence"])}</small></span>'
        f'<span class="say">{escape(row["summary"])}</span></summary><div class="body">'
        f'<p class="action"><b>Next safe step</b>{escape(row["next_action"])}</p>{ask}{_chain(_list(row["evidence"]))}'
        f'<p class="meta">{" &middot; ".join(filter(None, facts))} &middot; <code>{escape(row["id"])}</code></p></div></details>'
    )


def _chain(evidence: Iterable[object]) -> str:
    items = []
    first: int | None = None
    for step in evidence:
        assert isinstance(step, Mapping)
        at_us = parse_us(step["at"])
        first = at_us if first is None else first
        since = (
            f" +{span((at_us - first) / 1e6)}"
            if at_us is not None and first is not None and at_us > first
            else ""
        )
        shown = clock(at_us, millis=True) if at_us is not None else escape(step["at"])
        where = f"<small>{escape(step['where'])}</small>" if step["where"] else ""
        items.append(
            f'<li><time datetime="{escape(step["at"])}" title="{escape(step["at"])}{escape(since)}">{shown}</time>'
            f"<div>{escape(step['what'])}{where}</div></li>"
        )
    return f'<ol class="chain">{"".join(items)}</ol>' if items else ""


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
    for application, group in groupby(tasks, key=lambda key: key[:2]):
        keys = list(group)
        rows = {key: [row for row in data.timelines if _key(row) == key] for key in keys}
        flags = {key: _flags(data.findings, key) for key in keys}
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


def _key(row: Row) -> tuple[str, str, str]:
    return str(row["namespace"]), str(row["application_id"]), str(row["task_id"])


def _flags(rows: Sequence[Row], key: tuple[str, str, str]) -> list[Flag]:
    return [
        Flag(str(row["pod"]), at_us, str(row["severity"]), f"{row['detector']}: {row['summary']}")
        for row in rows
        if _key(row) == key and row["pod"] and (at_us := parse_us(row["opened_at"])) is not None
    ]


def pods(data: PageData) -> str:
    """Render one line per pod: state, what it holds, how well it was watched, what was found."""
    watch = {(row["namespace"], row["pod"]): row for row in data.coverage}
    first = min(
        (parse_us(row["first_seen"]) or data.as_of_us for row in data.coverage), default=data.as_of_us
    )
    lines = []
    for row in data.pods:
        seen = watch.get((row["namespace"], row["pod"]), {})
        whole = [
            gap for gap in data.timelines
            if gap["lane"] == "unknown" and gap["task_id"] is None and (gap["namespace"], gap["pod"]) == (row["namespace"], row["pod"])
        ]  # fmt: skip
        found = Counter(
            str(item["severity"]) for item in data.findings
            if item["status"] == "open" and item["namespace"] == row["namespace"] and item["pod"] == row["pod"]
        )  # fmt: skip
        chips = " ".join(
            f'<span class="chip {level}">{found[level]} {level}</span>'
            for level in SEVERITIES
            if found[level]
        )
        state = str(row["agent_state"])
        lines.append(
            f"<tr><td>{name(row['pod'])}</td><td>{name(row['namespace'])}</td><td>{name(row['node'])}</td>"
            f'<td><span class="chip {"warning" if state == "silent" else "quiet"}">{escape(state)}</span></td>'
            f'<td class="n">{integer(row["tasks_held"])}</td>'
            f"<td>{coverage_strip(whole, first, data.as_of_us)}</td>"
            f'<td class="n">{_percent(_number(seen.get("watched_ratio")))}</td>'
            f'<td class="n">{integer(seen.get("lost_events"))}</td><td>{chips}</td></tr>'
        )
    return (
        '<h2 id="pods">Pods</h2><p class="lead">Grey stretches were not watched: what happened there is unknown, not fine.'
        '</p><div class="scroll"><table><thead><tr><th>Pod</th><th>Namespace</th><th>Node</th><th>Agent</th>'
        '<th class="n">Tasks held</th><th>Watched</th><th class="n"></th><th class="n">Events lost</th><th>Open findings</th>'
        f"</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def agents(data: PageData) -> str:
    """Render what single agents reported, and whether the fleet explains it."""
    explained = {str(item) for row in data.findings for item in _list(row["confirms"])}
    parts = ['<h2 id="agents">What the agents said</h2>']
    if not data.local:
        return parts[0] + '<p class="lead">No agent reported a warning, an error or damage.</p>'
    lines = "".join(
        f'<tr><td><span class="chip {escape(row["severity"])}">{escape(row["severity"])}</span></td>'
        f"<td><code>{escape(row['detector'])}</code></td><td>{_place(row)}</td><td>{escape(row['summary'])}</td>"
        f"<td>{escape(row['status'])}</td><td>{'above' if str(row['finding_id']) in explained else 'local only'}</td></tr>"
        for row in sorted(
            data.local,
            key=lambda row: (str(row["finding_id"]) in explained, SEVERITIES.index(str(row["severity"]))),
        )
    )
    return (
        f'{parts[0]}<p class="lead">Findings of single pods, as last reported. '
        "<em>Local only</em>: no rule of the fleet says more about it.</p>"
        '<div class="scroll"><table><thead><tr><th>Severity</th><th>Detector</th><th>Task</th><th>Summary</th><th>Status</th>'
        f"<th>Fleet</th></tr></thead><tbody>{lines}</tbody></table></div>"
    )


def footer(data: PageData) -> str:
    """Render what limits the audit."""
    lines = [
        "Times are UTC, as the agents' clocks had them.",
        "Puts are upper bounds of what a store holds: overwritten and deleted keys count too.",
    ]
    if data.quarantine:
        told = ", ".join(f"{number} {escape(reason)}" for reason, number in sorted(data.quarantine.items()))
        lines.append(f"Not used, see the table <code>quarantine</code>: {told}.")
    items = "".join(f"<li>{line}</li>" for line in lines)
    return f"<footer><ul>{items}</ul>statewarden-rollup {escape(data.version)}</footer>"


def _place(row: Row) -> str:
    task = (
        f"{name(row['task_id'])}"
        if row["task_id"]
        else name(row["application_id"])
        if row["application_id"]
        else ""
    )
    store = f" / {name(row['store'])}" if row.get("store") else ""
    pod = name(row["pod"]) if row["pod"] else ""
    return f"{task}{store}{' on ' if task and pod else ''}{pod}" or "fleet"


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []


def _number(value: object) -> float:
    return float(str(value)) if value is not None else 0.0


def _percent(share: float) -> str:
    text = f"{share * 100:.1f}"
    return "100 %" if text == "100.0" and share >= 1 else f"{min(float(text), 99.9):.1f} %"
