"""Write every generated file of the repository, or check that the committed ones are in step.

Each page is rendered by the code that it describes; this tool only knows where the results live.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.affected_page import render_affected_page  # noqa: E402 - the checkout, not whatever is installed
from tools.alerts.files import alert_files  # noqa: E402
from tools.contract_page import render_contract_page  # noqa: E402
from tools.dashboards.grafana import board_files  # noqa: E402
from tools.licences_page import render_licences  # noqa: E402
from tools.parts_of_pages import (  # noqa: E402
    render_alerts_page,
    render_digest_page,
    render_exit_codes_page,
    render_facts_page,
    render_incidents_page,
    render_metrics_page,
)
from tools.scan_picture import render_scan_picture  # noqa: E402
from tools.schemas import json_schema, render, scan_schema  # noqa: E402
from tools.tables_page import render_tables_page  # noqa: E402
from tools.unit_pages import render_runbooks_list, unit_pages  # noqa: E402

CHART = "helm/statewarden/files"


def chart_files() -> dict[str, str]:
    """Copy alerts and boards into the chart, which can read only below its own folder: path -> text."""
    alerts = {path: text for path, text in alert_files().items() if path.endswith(".rules.yaml")}
    copies = {"alerts": alerts, "dashboards": board_files()}
    return {
        f"{CHART}/{folder}/{Path(path).name}": text
        for folder, files in copies.items()
        for path, text in files.items()
    }


def as_is(text: str) -> Callable[[str], str]:
    """Make the rendering of a file that keeps nothing of what is there."""
    return lambda _: text


GENERATED: Mapping[str, Callable[[str], str]] = {
    "agent/contract/schema.json": lambda _: render(json_schema()),
    "docs/affected.md": render_affected_page,
    "docs/alerts.md": render_alerts_page,
    "docs/configuration.md": render_facts_page,
    "docs/contract.md": render_contract_page,
    "docs/digests.md": render_digest_page,
    "docs/exit-codes.md": render_exit_codes_page,
    "docs/incidents.md": render_incidents_page,
    "docs/metrics.md": lambda _: render_metrics_page(),
    "docs/runbooks/README.md": render_runbooks_list,
    "docs/scan.schema.json": lambda _: render(scan_schema()),
    "docs/scan.svg": lambda _: render_scan_picture(),
    "docs/supply-chain.md": render_licences,
    "docs/tables.md": render_tables_page,
    **unit_pages(),
    **{path: as_is(text) for path, text in (alert_files() | board_files() | chart_files()).items()},
}
"""Path in the repository -> what renders it from the file as it is (some keep a part written by hand)."""


def stale_files(root: Path) -> list[str]:
    """List generated files that differ from what the code renders now, missing ones included."""
    committed = {path: _committed(root / path) for path in GENERATED}
    return [path for path, render in GENERATED.items() if committed[path] != render(committed[path] or "")]


def write_files(root: Path) -> list[str]:
    """Write the generated files that are out of step and list them."""
    stale = stale_files(root)
    for path in stale:
        text = GENERATED[path](_committed(root / path) or "")
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return stale


def main(argv: list[str]) -> int:
    """Write, or with `--check` only compare: 1 if a file is out of step."""
    parser = argparse.ArgumentParser(description="Write the generated files.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is out of step")
    if parser.parse_args(argv).check:
        stale = stale_files(ROOT)
        for path in stale:
            print(f"{path} is out of step with the code; run: make docs", file=sys.stderr)
        return 1 if stale else 0
    for path in write_files(ROOT):
        print(f"wrote {path}")
    return 0


def _committed(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
