"""The first lines: the verdict, how old it is, what was read."""

from __future__ import annotations

from collections.abc import Sequence

from agent.contract.events import Status
from spark_rollup.judging.incidents import FleetIncident
from spark_rollup.report.missed import in_words
from spark_rollup.report.page.address import has_namespaces, pod_name, short
from spark_rollup.report.page.data import SEVERITIES, WORDS, PageData, level
from spark_rollup.report.page.text import (
    clock,
    count,
    day,
    escape,
    integer,
    items_of,
    moment,
    name,
    named,
    parse_us,
    span,
)
from spark_rollup.report.page.unseen import unseen

REMARK = SEVERITIES[-1]


def is_open(incident: FleetIncident) -> bool:
    """Return whether something still has to be done; what a newer version may say counts as open."""
    return str(incident.status) != Status.RESOLVED.value


def urgent(data: PageData) -> list[FleetIncident]:
    """List open incidents that are no remarks."""
    return [x for x in data.incidents if is_open(x) and level(x.severity) != REMARK]


def headline(data: PageData) -> str:
    """Say in one sentence how things are; what was not seen is never part of an all-clear."""
    found = urgent(data)
    names = _unseen_names(data)
    missed = escape(in_words(data.coverage))
    if not found:
        return f"Unknown: {missed}" if missed else _all_clear(data)
    missing = f"; not seen: {names}" if names else ""
    missing += f"; {missed}" if missed else ""
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


def _all_clear(data: PageData) -> str:
    if not data.pods:
        return "Nothing was read: no pod has reported"
    limits = []
    names = _unseen_names(data)
    if names:
        limits.append(f"not seen: {names}")
    found = unseen(data)
    if found.gaps:
        limits.append(f"{count(len(found.gaps), 'pod')} with gaps")
    if found.ended:
        limits.append(f"{count(len(found.ended), 'pod')} without an agent by now")
    if data.quarantine:
        limits.append(f"{count(sum(data.quarantine.values()), 'line')} or files not used")
    unasked = {row["detector"] for row in data.disabled}
    if unasked:
        limits.append(f"{count(len(unasked), 'detector')} disabled")
    unsure = sum(bool(items_of(row.get("not_given"))) for row in data.releases)
    if unsure:
        limits.append(f"settings of {count(unsure, 'application')} not given")
    remarks = sum(1 for x in data.incidents if is_open(x))
    but = f" but {count(remarks, WORDS[REMARK])}" if remarks else ""
    within = f" ({', '.join(limits)})" if limits else ""
    return f"Nothing wrong found in what was watched{but}{within}"


def _unseen_names(data: PageData) -> str:
    pods = unseen(data).now()
    if len(pods) > 3:
        return count(len(pods), "pod")
    several = has_namespaces(data)
    return ", ".join(pod_name(pod, several) for pod in pods)


def header(data: PageData) -> str:
    """Render verdict, age, and what was read."""
    return (
        f'<p class="brand">statewarden fleet audit</p><h1>{headline(data)}</h1>'
        f'<p class="facts">{age(data)}</p><p class="facts">{read(data)}</p>'
    )


def age(data: PageData) -> str:
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
    since = (
        f' <strong id="age" data-at="{data.written_us // 1000}" role="status"></strong>'
        if data.written_us
        else ""
    )
    return f"{', '.join(parts)}{since}"


def read(data: PageData) -> str:
    """Say what was read."""
    applications = sorted({str(app) for row in data.pods for app in items_of(row["applications"])})
    tasks = sum(integer(row["tasks_held"]) for row in data.pods)
    stores = {(row["namespace"], row["application_id"], row["task_id"]) for row in data.restarts}
    first = min((parse_us(row["first_seen"]) or data.as_of_us for row in data.coverage), default=None)
    seen = f", {count(len(stores), 'task')} known" if len(stores) > tasks else ""
    apps = f": {named(applications, 5)}" if applications else ""
    parts = [
        f"read {count(len(data.pods), 'pod')}",
        f"{count(len(applications), 'application')}{apps}",
        f"{count(tasks, 'task')} held now{seen}",
    ]
    if first is not None:
        until = clock(data.as_of_us) if day(first) == day(data.as_of_us) else moment(data.as_of_us)
        parts.append(f"{day(first)} {clock(first)} to {until}")
    return " &middot; ".join(parts)


def tiles(data: PageData) -> str:
    """Render the counts: open incidents by severity, resolved ones, and pods that are seen right now."""
    alive = [level(x.severity) for x in data.incidents if is_open(x)]
    cells = [
        (
            word if word in alive else "none",
            f"{alive.count(word)}",
            f"{WORDS[word]}{'s' if word == REMARK else ''}, open",
        )
        for word in SEVERITIES
    ]
    resolved = len(data.incidents) - len(alive)
    cells.append(("none" if not resolved else "", f"{resolved}", "resolved"))
    found, total = unseen(data), len(data.pods)
    missing = len(found.now())
    seen = total - missing - len(found.ended)
    kind = "warning" if missing or not total else "good" if seen else "none"
    cells.append((kind, f"{seen} of {total}", "pods seen now"))
    body = "".join(
        f'<div class="tile {kind}"><b>{value}</b><span>{label}</span></div>' for kind, value, label in cells
    )
    return f'<div class="tiles">{body}</div>'
