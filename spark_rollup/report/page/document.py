"""Put the page together."""

from __future__ import annotations

from spark_rollup.report.page import figures, listings, releases, sections
from spark_rollup.report.page.data import PageData
from spark_rollup.report.page.drawing import HATCH
from spark_rollup.report.page.style import CSS

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""The page needs nothing from anywhere; a browser holds it to that."""


def render(data: PageData) -> str:
    """Render the whole report as one HTML document."""
    drawn = figures.charts(data)
    body = "".join(
        (
            sections.tiles(data),
            sections.to_do(data),
            listings.disabled(data),
            releases.releases(data),
            sections.findings(data, frozenset(key for chart in drawn for key in chart.tasks)),
            figures.timelines(data, drawn, sections.shown(data)),
            listings.pods(data),
            listings.agents(data),
        )
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>statewarden fleet audit</title>'
        f"<style>{CSS}</style></head><body>"
        f'<a class="skip" href="#findings">Skip to the findings</a>{HATCH}'
        f"<header>{sections.header(data)}</header><main>{body}</main>{sections.footer(data)}</body></html>\n"
    )
