"""The findings of an incident, each with its role and its chain of evidence, folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from spark_rollup.config import AGENT
from spark_rollup.judging.incidents import FleetIncident
from spark_rollup.report.page.address import place
from spark_rollup.report.page.caps import (
    EVIDENCE_OF_ONE_BYTES,
    FINDINGS_OF_ONE,
    NAMES_OF_ONE,
    STEPS_OF_ONE,
    by_severity,
    fitting,
)
from spark_rollup.report.page.data import Row, level
from spark_rollup.report.page.text import clip, clock, count, day, escape, items_of, name, parse_us, span

_WHERE = "<code>findings.jsonl</code>"


def evidence(incident: FleetIncident, left_bytes: int) -> str:
    """Render the findings of an incident behind one line, the one that names it first.

    Args:
        incident: The incident.
        left_bytes: What the page has room for; what does not fit is counted.
    """
    ordered = sorted(incident.findings, key=lambda item: item[1] is not incident.lead)
    blocks = fitting(
        (_finding(str(role), one.row, incident) for role, one in ordered[:FINDINGS_OF_ONE]),
        min(left_bytes, EVIDENCE_OF_ONE_BYTES),
    )
    left = ordered[len(blocks) :]
    rest = (
        f'<p class="meta">{"Not" if not blocks else "Further findings, not"} on this page: '
        f"{by_severity(one.severity for _, one in left)}; all in {_WHERE}, by their <code>incident_id</code>.</p>"
        if left
        else ""
    )
    roles = Counter(str(role) for role, _ in ordered)
    words = ", ".join(f"{number} {escape(role)}" for role, number in roles.items())
    return (
        f'<details class="evidence"><summary>Evidence: {count(len(ordered), "finding")} '
        f"<small>{words}</small></summary>{''.join(blocks)}{rest}</details>"
    )


def _finding(role: str, row: Row, incident: FleetIncident) -> str:
    severity = level(row["severity"])
    state = "" if row["status"] == "open" else ", resolved"
    said = "" if row["summary"] == incident.sentence else f"<p>{clip(row['summary'])}</p>"
    return (
        f'<details class="finding"{" open" if row is incident.lead.row else ""}><summary>'
        f'<span class="role">{escape(role)}</span> <code>{escape(row["detector"])}</code> {place(row)} '
        f'<small><span class="word {severity}">{escape(row["severity"])}</span>, '
        f"{escape(row['confidence'])}{state}</small></summary>"
        f"{said}{chain(items_of(row['evidence']))}"
        f'<p class="meta">{" &middot; ".join(_facts(row))}</p></details>'
    )


def _facts(row: Row) -> list[str]:
    missing = items_of(row["missing_facts"])
    asked = ", ".join(f"<code>{escape(key)}</code>" for key in missing)
    facts = [
        "reported by the pod&#x27;s agent; no rule of the fleet says more"
        if row["reported_by"] == AGENT
        else "",
        f"opened {clip(str(row['opened_at'])[:19].replace('T', ' '), 40)} UTC",
        *(
            f"{word} {count(len(items_of(row[word])), 'finding')} of agents"
            for word in ("confirms", "refutes", "explains")
            if items_of(row[word])
        ),
        f"would decide more: {asked} (<code>--set KEY=VALUE</code>)" if missing else "",
        f"finding <code>{clip(row['id'], 100)}</code>",
    ]
    return [fact for fact in facts if fact]


def chain(steps: Sequence[object]) -> str:
    """List what was seen, in time order; of very many steps the last."""
    items, first, today = [], _first_us(steps), ""
    for step in steps[-STEPS_OF_ONE:]:
        assert isinstance(step, Mapping)
        at_us = parse_us(step["at"])
        since = f" +{span((at_us - first) / 1e6)}" if at_us is not None and at_us > first else ""
        shown = clip(step["at"], 40)
        if at_us is not None:
            date = day(at_us)
            shown = f"{f'<small>{date}</small> ' if date != today else ''}{clock(at_us, millis=True)}"
            today = date
        where = f"<small>{clip(step['where'], 500)}</small>" if step["where"] else ""
        stamp = f' datetime="{escape(step["at"])}"' if at_us is not None else ""
        items.append(
            f'<li><time{stamp} title="{clip(step["at"], 40)}{escape(since)}">{shown}</time>'
            f"<div>{clip(step['what'])}{where}</div></li>"
        )
    left = len(steps) - STEPS_OF_ONE
    more = f'<p class="meta">{count(left, "earlier step")} in {_WHERE}.</p>' if left > 0 else ""
    return f'{more}<ol class="chain">{"".join(items)}</ol>' if items else ""


def _first_us(steps: Iterable[object]) -> int:
    times = (parse_us(step["at"]) for step in steps if isinstance(step, Mapping))
    return min((at_us for at_us in times if at_us is not None), default=0)


def everyone(incident: FleetIncident, shown: int) -> str:
    """Name all tasks and pods, where the address of the incident names only the first."""
    parts = []
    for noun, values in (("Tasks", incident.tasks), ("Pods", incident.pods)):
        if len(values) > shown:
            left = len(values) - NAMES_OF_ONE
            more = f" and {left} more, in <code>incidents.jsonl</code>" if left > 0 else ""
            parts.append(f'<p class="meta">{noun}: {", ".join(map(name, values[:NAMES_OF_ONE]))}{more}</p>')
    if not parts:
        return ""
    return f'<details class="evidence"><summary>All tasks and pods</summary>{"".join(parts)}</details>'
