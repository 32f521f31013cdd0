"""Write deploy/dashboards/*.json, or check that they are in step. Needs the dependency group `dashboards`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from grafana_foundation_sdk.cog.encoder import JSONEncoder  # noqa: E402

from tools.dashboards.boards_fleet import APPLICATION_BOARD, FLEET, TASK_BOARD  # noqa: E402
from tools.dashboards.boards_pod import AGENT_BOARD, POD_BOARD  # noqa: E402
from tools.dashboards.grafana import dashboard  # noqa: E402
from tools.dashboards.model import Board  # noqa: E402

BOARDS = (FLEET, APPLICATION_BOARD, TASK_BOARD, POD_BOARD, AGENT_BOARD)
DIRECTORY = ROOT / "deploy" / "dashboards"


def rendered() -> dict[Path, str]:
    """Render every board: path -> JSON text, keys sorted so that a change shows as a change."""
    return {
        DIRECTORY / f"{board.uid}.json": json.dumps(_tidied(board), indent=1, sort_keys=True) + "\n"
        for board in BOARDS
    }


def _tidied(board: Board) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(JSONEncoder().encode(dashboard(board).build()))
    for number, panel in enumerate(document["panels"], 1):
        panel["id"] = number  # links to single panels stay good
    for variable in document["templating"]["list"]:
        for key in (
            "auto",
            "auto_count",
            "auto_min",
        ):  # the library's own; Grafana's schema knows them elsewhere only
            variable.pop(key, None)
    return document


def main(argv: list[str]) -> int:
    """Write, or with `--check` only compare; 1 if a board is out of step."""
    parser = argparse.ArgumentParser(description="Write the Grafana boards.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a board is out of step")
    check = parser.parse_args(argv).check
    texts = rendered()
    stale = [path for path, text in texts.items() if not path.is_file() or path.read_text("utf-8") != text]
    for path in stale:
        if check:
            print(f"{path.relative_to(ROOT)} is out of step; run: make dashboards", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(texts[path], encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
