"""The committed boards as a small page of our own, with live data: Grafana cannot be had here, eyes can.

Not Grafana's look: the same grid, titles, numbers, words of the value mappings, legends, units and empty states.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.boards import filled

Ask = Callable[[str], list[Any]]
COLORS = {"green": "#2e6b46", "orange": "#855600", "red": "#b3261e", "blue": "#2b5f8a", "text": "#1d2126"}
PALETTE = ("#2b5f8a", "#b3261e", "#2e6b46", "#7a4d9c", "#855600", "#3d8a8a", "#a0527a", "#5b6470")
STYLE = """
body { margin: 0; padding: 16px; background: #f7f6f3; color: #1d2126; font: 13px/1.4 "DejaVu Sans", sans-serif;
width: 1320px }
main { display: grid; grid-template-columns: repeat(24, 1fr); grid-auto-rows: 34px; gap: 8px }
.panel { background: #fff; border: 1px solid #dedbd3; border-radius: 6px; padding: 6px 10px; overflow: hidden }
.row { font-weight: 600; font-size: 15px; align-self: end } h1 { font-size: 20px }
h2 { font-size: 13px; margin: 0 0 4px }
.big { font-size: 26px; font-weight: 600 } table { border-collapse: collapse; width: 100% } td, th { text-align: left;
padding: 2px 8px 2px 0; border-bottom: 1px solid #eee }
.bar { position: relative; height: 18px; background: #efede7; margin: 2px 0 }
.bar i { position: absolute; top: 0; bottom: 0; color: #fff; font-size: 11px; padding-left: 4px; overflow: hidden }
.soft { color: #5b6470 } svg { width: 100%; height: 60% } .legend span { margin-right: 12px; white-space: nowrap }
"""


def render(board: Mapping[str, Any], instant: Ask, ranged: Ask) -> str:
    """Draw one board.

    Args:
        board: The committed JSON.
        instant: Gives the present value of an expression.
        ranged: Gives its recent values.
    """
    cells = "".join(_cell(panel, instant, ranged) for panel in board["panels"])
    title = html.escape(board["title"])
    head = f"<!doctype html><meta charset=utf-8><title>{title}</title><style>{STYLE}</style>"
    return f"{head}<h1>{title}</h1><main>{cells}</main>"


def _cell(panel: Mapping[str, Any], instant: Ask, ranged: Ask) -> str:
    place = panel["gridPos"]
    area = (
        f"grid-column: {place['x'] + 1} / span {place['w']}; grid-row: {place['y'] + 1} / span {place['h']}"
    )
    title = html.escape(panel["title"])
    if panel["type"] == "row":
        return f'<div class="row" style="{area}">{title}</div>'
    ask = instant if panel["type"] in ("stat", "table") else ranged
    series = [
        (row, target.get("legendFormat", ""))
        for target in panel["targets"]
        for row in ask(filled(target["expr"]))
    ]
    body = (
        _SHAPES[panel["type"]](panel, series)
        if series
        else f'<p class="soft">{_defaults(panel)["noValue"]}</p>'
    )
    return f'<section class="panel" style="{area}"><h2>{title}</h2>{body}</section>'


def _defaults(panel: Mapping[str, Any]) -> Mapping[str, Any]:
    defaults: Mapping[str, Any] = panel["fieldConfig"]["defaults"]
    return defaults


def _shown(panel: Mapping[str, Any], value: float) -> tuple[str, str]:
    """Word and colour of a number, as the board's mappings, unit and thresholds say."""
    defaults = _defaults(panel)
    color = "text"
    for step in defaults["thresholds"]["steps"]:
        if step["value"] is None or value >= step["value"]:
            color = step["color"]
    for mapping in defaults.get("mappings", ()):
        if known := mapping["options"].get(f"{value:g}"):
            return known["text"], COLORS.get(known["color"], known["color"])
    return _with_unit(value, defaults["unit"]), COLORS.get(color, color)


def _with_unit(value: float, unit: str) -> str:
    if math.isnan(value):
        return "NaN"
    if unit == "bytes":
        power = max(0, min(4, int(math.log(max(abs(value), 1), 1024))))
        return f"{value / 1024**power:.3g} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    return f"{value:.4g}{ {'s': ' s', 'ops': ' /s'}.get(unit, '') }"


def _named(row: Mapping[str, Any], legend: str) -> str:
    text = legend
    for name, value in row["metric"].items():
        text = text.replace("{{" + name + "}}", value)
    if legend == "__auto":
        text = ", ".join(f"{k}={v}" for k, v in row["metric"].items() if k != "__name__")
    return html.escape(text)


def _stat(panel: Mapping[str, Any], series: list[tuple[Any, str]]) -> str:
    parts = []
    for row, legend in series:
        text, color = _shown(panel, float(row["value"][1]))
        parts.append(f'<div class="big" style="color:{color}">{html.escape(text)}</div>')
        if len(series) > 1:
            parts.append(f'<div class="soft">{_named(row, legend)}</div>')
    return "".join(parts)


def _table(panel: Mapping[str, Any], series: list[tuple[Any, str]]) -> str:
    options = panel["transformations"][0]["options"]
    there = {name for row, _ in series for name in row["metric"]}
    names = sorted(there & set(options["indexByName"]), key=options["indexByName"].__getitem__)
    head = "".join(f"<th>{html.escape(name)}</th>" for name in (options["renameByName"]["Value"], *names))
    lines = []
    for row, _ in series:
        text, color = _shown(panel, float(row["value"][1]))
        cells = "".join(f"<td>{html.escape(row['metric'].get(name, ''))}</td>" for name in names)
        lines.append(f'<tr><td style="color:{color}">{html.escape(text)}</td>{cells}</tr>')
    return f"<table><tr>{head}</tr>{''.join(lines)}</table>"


def _series(panel: Mapping[str, Any], series: list[tuple[Any, str]]) -> str:
    points = [[(float(t), float(v)) for t, v in row["values"]] for row, _ in series]
    flat = [point for line in points for point in line if not math.isnan(point[1])]
    low_t, high_t = min(t for t, _ in flat), max(t for t, _ in flat)
    high = max(max(v for _, v in flat), 1e-9)
    lines = []
    for index, line in enumerate(points):
        path = " ".join(
            f"{(t - low_t) / max(high_t - low_t, 1) * 600:.1f},{118 - max(v, 0) / high * 112:.1f}"
            for t, v in line
        )
        lines.append(
            f'<polyline fill="none" stroke="{PALETTE[index % 8]}" stroke-width="2" points="{path}"/>'
        )
    legend = "".join(
        f'<span style="color:{PALETTE[index % 8]}">■ {_named(row, text)}</span>'
        for index, (row, text) in enumerate(series)
    )
    top = html.escape(_with_unit(high, _defaults(panel)["unit"]))
    return (
        f'<div class="soft">up to {top}</div>'
        f'<svg viewBox="0 0 600 120" preserveAspectRatio="none">{"".join(lines)}</svg>'
        f'<div class="legend">{legend}</div>'
    )


def _timeline(panel: Mapping[str, Any], series: list[tuple[Any, str]]) -> str:
    times = [float(t) for row, _ in series for t, _ in row["values"]]
    low, width = min(times), max(max(times) - min(times), 1)
    parts = []
    for row, legend in series:
        runs: list[tuple[float, float, float]] = []
        for t, value in ((float(t), float(v)) for t, v in row["values"]):
            if runs and runs[-1][2] == value:
                runs[-1] = (runs[-1][0], t, value)
            else:
                runs.append((t, t, value))
        bars = ""
        for begin, end, value in runs:
            text, color = _shown(panel, value)
            bars += (
                f'<i style="left:{(begin - low) / width * 100:.1f}%;width:{(end - begin) / width * 100 + 0.5:.1f}%;'
                f'background:{color}">{html.escape(text)}</i>'
            )
        parts.append(f'<div class="soft">{_named(row, legend)}</div><div class="bar">{bars}</div>')
    return "".join(parts)


_SHAPES = {"stat": _stat, "table": _table, "timeseries": _series, "state-timeline": _timeline}
