"""Copies of alerts and boards inside the chart: a chart can read only below its own folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tools.alerts.files import alert_files

ROOT = Path(__file__).resolve().parent.parent
TARGET = "helm/statewarden/files"


def chart_files() -> Mapping[str, Callable[[str], str]]:
    """Return what belongs there: path in the repository -> what renders it.

    Alerts come from their generator, boards from the committed files, whose generator needs its own packages.
    """
    alerts = {Path(path).name: text for path, text in alert_files().items() if path.endswith(".rules.yaml")}
    boards = sorted((ROOT / "deploy" / "dashboards").glob("*.json"))
    return {
        **{f"{TARGET}/alerts/{name}": _as_is(text) for name, text in alerts.items()},
        **{f"{TARGET}/dashboards/{board.name}": _copy_of(board) for board in boards},
    }


def _as_is(text: str) -> Callable[[str], str]:
    return lambda _: text


def _copy_of(path: Path) -> Callable[[str], str]:
    return lambda _: path.read_text("utf-8")
