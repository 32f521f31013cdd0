"""What the audit could not see: pods by name, never as an average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_rollup.report.missed import in_words
from spark_rollup.report.page.address import has_namespaces, pod_key, pod_name
from spark_rollup.report.page.data import PageData, PodKey, Row
from spark_rollup.report.page.text import (
    count,
    escape,
    integer,
    items_of,
    moment,
    name,
    number,
    parse_us,
    percent,
    span,
)

POD_NAMES, MOST_PODS = 12, 1000
"""Pods of one kind (or applications) that are named at once, and behind a fold."""

WATCHING = "watching"


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
    states: dict[str, list[Row]] = {}
    for row in data.pods:
        states.setdefault(str(row["agent_state"]), []).append(row)
    silent, ended = states.pop("silent", []), states.pop("stopped", [])
    states.pop(WATCHING, None)
    taken = {pod_key(row) for row in (*silent, *ended)}
    blind: dict[PodKey, Row] = {}
    for row in data.timelines:
        whole = row["lane"] == "unknown" and row["task_id"] is None and row["application_id"] is None
        lasts = row["to_us"] is None or integer(row["to_us"]) >= data.as_of_us
        if whole and lasts and pod_key(row) not in taken:
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
        other=[row for rows in states.values() for row in rows],
    )


def box(data: PageData) -> str:
    """Name what was not seen, and what else is not in the audit; nothing if all was seen."""
    found, several = unseen(data), has_namespaces(data)

    def pods(rows: Sequence[Row], why: str) -> str:
        words = [f"{pod_name(pod_key(row), several)} <small>{_why(row, why)}</small>" for row in rows]
        return _folded(words)

    lines = [
        f"<b>{head}</b> {pods(rows, why)}"
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
        f" <small>{', '.join(escape(str(key)) for key in keys)}</small>"
        for row in data.releases
        if (keys := items_of(row.get("not_given")))
    ]
    if not_given:
        more = len(not_given) - POD_NAMES
        rest = f" and {more} more" if more > 0 else ""
        lines.append(f"<b>Settings that no agent was given:</b> {', '.join(not_given[:POD_NAMES])}{rest}")
    unasked = sorted({str(row["detector"]) for row in data.disabled})
    if unasked:
        words = ", ".join(f"<code>{escape(word)}</code>" for word in unasked)
        lines.append(f'<b>Not searched for:</b> {words}, <a href="#disabled">disabled by settings</a>')
    if not lines:
        return ""
    items = "".join(f"<li>{line}</li>" for line in lines)
    return (
        '<section class="unseen" aria-labelledby="unseen"><h2 id="unseen">Not seen</h2>'
        f'<p class="lead">What happened there is unknown, not fine.</p><ul>{items}</ul></section>'
    )


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
    shown = ", ".join(words[:POD_NAMES])
    rest = words[POD_NAMES:MOST_PODS]
    if not rest:
        return shown
    left = len(words) - MOST_PODS
    more = f"; {count(left, 'pod')} more in the table <code>pods</code>" if left > 0 else ""
    return (
        f'{shown}<details class="page"><summary>and {len(words) - POD_NAMES} more</summary>'
        f"{', '.join(rest)}{more}</details>"
    )
