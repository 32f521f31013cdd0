"""The committed Grafana boards, as tests read them: panels, queries with their variables filled in."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DIRECTORY = Path(__file__).resolve().parents[2] / "deploy" / "dashboards"


@dataclass(frozen=True)
class Asked:
    """One query of one panel."""

    board: str
    panel: str
    kind: str
    expr: str


def boards() -> dict[str, dict[str, Any]]:
    """Read all boards by uid."""
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(DIRECTORY.glob("*.json"))
    }


def filled(expr: str, **values: str) -> str:
    """Put values in the place of variables, as Grafana does; `.*` stands for All."""
    expr = expr.replace("$__rate_interval", "1m")
    return re.sub(r"\$([a-z]\w*)", lambda found: values.get(found[1], ".*"), expr)


def queries() -> list[Asked]:
    """List every query of every panel, in the order of the boards."""
    return [
        Asked(uid, panel["title"], panel["type"], target["expr"])
        for uid, board in boards().items()
        for panel in board["panels"]
        for target in panel.get("targets", ())
    ]
