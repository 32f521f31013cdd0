"""What went wrong: one card per incident, the worst first, and one list of what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spark_rollup.judging.incidents import FleetIncident
from spark_rollup.report.page.address import (
    Cards,
    card_of,
    cards_of,
    local_id,
    marks,
    task_key,
    timeline_id,
    whole,
)
from spark_rollup.report.page.caps import (
    CARDS_BYTES,
    EVIDENCE_BYTES,
    INCIDENTS,
    NAMES_OF_ONE,
    by_severity,
    fitting,
    paged,
)
from spark_rollup.report.page.data import SEVERITIES, WORDS, PageData, TaskKey, level, severity_rank
from spark_rollup.report.page.evidence import everyone, evidence
from spark_rollup.report.page.text import NAMED, clip, count, escape, items_of, moment, span
from spark_rollup.report.page.unseen import unseen
from spark_rollup.report.page.verdict import is_open, read

LINKS = 6
"""Timelines that one incident links to."""

_AFFECTED = {
    "yes": "this release has it",
    "possibly": "this release may have it",
    "no": "not in this release",
}
_REST = "<code>incidents.jsonl</code>, their findings in <code>findings.jsonl</code>"


def in_order(data: PageData) -> list[FleetIncident]:
    """Put what is open first, then by severity, state before agents; among equals the order of the audit stays."""
    return sorted(
        data.incidents, key=lambda x: (not is_open(x), severity_rank(x.severity), not x.about_state)
    )


def shown(data: PageData) -> list[FleetIncident]:
    """Choose the incidents that have a card, the worst first."""
    few = in_order(data)[:INCIDENTS]
    fit = fitting((_card(x, data, {}, frozenset(), set()) for x in few), CARDS_BYTES)
    return few[: len(fit)]


def section(data: PageData, cards: Sequence[FleetIncident], drawn: frozenset[TaskKey]) -> str:
    """Render open incidents, remarks and what is resolved.

    Args:
        data: The page's data.
        cards: What has a card, see `shown`.
        drawn: Tasks whose timeline is on the page.
    """
    head = '<section aria-labelledby="incidents"><h2 id="incidents">Incidents</h2>'
    if not data.incidents:
        return f"{head}{_nothing(data)}</section>"
    blocks = list(zip(cards, _with_evidence(cards, data, drawn), strict=True))
    groups = (
        ("", [html for x, html in blocks if is_open(x) and level(x.severity) != SEVERITIES[-1]], "incidents"),
        (
            "Remarks",
            [html for x, html in blocks if is_open(x) and level(x.severity) == SEVERITIES[-1]],
            "remarks",
        ),
        ("Resolved", [html for x, html in blocks if not is_open(x)], "resolved incidents"),
    )
    parts = [head]
    if not groups[0][1]:
        parts.append(_nothing(data))
    for title, found, noun in groups:
        if found and title:
            parts.append(
                f'<details class="page group"><summary>{title} &middot; {len(found)}</summary>'
                f"{''.join(paged(found, noun))}</details>"
            )
        elif found:
            parts += paged(found, noun)
    left = in_order(data)[len(cards) :]
    if left:
        parts.append(
            f'<p class="lead rest">Not on this page: {count(len(left), "incident")} more ('
            f"{by_severity(x.severity for x in left)}{_state_words(left)}), none worse. All are in {_REST}.</p>"
        )
    return "".join(parts) + "</section>"


def _state_words(left: Sequence[FleetIncident]) -> str:
    resolved = sum(1 for x in left if not is_open(x))
    return f"; {resolved} of them resolved" if resolved else ""


def _nothing(data: PageData) -> str:
    calm = "calm" if data.pods and not unseen(data).now() else "doubt"
    return (
        f'<p class="card {calm}"><b>No open incident</b> in what was read: {read(data)}. No finding does not mean no '
        "damage: what no agent watched is named above, and what ended before the first event is not known.</p>"
    )


def _with_evidence(
    cards: Sequence[FleetIncident], data: PageData, drawn: frozenset[TaskKey]
) -> Iterator[str]:
    addresses = cards_of(cards)
    left, taken = EVIDENCE_BYTES, set(addresses.values())
    for incident in cards:
        folded = evidence(incident, left)
        left -= len(folded.encode())
        yield _card(incident, data, addresses, drawn, taken).replace(_HERE, folded)


_HERE = "<!-- evidence -->"


def _card(
    incident: FleetIncident, data: PageData, cards: Cards, drawn: frozenset[TaskKey], taken: set[str]
) -> str:
    """Render one incident.

    Args:
        incident: The incident.
        data: The page's data.
        cards: Addresses.
        drawn: Tasks whose timeline is on the page.
        taken: Addresses that are in use; those of the absorbed incidents are added.
    """
    here, severity = card_of(incident, cards), level(incident.severity)
    also = []
    for one in incident.absorbed[:NAMES_OF_ONE]:
        address = local_id(one)
        if address not in taken:
            taken.add(address)
            also.append(f'<span class="also" id="{address}"></span>')
    missing = ", ".join(
        f"<code>{escape(key)}</code>" for key in items_of(incident.lead.row.get("missing_facts"))
    )
    ask = (
        f'<p class="meta">Would decide more: {missing} (<code>--set KEY=VALUE</code>).</p>' if missing else ""
    )
    word = WORDS.get(str(incident.severity), str(incident.severity))
    done, asks = ("", "Next") if is_open(incident) else (" done", "What was to be done")
    return (
        f'<article class="card incident {severity}{done}" id="{here}" tabindex="-1"'
        f"{marks([incident.namespace], [incident.application_id], incident.pods, severity)}>"
        f'{"".join(also)}<h3><span class="chip {severity}">{escape(word)}</span> '
        f'{_cause(incident)} <a class="id" href="#{here}"><code>{clip(incident.id, 80)}</code></a></h3>'
        f'<p class="where">{whole(incident)}</p><p class="when">{_when(incident, data, drawn)}</p>'
        f'<p class="say">{clip(incident.sentence)}</p>'
        f'<p class="action"><b>{asks}</b> {clip(incident.next_action)}</p>'
        f"{ask}{_HERE}{everyone(incident, NAMED)}{_more(incident)}</article>"
    )


def _cause(incident: FleetIncident) -> str:
    issues = ", ".join(incident.upstream)
    known = f"{clip(issues, 200)}: " if issues else ""
    return f"{known}{clip(incident.title or incident.lead.detector, 200)}"


def _when(incident: FleetIncident, data: PageData, drawn: frozenset[TaskKey]) -> str:
    ago = (data.as_of_us - incident.since_us) / 1e6
    parts = [f"since {moment(incident.since_us)}{f' ({span(ago)} before this audit)' if ago > 0 else ''}"]
    if incident.ended_us is not None:
        parts.append(f"ended {moment(incident.ended_us)}")
    parts.append(f'<span class="sure">{escape(incident.confidence)}</span>')
    if not is_open(incident):
        parts.append("resolved")
    elif str(incident.status) != "open":
        parts.append(escape(incident.status))
    if incident.upstream:
        parts.append(_AFFECTED.get(str(incident.affected), f"release affected: {escape(incident.affected)}"))
    keys = [key for key in dict.fromkeys(task_key(one.row) for _, one in incident.findings) if key in drawn]
    links = ", ".join(f'<a href="#{timeline_id(key)}">{escape(key[2])}</a>' for key in keys[:LINKS])
    if links:
        parts.append(f"timeline of {links}{f' and {len(keys) - LINKS} more' if len(keys) > LINKS else ''}")
    return " &middot; ".join(parts)


def _more(incident: FleetIncident) -> str:
    """Name the runbook, and the incidents of agents that are part of this one."""
    lead = incident.lead
    what = lead.detector if lead.link.by_agent else f"rules/{lead.detector}"
    parts = [f"runbook: <code>statewarden explain {clip(what, 100)}</code>"]
    others = [one for one in incident.absorbed if one != incident.id]
    if others:
        words = ", ".join(f"<code>{clip(one, 80)}</code>" for one in others[:NAMED])
        left = len(others) - NAMED
        parts.append(
            f"agents&#x27; {count(len(others), 'incident')} in it: {words}{f' and {left} more' if left > 0 else ''}"
        )
    return f'<p class="meta">{" &middot; ".join(parts)}</p>'
