"""An index of tasks: what is known about each, and where on the page it is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from spark_rollup.judging.incidents import FleetIncident
from spark_rollup.report.page.address import (
    Cards,
    card_of,
    marks,
    natural,
    pod_key,
    restart_id,
    task_key,
    timeline_id,
)
from spark_rollup.report.page.caps import INDEX_BYTES, fitting, paged
from spark_rollup.report.page.data import WORDS, PageData, PodKey, TaskKey, level, severity_rank
from spark_rollup.report.page.text import clip, count, escape, name
from spark_rollup.report.page.verdict import is_open

LINKS = 4
"""Incidents, and pods, that one line names."""


@dataclass(slots=True)
class Entry:
    """What is known about one task."""

    incidents: list[FleetIncident] = field(default_factory=list)
    pods: list[PodKey] = field(default_factory=list)


def entries(data: PageData) -> dict[TaskKey, Entry]:
    """Collect the tasks of incidents, timelines and restarts; those with the worst open incident first."""
    found: dict[TaskKey, Entry] = {}
    for incident in data.incidents:
        for task in incident.tasks:
            found.setdefault((incident.namespace, incident.application_id, task), Entry()).incidents.append(
                incident
            )
    for row in data.restarts:
        if row["task_id"] is not None:
            found.setdefault(task_key(row), Entry()).pods.append(pod_key(row))
    for entry in found.values():
        entry.incidents.sort(key=lambda x: (not is_open(x), severity_rank(x.severity)))
    return dict(sorted(found.items(), key=lambda item: (_weight(item[1]), natural(item[0]))))


def _weight(entry: Entry) -> int:
    return min((severity_rank(x.severity) for x in entry.incidents if is_open(x)), default=9)


def section(data: PageData, cards: Cards, drawn: Collection[TaskKey], pods: Collection[PodKey]) -> str:
    """Render the index.

    Args:
        data: The page's data.
        cards: Incidents that have a card.
        drawn: Tasks whose timeline is on the page.
        pods: Pods whose answer about a restart is on the page.
    """
    head = '<section aria-labelledby="tasks"><h2 id="tasks">Tasks</h2>'
    found = entries(data)
    if not found:
        return f'{head}<p class="lead">No task is known.</p></section>'
    several = len({key[0] for key in found}) > 1
    lines = fitting(
        (_line(key, entry, several, cards, drawn, pods) for key, entry in found.items()), INDEX_BYTES
    )
    left = len(found) - len(lines)
    rest = (
        f'<p class="lead rest">Not on this page: {count(left, "task")} more, none with a worse incident; '
        "all are in the tables <code>timelines</code> and <code>restarts</code>.</p>"
        if left
        else ""
    )
    pages = paged(lines, "tasks", 60)
    first, others = pages[:60], pages[60:]
    return (
        f'{head}<p class="lead">{count(len(found), "task")}: where each is, and what is said about it.</p>'
        f'<ul class="index">{"".join(first)}</ul>{"".join(_listed(page) for page in others)}{rest}</section>'
    )


def _listed(page: str) -> str:
    head, _, body = page.partition("</summary>")
    return f'{head}</summary><ul class="index">{body.removesuffix("</details>")}</ul></details>'


def _line(
    key: TaskKey,
    entry: Entry,
    several: bool,
    cards: Cards,
    drawn: Collection[TaskKey],
    pods: Collection[PodKey],
) -> str:
    namespace, application, task = key
    alive = [x for x in entry.incidents if is_open(x)]
    said = [_incident(x, cards) for x in entry.incidents[:LINKS]]
    holders = list(dict.fromkeys(entry.pods))
    where = [
        f'<a href="#{restart_id(pod)}">{name(pod[1])}</a>' if pod in pods else name(pod[1])
        for pod in holders[:LINKS]
    ]
    parts = [
        ", ".join(said) + _more(entry.incidents) if said else "",
        f"on {', '.join(where)}{_more(holders)}" if where else "",
        f'<a href="#{timeline_id(key)}">timeline</a>' if key in drawn else "",
    ]
    service = f"{namespace or '-'}/{application}" if several else application
    severity = level(alive[0].severity) if alive else None
    named = {str(pod) for x in entry.incidents for pod in x.pods} | {pod for _, pod in holders}
    return (
        f"<li{marks([namespace], [application], sorted(named), severity)}><b>{name(service)}/{name(task)}</b> "
        f"<small>{' &middot; '.join(part for part in parts if part)}</small></li>"
    )


def _more(values: Sequence[object]) -> str:
    return f" and {len(values) - LINKS} more" if len(values) > LINKS else ""


def _incident(incident: FleetIncident, cards: Cards) -> str:
    severity = level(incident.severity)
    word = WORDS[severity] if is_open(incident) else "resolved"
    chip = f'<span class="word {severity if is_open(incident) else "quiet"}">{escape(word)}</span>'
    address, id_ = card_of(incident, cards), f"<code>{clip(incident.id, 80)}</code>"
    return f'{chip} <a href="#{address}">{id_}</a>' if address else f"{chip} {id_}"
