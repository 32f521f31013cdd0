"""The filter: shown only where the page's script runs, which then takes away the `hidden` attribute."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spark_rollup.judging.incidents import FleetIncident
from spark_rollup.report.page.data import SEVERITIES, WORDS, PageData
from spark_rollup.report.page.text import clip, items_of

CHOICES = 500
"""So many names a list offers."""


def form(data: PageData, cards: Sequence[FleetIncident]) -> str:
    """Render the form: application, namespace, pod, severity and free text.

    Args:
        data: The page's data.
        cards: Incidents that have a card.
    """
    applications = {x.application_id for x in cards} | {
        str(app) for row in data.pods for app in items_of(row["applications"])
    }
    namespaces = {x.namespace for x in cards} | {str(row["namespace"] or "") for row in data.pods}
    pods = {str(row["pod"]) for row in data.pods} | {pod for x in cards for pod in x.pods}
    severities = "".join(f'<option value="{x}">{WORDS[x]}</option>' for x in SEVERITIES)
    fields = (
        _field("Application", _select("a", sorted(applications))),
        _field("Namespace", _select("n", sorted(namespaces))) if len(namespaces - {""}) > 1 else "",
        _field(
            "Pod",
            f'<input name="p" list="pods-known" autocomplete="off">{_names("pods-known", sorted(pods))}',
        ),
        _field("Severity", f'<select name="s"><option value="">all</option>{severities}</select>'),
        _field(
            "Text", '<input name="t" type="search" autocomplete="off" placeholder="task, store, issue, word">'
        ),
    )
    return (
        f'<form id="filter" class="filter" role="search" aria-label="Filter this page" hidden>{"".join(fields)}'
        '<button type="reset">Clear</button><output id="found"></output></form>'
    )


def _field(label: str, control: str) -> str:
    return f"<label><span>{label}</span>{control}</label>"


def _select(key: str, names: Iterable[str]) -> str:
    options = "".join(f"<option>{clip(x, 300)}</option>" for x in list(names)[:CHOICES] if x)
    return f'<select name="{key}"><option value="">all</option>{options}</select>'


def _names(id_: str, names: Sequence[str]) -> str:
    options = "".join(f'<option value="{clip(x, 300)}"></option>' for x in names[:CHOICES])
    return f'<datalist id="{id_}">{options}</datalist>'
