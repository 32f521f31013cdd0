"""Copies of alerts and boards inside the chart: a chart can read only below its own folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tools.alerts.files import alert_files

ROOT = Path(__file__).resolve().parent.parent
TARGET = "helm/statewarden/files"


def chart_files() -> Mapping[str, Callable[[str], str]]:
    """Tell what belongs there: path in the repository -> what renders it.

    Alerts come from their generator, boards from the committed files, whose generator needs packages of its own.
    """
    return dict([*_alerts(), *_boards()])


def _alerts() -> Iterator[tuple[str, Callable[[str], str]]]:
    for path, text in alert_files().items():
        if path.endswith(".rules.yaml"):
            yield f"{TARGET}/alerts/{Path(path).name}", lambda _, text=text: text


def _boards() -> Iterator[tuple[str, Callable[[str], str]]]:
    for board in sorted((ROOT / "deploy" / "dashboards").glob("*.json")):
        yield f"{TARGET}/dashboards/{board.name}", lambda _, board=board: board.read_text("utf-8")
