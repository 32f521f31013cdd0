"""Verdict, counts, what to do, and the findings with their evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import groupby

from spark_rollup.config import AGENT
from spark_rollup.report.page.data import SEVERITIES, PageData, Row, TaskKey
from spark_rollup.report.page.text import (
    PAGE,
    anchor,
    clock,
    count,
    day,
    escape,
    first_seen_us,
    has_namespaces,
    items_of,
    name,
    number,
    paged,
    parse_us,
    percent,
    place,
    service,
    span,
    task_key,
    timeline_id,
)

MAX_STEPS = 12
"""How many first steps the page asks for; more than that is no list of first things."""

MAX_FINDINGS = 5000
"""The page shows so many findings, the worst first; the table has all. So many open in seconds,
a hundred thousand in minutes."""

FINDINGS_SHOWN = 100
"""When so many findings are shown, further groups are one line each, which opens."""


def headline(data: PageData) -> str:
    """Say the verdict in one sentence."""
    bad = [row for row in data.findings if row["status"] == "open" and row["severity"] == "critical"]
    tasks = {(row["namespace"], row["application_id"], row["task_id"]) for row in bad if row["task_id"]}
    if tasks:
        several = has_namespaces(data)
        places = sorted(
            {
                f"{row['namespace'] or '-'}/{row['pod']}" if several else str(row["pod"])
                for row in bad
                if row["pod"]
            }
        )
        where = f" on {', '.join(map(name, places))}" if 0 < len(places) <= 3 else ""
        return f"{count(len(tasks), 'task')} with state that cannot be trusted{where}"
    warnings = [row for row in data.findings if row["status"] == "open" and row["severity"] == "warning"]
    if bad:
        return f"{count(len(bad) + len(warnings), 'thing')} to check, {len(bad)} of them critical"
    if warnings:
        return f"No damage found{_in_what(data)}; {count(len(warnings), 'thing')} to check"
    return f"Nothing wrong found{_in_what(data)}"


def _in_what(data: PageData) -> str:
    """Say what an all-clear is about, where that is less than everything."""
    if not data.pods:
        return ": no pod was watched"
    parts = []
    silent = sum(1 for row in data.pods if row["agent_state"] == "silent")
    if silent:
        parts.append(f"{count(silent, 'pod')} silent")
    watched = watched_share(data)
    if watched < 1:
        parts.append(f"{percent(watched)} of pod time watched")
    if data.quarantine:
        parts.append(f"{count(sum(data.quarantine.values()), 'line')} or files not used")
    unasked = {row["detector"] for row in data.disabled}
    if unasked:
        parts.append(f"{count(len(unasked), 'detector')} disabled")
    return f" in what was watched ({', '.join(parts)})" if parts else " in what was watched"


def watched_share(data: PageData) -> float:
    """Return how much of the pods' time was watched."""
    total = sum(number(row["span_seconds"]) for row in data.coverage)
    return 1 - sum(number(row["unknown_seconds"]) for row in data.coverage) / total if total else 0.0


def header(data: PageData) -> str:
    """Render title, scope, and counts."""
    applications = sorted({str(app) for row in data.pods for app in items_of(row["applications"])})
    first = first_seen_us(data)
    shown = ", ".join(map(name, applications[:5])) + (" and others" if len(applications) > 5 else "")
    facts = (
        f"{count(len(data.pods), 'pod')} &middot; {count(len(applications), 'application')}"
        f"{': ' if shown else ''}{shown} &middot; {day(first)} {clock(first)} to "
        f"{day(data.as_of_us) + ' ' if day(data.as_of_us) != day(first) else ''}{clock(data.as_of_us)} UTC"
    )
    by_release = '<a href="#releases">By release</a>' if data.releases else ""
    return (
        f'<p class="brand">statewarden fleet audit</p><h1>{headline(data)}</h1><p class="facts">{facts}</p>'
        f'<nav aria-label="Sections">{by_release}<a href="#findings">Findings</a>'
        '<a href="#timelines">Task timelines</a><a href="#pods">Pods</a>'
        '<a href="#agents">What the agents said</a></nav>'
    )


def tiles(data: PageData) -> str:
    """Render the counts: open findings by severity, resolved ones, how much was watched."""
    alive = Counter(str(row["severity"]) for row in data.findings if row["status"] == "open")
    resolved = sum(1 for row in data.findings if row["status"] != "open")
    watched = watched_share(data)
    cells = [(level if alive[level] else "none", str(alive[level]), f"{level}, open") for level in SEVERITIES]
    cells.append(("none" if not resolved else "", str(resolved), "resolved"))
    cells.append(("good" if watched > 0.99 else "warning", percent(watched), "of pod time watched"))
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
    # where there are too many, the first of each rule before the second of any
    turn: Counter[str] = Counter()
    places: dict[tuple[str, ...], int] = {}
    for key in groups:
        places[key] = turn[key[2]] if len(groups) > MAX_STEPS else 0
        turn[key[2]] += 1
    chosen = sorted(groups, key=lambda key: places[key])[:MAX_STEPS]
    named = {(row["namespace"], app) for row in data.pods for app in items_of(row["applications"])}
    several = len(named | {key[:2] for key in groups}) > 1
    items = "".join(f"<li>{_step(groups[key], shown(data), several=several)}</li>" for key in chosen)
    rest = len(groups) - MAX_STEPS
    more = f'<p class="who">and {rest} more, below</p>' if rest > 0 else ""
    head = '<section class="todo" aria-labelledby="todo"><h2 id="todo">Do this first</h2>'
    return f"{head}<ol>{items}</ol>{more}</section>"


def shown(data: PageData) -> frozenset[str]:
    """List the addresses of the findings that are on the page."""
    return frozenset(anchor(row) for row in data.findings[:MAX_FINDINGS])


def _step(rows: Sequence[Row], shown: Container[str], *, several: bool) -> str:
    first = rows[0]
    others = [
        name(task)
        for task in dict.fromkeys(row["task_id"] for row in rows)
        if task and task != first["task_id"]
    ]
    named = ", ".join(others[:12]) + (" and others" if len(others) > 12 else "")
    also = f' <span class="who">The same for {named}.</span>'
    link = f' <a href="#{anchor(first)}">why</a>' if anchor(first) in shown else ""
    # every application has a task 0_0: what is to be removed must have its whole address
    parts = [service(first)] if several else []
    if first["reported_by"] == AGENT:  # its agent says "this instance"
        parts.append(place(first))
    whose = f'<span class="who">{", ".join(parts)}:</span> ' if parts else ""
    return f"{whose}{escape(first['next_action'])}{also if others else ''}{link}"


def findings(data: PageData, drawn: Container[TaskKey]) -> str:
    """Render findings, grouped by rule and application; the first critical one of each group is unfolded.

    Args:
        data: The page's data.
        drawn: Tasks whose timeline is on the page.
    """
    parts = ['<h2 id="findings">Findings</h2>']
    if not data.findings:
        return (
            parts[0]
            + '<p class="lead">No rule found anything, and no agent reported a warning. What no agent watched is '
            "listed under Pods.</p>"
        )
    parts.append(
        '<p class="lead">Statements that need several pods, and what single agents say that no rule settles. Each '
        "opens to its chain of evidence.</p>"
    )
    before = 0
    named = has_namespaces(data)
    for (status, rule, reporter, namespace, application), group in groupby(
        data.findings[:MAX_FINDINGS], key=_group
    ):
        rows = list(group)
        state = "" if status == "open" else " &middot; resolved"
        app = f" &middot; {name(application)}" if application else ""
        where = f" &middot; {name(namespace) if namespace else 'no namespace'}" if named else ""
        by = " &middot; reported by agents" if reporter == AGENT else ""
        head = f"<code>{escape(rule)}</code>{where}{app} &middot; {count(len(rows), 'finding')}{state}{by}"
        shown = [
            _finding(row, drawn, unfold=index == 0 and status == "open" and row["severity"] == "critical")
            for index, row in enumerate(rows)
        ]
        body = "".join(paged(shown, "findings"))
        if before < FINDINGS_SHOWN:
            parts.append(f'<p class="group">{head}</p>{body}')
        else:
            parts.append(f'<details class="page group"><summary>{head}</summary>{body}</details>')
        before += min(len(rows), PAGE)
    left = len(data.findings) - MAX_FINDINGS
    if left > 0:
        parts.append(
            f'<p class="lead">{count(left, "finding")} more, none worse, in the table <code>findings</code> and in '
            "<code>findings.jsonl</code>.</p>"
        )
    return "".join(parts)


def _group(row: Row) -> tuple[str, str, str, str, str]:
    return (
        str(row["status"]), str(row["detector"]), str(row["reported_by"]),
        str(row["namespace"] or ""), str(row["application_id"] or ""),
    )  # fmt: skip


def _finding(row: Row, drawn: Container[TaskKey], *, unfold: bool) -> str:
    severity, key = str(row["severity"]), task_key(row)
    facts = [
        f'<a href="#{timeline_id(key)}">timeline of {name(row["task_id"])}</a>' if key in drawn else "",
        f"{escape(row['confidence'])}",
        "reported by the pod's agent; no rule of the fleet says more about it"
        if row["reported_by"] == AGENT
        else "",
        f"opened {escape(str(row['opened_at'])[:19].replace('T', ' '))} UTC",
        f"upstream: {escape(', '.join(map(str, items_of(row['upstream']))))}"
        if items_of(row["upstream"])
        else "",
        f"release affected: {escape(row['affected'])}" if row["level"] != "self" else "",
        *(
            f"{word} {count(len(items_of(row[word])), 'agent finding')}"
            for word in ("confirms", "refutes", "explains")
            if items_of(row[word])
        ),
        f"pods: {', '.join(map(name, items_of(row['pods'])))}" if len(items_of(row["pods"])) > 1 else "",
    ]
    missing = items_of(row["missing_facts"])
    ask = (
        f'<p class="meta">Would decide more: {", ".join(f"<code>{escape(key)}</code>" for key in missing)} '
        "(<code>--set KEY=VALUE</code>).</p>"
        if missing
        else ""
    )
    return (
        f'<details class="finding"{" open" if unfold else ""}><summary>'
        f'<span><span class="chip {escape(severity)}">{escape(severity)}</span></span>'
        f'<span class="where">{place(row)} <small>{escape(row["confidence"])}</small></span>'
        f'<span class="say">{escape(row["summary"])}</span></summary>'
        # a link to something inside unfolds it, without any script
        f'<div class="body" id="{anchor(row)}">'
        f'<p class="action"><b>Next safe step</b>{escape(row["next_action"])}</p>{ask}'
        f"{_chain(items_of(row['evidence']))}"
        f'<p class="meta">{" &middot; ".join(filter(None, facts))} &middot; <code>{escape(row["id"])}</code></p>'
        "</div></details>"
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


def footer(data: PageData) -> str:
    """Render what limits the audit."""
    lines = [
        "Times are UTC, as the agents' clocks had them.",
        "Puts are upper bounds of what a store holds: overwritten and deleted keys count too.",
    ]
    if data.quarantine:
        words = ", ".join(f"{number} {escape(reason)}" for reason, number in sorted(data.quarantine.items()))
        lines.append(f"Not used, see the table <code>quarantine</code>: {words}.")
    items = "".join(f"<li>{line}</li>" for line in lines)
    return f"<footer><ul>{items}</ul>statewarden-rollup {escape(data.version)}</footer>"
