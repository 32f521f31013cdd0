"""Boards as Grafana's JSON: `deploy/dashboards/*.json`. Written for Grafana 11; `typecheck.sh` holds it against its types."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tools.alerts.files import RECORDED
from tools.dashboards.boards_fleet import APPLICATION_BOARD, FLEET, TASK_BOARD
from tools.dashboards.boards_pod import AGENT_BOARD, POD_BOARD
from tools.dashboards.model import OF_NAMESPACE, Board, Kind, Meaning, Panel, Query, Variable

BOARDS = (FLEET, APPLICATION_BOARD, TASK_BOARD, POD_BOARD, AGENT_BOARD)
DIRECTORY = "deploy/dashboards"

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
TAG = "statewarden"
_FIRST = (
    "severity", "Value", "detector", "rule", "named_by", "namespace", "application_id", "task_id", "tasks", "pod", "pods",
)  # fmt: skip
"""Columns of tables: how bad, what, where."""
_GREEN, _AMBER, _RED, _BLUE, _GREY, _INK = "green", "orange", "red", "blue", "#7b838c", "text"

_WORDS: dict[Meaning, dict[str, tuple[str, str]]] = {
    Meaning.SEVERITY: {"0": ("none", _GREEN), "1": ("info", _BLUE), "2": ("warning", _AMBER), "3": ("critical", _RED)},
    Meaning.HELD: {"0": ("free", _GREY), "1": ("held", _GREEN)},
    Meaning.YES_NO: {"0": ("no", _GREY), "1": ("yes", _BLUE)},
    Meaning.RESTART: {
        "0": ("yes, orderly", _GREEN), "1": ("orderly only, never SIGKILL", _AMBER), "2": ("read the runbook first", _RED),
        "3": ("unknown: blind", _RED),
    },
}  # fmt: skip
"""Numbers -> word and colour: no meaning rests on the colour alone."""

_STEPS: dict[Meaning, tuple[tuple[float | None, str], ...]] = {
    Meaning.PLAIN: ((None, _INK),),
    Meaning.LIFE: ((None, _BLUE),),
    Meaning.BAD_FROM_1: ((None, _GREEN), (1, _RED)),
    Meaning.WARN_FROM_1: ((None, _GREEN), (1, _AMBER)),
    Meaning.SEVERITY: ((None, _GREEN), (1, _BLUE), (2, _AMBER), (3, _RED)),
    Meaning.HELD: ((None, _GREY), (1, _GREEN)),
    Meaning.YES_NO: ((None, _GREY), (1, _BLUE)),
    Meaning.RESTART: ((None, _GREEN), (1, _AMBER), (2, _RED)),
    Meaning.SHARE: ((None, _RED), (0.9, _AMBER), (0.99, _GREEN)),
    Meaning.AGE: ((None, _GREEN), (3_600, _AMBER), (10_800, _RED)),
}

_LEGEND = {
    "legend": {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": True},
    "tooltip": {"mode": "single", "sort": "asc"},
}
_OPTIONS: Mapping[Kind, Mapping[str, object]] = {
    Kind.STAT: {
        "colorMode": "value", "graphMode": "none", "justifyMode": "auto", "orientation": "auto",
        "percentChangeColorMode": "standard", "reduceOptions": {"calcs": ["lastNotNull"]}, "showPercentChange": False,
        "textMode": "auto", "wideLayout": True,
    },
    Kind.SERIES: _LEGEND,
    Kind.TIMELINE: {
        "alignValue": "left", "mergeValues": True, "perPage": 20, "rowHeight": 0.8, "showValue": "auto", **_LEGEND,
    },
}  # fmt: skip
_CUSTOM: Mapping[Kind, Mapping[str, object]] = {
    Kind.SERIES: {"axisSoftMin": 0, "fillOpacity": 8, "lineWidth": 1, "showPoints": "auto"},
    Kind.TIMELINE: {"fillOpacity": 75, "lineWidth": 0},
}


def board_files() -> dict[str, str]:
    """Render every board: path -> text, keys sorted so that a change shows as a change."""
    return {
        f"{DIRECTORY}/{x.uid}.json": json.dumps(_board(x), indent=1, sort_keys=True) + "\n" for x in BOARDS
    }


def _board(board: Board) -> dict[str, object]:
    # alerts on the time axis: a step in a curve and its alert are side by side
    shown = 'alertname=~"Statewarden.+",alertstate="firing",severity=~"critical|warning"'
    alerts = f"ALERTS{{{shown},{OF_NAMESPACE}}}"
    source = {
        "allowCustomValue": True, "includeAll": False, "label": "Prometheus", "multi": False, "name": "datasource",
        "query": "prometheus", "skipUrlSync": False, "type": "datasource",
    }  # fmt: skip
    panels = [{"id": number, **panel} for number, panel in enumerate(_panels(board), 1)]  # links stay good
    return {
        "annotations": {"list": [{
            "builtIn": 0, "datasource": SOURCE, "enable": True, "expr": alerts, "hide": False, "iconColor": _RED,
            "name": "Alerts",
        }]},
        "description": board.text, "editable": False, "fiscalYearStartMonth": 0, "graphTooltip": 1,
        "links": [{
            "asDropdown": True, "icon": "", "includeVars": True, "keepTime": True, "tags": [TAG], "targetBlank": False,
            "title": "statewarden", "tooltip": "", "type": "dashboards",
        }],
        "panels": panels, "refresh": "30s", "schemaVersion": 41, "tags": [TAG],
        "templating": {"list": [source, *map(_variable, board.variables)]},
        "time": {"from": board.since, "to": "now"}, "timezone": "browser", "title": board.title, "uid": board.uid,
    }  # fmt: skip


def _variable(variable: Variable) -> dict[str, object]:
    return {
        "allValue": ".*", "allowCustomValue": True, "current": {"text": "All", "value": "$__all"}, "datasource": SOURCE,
        "includeAll": True, "label": variable.label, "multi": True, "name": variable.name, "query": variable.query,
        "refresh": 2, "skipUrlSync": False, "sort": 7, "type": "query",
    }  # fmt: skip


def _panels(board: Board) -> Iterator[dict[str, object]]:
    """Give rows and panels, each below or beside the one before."""
    top = 0
    for row in board.rows:
        place = {"h": 1, "w": 24, "x": 0, "y": top}
        yield {"collapsed": False, "gridPos": place, "panels": [], "title": row.title, "type": "row"}
        top, left, tall = top + 1, 0, 0
        for panel in row.panels:
            if left + panel.width > 24:
                top, left, tall = top + tall, 0, 0
            place = {"h": panel.height, "w": panel.width, "x": left, "y": top}
            yield {"gridPos": place, **_panel(panel)}
            left, tall = left + panel.width, max(tall, panel.height)
        top += tall


def _panel(panel: Panel) -> dict[str, object]:
    steps = [{"color": color, "value": value} for value, color in _STEPS[panel.meaning]]
    defaults: dict[str, object] = {
        "noValue": panel.empty, "thresholds": {"mode": "absolute", "steps": steps}, "unit": panel.unit,
    }  # fmt: skip
    if words := _WORDS.get(panel.meaning):
        rows = enumerate(words.items())
        options = {value: {"color": color, "index": at, "text": text} for at, (value, (text, color)) in rows}
        defaults["mappings"] = [{"options": options, "type": "value"}]
    if panel.kind in _CUSTOM:
        defaults["custom"] = _CUSTOM[panel.kind]
    more: dict[str, Any] = {"options": _OPTIONS[panel.kind]} if panel.kind in _OPTIONS else {}
    overrides: list[dict[str, object]] = []
    if panel.kind is Kind.TABLE:
        columns = _columns(panel)
        overrides = list(_overrides(columns))
        count = "worst" if panel.meaning is Meaning.SEVERITY else "count"
        hidden = dict.fromkeys(("Time", "__name__", "job", "instance"), True)
        order = {name: number for number, name in enumerate(columns)}
        tidy = {"excludeByName": hidden, "indexByName": order, "renameByName": {"Value": count}}
        more["transformations"] = [{"id": "organize", "options": tidy}]
    return {
        "datasource": SOURCE, "description": panel.text, "repeatDirection": "h", "title": panel.title,
        "fieldConfig": {"defaults": defaults, "overrides": overrides}, "transparent": False, "type": panel.kind.value,
        "targets": [_query(panel.kind, query, chr(ord("A") + index)) for index, query in enumerate(panel.queries)],
        **more,
    }  # fmt: skip


def _query(kind: Kind, query: Query, ref_id: str) -> dict[str, object]:
    instant = kind in (Kind.TABLE, Kind.STAT)
    shown = {"format": "table"} if kind is Kind.TABLE else {"legendFormat": query.legend or "__auto"}
    asked = {"datasource": SOURCE, "expr": query.expr, "refId": ref_id}
    return {**asked, "instant": instant, "range": not instant, **shown}


def _columns(panel: Panel) -> list[str]:
    """List the columns of a table: `_FIRST`, then the rest; Grafana's own order is alphabetical."""
    expr = panel.queries[0].expr
    name = expr.removeprefix("sort_desc(").partition("{")[0]
    grouped = re.search(r"by \(([^)]*)\)", RECORDED.get(name, expr))
    labels = grouped[1].split(", ") if grouped else []
    return [x for x in _FIRST if x in (*labels, "Value")] + [x for x in labels if x not in _FIRST]


def _overrides(columns: Sequence[str]) -> Iterator[dict[str, object]]:
    """Let fields of a table lead to other boards, as far as it has what these ask for; colour the worst severity."""
    labels = {"namespace": "namespace", "application": "application_id", "task": "task_id", "pod": "pod"}
    for board in BOARDS:
        name = board.uid.removeprefix("statewarden-")
        if labels.get(name) not in columns:
            continue
        asked = [x.name for x in board.variables if labels.get(x.name) in columns]
        variables = "&".join(f"var-{x}=${{__data.fields.{labels[x]}}}" for x in asked)
        url = f"/d/{board.uid}?${{cluster:queryparam}}&{variables}&${{__url_time_range}}"
        yield _override(labels[name], "links", [{"title": f"Open the {name}", "url": url}])
    yield _override("worst", "custom.cellOptions", {"type": "color-text"})


def _override(field: str, id_: str, value: object) -> dict[str, object]:
    return {"matcher": {"id": "byName", "options": field}, "properties": [{"id": id_, "value": value}]}
