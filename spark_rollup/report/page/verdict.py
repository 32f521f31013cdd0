"""The first lines: the verdict, how old it is, what was read, and what was not seen: by name, never as an average."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from spark_rollup.judging.incidents import FleetIncident
from spark_rollup.report.missed import in_words
from spark_rollup.report.page.address import pod_name, short
from spark_rollup.report.page.data import (
    REMARK,
    SEVERITIES,
    WORDS,
    PageData,
    PodKey,
    Row,
    is_open,
    level,
    pod_key,
)
from spark_rollup.report.page.text import (
    NAMED,
    clip,
    clock,
    code,
    count,
    day,
    escape,
    fold,
    integer,
    moment,
    name,
    named,
    number,
    parse_us,
    percent,
    some,
)  # fmt: skip
from spark_rollup.report.restart_answer import age as span
from spark_rollup.report.story import texts

MOST_PODS = 1000
"""Pods of one kind that are named behind a fold."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """Pods that were not seen, by what was the matter.

    Args of the dataclass:
        silent: Should report and do not: rows of `pods`.
        ended: Their agents ended: rows of `pods`.
        blind: Not watched up to the audit's time: rows of `timelines`.
        gaps: Watched now, but not throughout: rows of `coverage`.
        other: In a state that this version does not know: rows of `pods`.
    """

    silent: Sequence[Row]
    ended: Sequence[Row]
    blind: Sequence[Row]
    gaps: Sequence[Row]
    other: Sequence[Row]

    def now(self) -> list[PodKey]:
        """List the pods of which nothing is known at the audit's time although they may run."""
        return list(dict.fromkeys(map(pod_key, (*self.silent, *self.blind, *self.other))))


def unseen(data: PageData) -> Unseen:
    """Sort the pods that were not seen throughout by what was the matter."""
    states: dict[str, list[Row]] = {"silent": [], "stopped": [], "watching": []}
    for row in data.pods:
        states.setdefault(str(row["agent_state"]), []).append(row)
    silent, ended, _, *others = states.values()
    taken = {pod_key(row) for row in (*silent, *ended)}
    blind: dict[PodKey, Row] = {}
    for row in data.timelines:
        of_pod = row["lane"] == "unknown" and row["task_id"] is None and row["application_id"] is None
        lasts = row["to_us"] is None or integer(row["to_us"]) >= data.as_of_us
        if of_pod and lasts and pod_key(row) not in taken:
            blind.setdefault(pod_key(row), row)
    gaps = [
        row
        for row in data.coverage
        if number(row["unknown_seconds"]) > 0 and pod_key(row) not in taken | set(blind)
    ]
    return Unseen(
        silent=silent,
        ended=ended,
        blind=list(blind.values()),
        gaps=sorted(gaps, key=lambda row: -number(row["unknown_seconds"])),
        other=[row for rows in others for row in rows],
    )


def headline(data: PageData) -> str:
    """Say in one sentence how things are; what was not seen is never part of an all-clear."""
    found, missed, names = data.urgent(), escape(in_words(data.coverage)), _unseen_names(data)
    if not found:
        return f"Unknown: {missed}" if missed else _all_clear(data, names)
    missing = (f"; not seen: {names}" if names else "") + (f"; {missed}" if missed else "")
    if len(found) == 1:
        return f"1 {level(found[0].severity)} incident: {short(found[0])}{missing}"
    counts = [(sum(level(x.severity) == word for x in found), word) for word in SEVERITIES[:-1]]
    words = " and ".join(f"{number} {word}" for number, word in counts if number)
    return f"{words} incidents in {_where(found)}{missing}"


def _where(found: Sequence[FleetIncident]) -> str:
    several = len({x.namespace for x in found}) > 1
    services = sorted({(x.namespace, x.application_id) for x in found})
    if len(services) > 3:
        return count(len(services), "application")
    return ", ".join(
        name("/".join(part for part in (x if several else x[1:]) if part) or "the fleet") for x in services
    )


def _all_clear(data: PageData, names: str) -> str:
    if not data.pods:
        return "Nothing was read: no pod has reported"
    found = unseen(data)
    unsure = sum(bool(texts(row.get("not_given"))) for row in data.releases)
    limits = [
        f"not seen: {names}" if names else "",
        f"{count(len(found.gaps), 'pod')} with gaps" if found.gaps else "",
        f"{count(len(found.ended), 'pod')} without an agent by now" if found.ended else "",
        f"{count(sum(data.quarantine.values()), 'line')} or files not used" if data.quarantine else "",
        f"{count(len({row['detector'] for row in data.disabled}), 'detector')} disabled"
        if data.disabled
        else "",
        f"settings of {count(unsure, 'application')} not given" if unsure else "",
    ]
    remarks = sum(map(is_open, data.incidents))
    but = f" but {count(remarks, WORDS[REMARK])}" if remarks else ""
    within = f" ({', '.join(filter(None, limits))})" if any(limits) else ""
    return f"Nothing wrong found in what was watched{but}{within}"


def _unseen_names(data: PageData) -> str:
    pods = unseen(data).now()
    if len(pods) > 3:
        return count(len(pods), "pod")
    several = data.several()
    return ", ".join(pod_name(pod, several) for pod in pods)


def header(data: PageData) -> str:
    """Render verdict, age, and what was read."""
    return (
        f'<p class="brand">statewarden fleet audit</p><h1>{headline(data)}</h1>'
        f'<p class="facts">{_age(data)}</p><p class="facts">{read(data)}</p>'
    )


def _age(data: PageData) -> str:
    """Say how old the verdict is: `as of ..., newest event 2 min old, run took 41 s`."""
    parts = [f"as of {moment(data.as_of_us)}"]
    newest = max((parse_us(row["last_seen"]) or 0 for row in data.pods), default=0)
    if data.written_us and newest:
        old = (data.written_us - newest) / 1e6
        parts.append(
            f"newest event {span(old)} old" if old >= 0 else f"newest event {span(-old)} ahead of this clock"
        )
    if data.took_s is not None:
        parts.append(f"run took {span(data.took_s)}")
    # a page that is left open gets older: a script counts on from here
    at = (
        f' <strong id="age" data-at="{data.written_us // 1000}" role="status"></strong>'
        if data.written_us
        else ""
    )
    return f"{', '.join(parts)}{at}"


def read(data: PageData) -> str:
    """Say what was read."""
    applications = sorted({app for row in data.pods for app in texts(row["applications"])})
    tasks = sum(integer(row["tasks_held"]) for row in data.pods)
    stores = {(row["namespace"], row["application_id"], row["task_id"]) for row in data.restarts}
    seen = f", {count(len(stores), 'task')} known" if len(stores) > tasks else ""
    apps = f": {named(applications, 5)}" if applications else ""
    parts = [
        f"read {count(len(data.pods), 'pod')}",
        f"{count(len(applications), 'application')}{apps}",
        f"{count(tasks, 'task')} held now{seen}",
    ]
    if data.coverage:
        first = data.first_seen_us()
        until = clock(data.as_of_us) if day(first) == day(data.as_of_us) else moment(data.as_of_us)
        parts.append(f"{day(first)} {clock(first)} to {until}")
    return " &middot; ".join(parts)


def tiles(data: PageData) -> str:
    """Render the counts: open incidents by severity, resolved ones, and pods that are seen right now."""
    alive = [level(x.severity) for x in data.incidents if is_open(x)]
    cells = [
        (
            word if word in alive else "none",
            alive.count(word),
            f"{WORDS[word]}{'s' if word == REMARK else ''}, open",
        )
        for word in SEVERITIES
    ]
    resolved = len(data.incidents) - len(alive)
    found, total = unseen(data), len(data.pods)
    missing = len(found.now())
    seen = total - missing - len(found.ended)
    kind = "warning" if missing or not total else "good" if seen else "none"
    cells.append(("" if resolved else "none", resolved, "resolved"))
    body = "".join(
        f'<div class="tile {kind}"><b>{value}</b><span>{label}</span></div>'
        for kind, value, label in (*cells, (kind, f"{seen} of {total}", "pods seen now"))
    )
    return f'<div class="tiles">{body}</div>'


def box(data: PageData) -> str:
    """Name what was not seen, and what else is not in the audit; nothing if all was seen."""
    found, several = unseen(data), data.several()
    lines = [
        f"<b>{head}</b> {_folded([_pod(row, why, several) for row in rows])}"
        for head, rows, why in (
            ("Silent now:", found.silent, "last_seen"),
            ("Blind now:", found.blind, "detail"),
            ("State not known:", found.other, "agent_state"),
            ("Not watched for a while:", found.gaps, "unknown_seconds"),
            ("Agent has ended:", found.ended, "last_seen"),
        )
        if rows
    ]
    if data.quarantine:
        words = ", ".join(f"{number} {escape(reason)}" for reason, number in sorted(data.quarantine.items()))
        lines.append(f"<b>Not used:</b> {words}; see the table <code>quarantine</code>")
    missed = in_words(data.coverage)
    if missed:
        lines.append(f"<b>Not in the input:</b> {escape(missed)}")
    not_given = [
        f"{name('/'.join(str(part) for part in (row['namespace'], row['application_id']) if part))}"
        f" <small>{escape(', '.join(keys))}</small>"
        for row in data.releases
        if (keys := texts(row.get("not_given")))
    ]
    if not_given:
        lines.append(f"<b>Settings that no agent was given:</b> {some(not_given)}")
    if data.disabled:
        lines.append(f"<b>Not searched for, disabled by settings of agents:</b> {_disabled(data)}")
    if not lines:
        return ""
    items = "".join(f"<li>{line}</li>" for line in lines)
    return (
        '<section class="unseen" aria-labelledby="unseen"><h2 id="unseen">Not seen</h2>'
        f'<p class="lead">What happened there is unknown, not fine.</p><ul>{items}</ul></section>'
    )


def _disabled(data: PageData) -> str:
    """Name the detectors that agents have disabled, why, and on which pods."""
    places: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for row in data.disabled:
        places[str(row["detector"]), str(row["reason"])][str(row["pod"])] = None
    return "; ".join(
        f"{code(detector)} <small>on {named(pods)}: {clip(reason, 500)}</small>"
        for (detector, reason), pods in sorted(places.items())
    )


def _pod(row: Row, why: str, several: bool) -> str:
    return f"{pod_name(pod_key(row), several)} <small>{_why(row, why)}</small>"


def _why(row: Row, key: str) -> str:
    if key == "last_seen":
        at_us = parse_us(row[key])
        return f"last heard {moment(at_us)}" if at_us is not None else "never heard"
    if key == "unknown_seconds":
        missed, of = number(row[key]), number(row["span_seconds"])
        return f"{span(missed)} of {span(of)} missing, {percent(1 - missed / of if of else 0.0)} watched"
    if key == "detail":
        return f"since {moment(integer(row['from_us']))}: {escape(row[key])}"
    return escape(row[key])


def _folded(words: Sequence[str]) -> str:
    more, left = words[NAMED:MOST_PODS], len(words) - MOST_PODS
    if not more:
        return ", ".join(words)
    last = f"; {count(left, 'pod')} more in the table <code>pods</code>" if left > 0 else ""
    hidden = fold(f"and {len(words) - NAMED} more", ", ".join(more) + last)
    return ", ".join(words[:NAMED]) + hidden
