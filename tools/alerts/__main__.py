"""Render the rule files with links of your own: `python -m tools.alerts --runbooks URL --dashboards URL --output DIR`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.alerts.files import alert_files
from tools.alerts.model import DASHBOARDS, RUNBOOKS, Links


def main(argv: list[str]) -> int:
    """Write all rule and test files below a directory; returns 0."""
    parser = argparse.ArgumentParser(description="Render alert rules and their promtool tests.")
    parser.add_argument("--runbooks", default=RUNBOOKS, help=f"base of runbook links (default: {RUNBOOKS})")
    parser.add_argument(
        "--dashboards", default=DASHBOARDS, help=f"base of board links (default: {DASHBOARDS})"
    )
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="where the files go")
    chosen = parser.parse_args(argv)
    for path, text in alert_files(Links(chosen.runbooks, chosen.dashboards)).items():
        target = chosen.output / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        print(f"wrote {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
