"""Put the agent's page together, or say why there is nothing to show yet."""

from __future__ import annotations

from agent.publish.page import sections
from agent.publish.page.data import PageData
from agent.publish.page.style import CSS
from agent.publish.page.words import escape, plural


def render(data: PageData | None, trouble: str | None = None) -> str:
    """Write the page.

    Args:
        data: What to show; None = the worker has not said anything yet.
        trouble: Why what is shown may be old, in one line.
    """
    warning = (
        f'<div class="card critical" role="alert"><p><b>{escape(trouble)}.</b> What is below may be old.</p></div>'
        if trouble
        else ""
    )
    if data is None:
        return _document("statewarden", f"<main id=main><h1>Nothing to show yet</h1>{warning}</main>")
    applications = "".join(sections.application(row, data) for row in data.applications)
    left_out = data.applications_total - len(data.applications)
    if left_out > 0:
        applications += f'<p class="soft">{plural(left_out, "application")} more.</p>'
    title = sections.headline(data)
    body = (
        f'<header><p class="brand">statewarden {escape(data.agent_version)}</p><h1>{title}</h1>'
        f"{sections.facts(data)}"
        '<nav aria-label="Sections"><a href="#incidents">Incidents</a><a href="#tasks">Tasks</a>'
        '<a href="#blind">Blind intervals</a><a href="#configuration">Configuration</a>'
        '<a href="/metrics">Metrics</a><a href="/">Reload</a></nav></header>'
        f'<main id="main">{warning}'
        f'<h2 id="incidents">Incidents</h2>{sections.incidents(data)}'
        f'<h2 id="tasks">Tasks</h2>{applications or _NOTHING}'
        f'<h2 id="blind">Blind intervals</h2>{sections.blindness(data.blind, data.at_us)}'
        '<h2 id="configuration">Configuration of the agent</h2>'
        f'<div class="card">{sections.settings(data.settings)}</div>'
        "</main><footer>Read-only: the agent changes nothing below the state directory.</footer>"
    )
    return _document(f"{title} · {escape(data.pod)}", body)


_NOTHING = (
    '<div class="card warning"><p>No application directory was seen. The most common reason: the application\'s '
    "<code>state.dir</code> is not on the volume that the agent watches.</p></div>"
)


def _document(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{title}</title><link rel="icon" href="data:,"><style>{CSS}</style></head><body>'
        f'<a class="skip" href="#main">Skip to the incidents</a>{body}</body></html>\n'
    )
