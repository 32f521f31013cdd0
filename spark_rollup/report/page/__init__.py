"""The HTML report: one self-contained page whose one script filters it. Plain values in, one string out."""

from __future__ import annotations

from agent.contract.markup import escape
from spark_rollup.report.page import filters, incidents, pods, timelines, verdict
from spark_rollup.report.page.data import Links, PageData, cards_of
from spark_rollup.report.page.filters import SCRIPT, digest
from spark_rollup.report.page.style import CSS

__all__ = ["PageData", "render"]

POLICY = (
    f"default-src 'none'; style-src {digest(CSS)}; script-src {digest(SCRIPT)}; "
    "base-uri 'none'; form-action 'none'"
)
"""The page needs nothing from anywhere, and runs nothing but its script; a browser holds it to that."""

NAVIGATION = (
    '<nav aria-label="Sections"><a href="#incidents">Incidents</a><a href="#restarts">May I restart?</a>'
    '<a href="#timelines">Timelines</a><a href="#pods">Agents</a></nav>'
)

FOOTER = (
    "<footer><ul><li>Times are UTC, as the agents' clocks had them.</li>"
    "<li>Puts are upper bounds of what a store holds: overwritten and deleted keys count too.</li>"
    "<li>Everything, beyond what a page has room for: <code>incidents.jsonl</code>, <code>findings.jsonl</code> and "
    "the tables beside this file.</li></ul>statewarden-rollup {}</footer>"
)


def render(data: PageData) -> str:
    """Render the whole report as one HTML document."""
    cards = incidents.in_order(data)[: incidents.INCIDENTS]
    links = Links(cards_of(cards))
    drawn, links.drawn = timelines.section(data, links)
    answered, links.answered = pods.restarts(data, links)
    body = (
        f"{verdict.tiles(data)}{verdict.box(data)}{incidents.todo(data, links)}{filters.form(data, cards)}"
        f"{incidents.section(data, links)}{answered}{drawn}{pods.agents(data, links)}"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>statewarden fleet audit</title>'
        f"<style>{CSS}</style></head><body>"
        f'<a class="skip" href="#incidents">Skip to the incidents</a>{timelines.HATCH}'
        f"<header>{verdict.header(data, links)}{NAVIGATION}</header><main>{body}</main>"
        f"{FOOTER.format(escape(data.version))}<script>{SCRIPT}</script></body></html>\n"
    )
