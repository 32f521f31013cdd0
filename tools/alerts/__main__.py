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
    for option, what, default in (
        ("--runbooks", "runbook", RUNBOOKS),
        ("--dashboards", "board", DASHBOARDS),
    ):
        words = f"base of {what} links, empty for none (default: the placeholder {default})"
        parser.add_argument(option, default=default, help=words)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="where the files go")
    chosen = parser.parse_args(argv)
    links = Links(chosen.runbooks.rstrip("/"), chosen.dashboards.rstrip("/"))
    for path, text in alert_files(links).items():
        target = chosen.output / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        print(f"wrote {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
