"""Put the report's page together, and say which script it may run."""

from __future__ import annotations

from spark_rollup.report.page import (
    figures,
    filters,
    incidents,
    listings,
    releases,
    restarts,
    steps,
    tasks,
    unseen,
    verdict,
)
from spark_rollup.report.page.address import cards_of
from spark_rollup.report.page.data import PageData
from spark_rollup.report.page.drawing import HATCH
from spark_rollup.report.page.script import SCRIPT, digest
from spark_rollup.report.page.style import CSS
from spark_rollup.report.page.text import escape

POLICY = (
    f"default-src 'none'; style-src {digest(CSS)}; script-src {digest(SCRIPT)}; "
    "base-uri 'none'; form-action 'none'"
)
"""The page needs nothing from anywhere, and runs nothing but its script; a browser holds it to that."""

SECTIONS = (
    ("incidents", "Incidents"),
    ("restarts", "May I restart?"),
    ("tasks", "Tasks"),
    ("timelines", "Timelines"),
    ("releases", "Releases"),
    ("pods", "Agents"),
    ("agents", "What agents said"),
)


def render(data: PageData) -> str:
    """Render the whole report as one HTML document."""
    drawn = figures.charts(data)
    cards = incidents.shown(data)
    at = cards_of(cards)
    figure, keys = figures.timelines(data, drawn, at)
    answered, pods = restarts.section(data, at)
    body = "".join(
        (
            verdict.tiles(data),
            unseen.box(data),
            steps.section(data, at),
            filters.form(data, cards),
            incidents.section(data, cards, keys),
            answered,
            tasks.section(data, at, keys, pods),
            figure,
            releases.releases(data),
            listings.disabled(data),
            listings.pods(data, pods),
            listings.agents(data),
        )
    )
    there = [(id_, words) for id_, words in SECTIONS if f'id="{id_}"' in body]
    links = "".join(f'<a href="#{id_}">{words}</a>' for id_, words in there)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>statewarden fleet audit</title>'
        f"<style>{CSS}</style></head><body>"
        f'<a class="skip" href="#incidents">Skip to the incidents</a>{HATCH}'
        f'<header>{verdict.header(data)}<nav aria-label="Sections">{links}</nav></header><main>{body}</main>'
        f"{footer(data)}<script>{SCRIPT}</script></body></html>\n"
    )


def footer(data: PageData) -> str:
    """Render what limits the audit."""
    lines = (
        "Times are UTC, as the agents' clocks had them.",
        "Puts are upper bounds of what a store holds: overwritten and deleted keys count too.",
        "Everything, beyond what a page has room for: <code>incidents.jsonl</code>, <code>findings.jsonl</code> and "
        "the tables beside this file.",
    )
    items = "".join(f"<li>{line}</li>" for line in lines)
    return f"<footer><ul>{items}</ul>statewarden-rollup {escape(data.version)}</footer>"
