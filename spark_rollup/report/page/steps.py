"""The one list of what to do, in order."""

from __future__ import annotations

from spark_rollup.judging.incidents import FleetIncident
from spark_rollup.report.page.address import Cards, card_of, short
from spark_rollup.report.page.caps import by_severity
from spark_rollup.report.page.data import PageData, level, severity_rank
from spark_rollup.report.page.text import clip
from spark_rollup.report.page.verdict import urgent

STEPS, ADDRESSES = 12, 6
"""Instructions that the list has, and addresses that one of them names; more is no list of first things."""


def section(data: PageData, cards: Cards) -> str:
    """Render what open incidents ask for, the worst first; equal instructions about one application are one step.

    Args:
        data: The page's data.
        cards: Incidents that have a card.
    """
    groups: dict[tuple[str, str, str], list[FleetIncident]] = {}
    for incident in sorted(urgent(data), key=lambda x: severity_rank(x.severity)):
        key = (incident.namespace, incident.application_id, incident.next_action)
        groups.setdefault(key, []).append(incident)
    if sum(map(len, groups.values())) < 2:  # the card of a single one is right below
        return ""
    chosen = list(groups.values())[:STEPS]
    items = "".join(f"<li>{_step(group, cards)}</li>" for group in chosen)
    left = [incident for group in list(groups.values())[STEPS:] for incident in group]
    more = (
        f'<p class="who">and what {by_severity(x.severity for x in left)} incidents below ask for</p>'
        if left
        else ""
    )
    return (
        '<section class="todo" aria-labelledby="todo"><h2 id="todo">Do this, in this order</h2>'
        f"<ol>{items}</ol>{more}</section>"
    )


def _step(group: list[FleetIncident], cards: Cards) -> str:
    first, severity = group[0], level(group[0].severity)
    where = "; ".join(_link(x, cards) for x in group[:ADDRESSES])
    left = len(group) - ADDRESSES
    return (
        f'<span class="chip {severity}">{severity}</span> <span class="who">{where}'
        f"{f' and {left} more' if left > 0 else ''}:</span> {clip(first.next_action)}"
    )


def _link(incident: FleetIncident, cards: Cards) -> str:
    words, address = short(incident), card_of(incident, cards)
    return f'<a href="#{address}">{words}</a>' if address else words
