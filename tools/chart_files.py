"""Copies of alerts and boards inside the chart: a chart can read only below its own folder."""

from __future__ import annotations

from pathlib import Path

from tools.alerts.files import alert_files
from tools.dashboards.grafana import board_files

TARGET = "helm/statewarden/files"


def chart_files() -> dict[str, str]:
    """Return what belongs there: path in the repository -> text."""
    alerts = {path: text for path, text in alert_files().items() if path.endswith(".rules.yaml")}
    copies = {"alerts": alerts, "dashboards": board_files()}
    return {
        f"{TARGET}/{folder}/{Path(path).name}": text
        for folder, files in copies.items()
        for path, text in files.items()
    }
