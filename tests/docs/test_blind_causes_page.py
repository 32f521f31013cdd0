"""The table of causes is on the page that people read."""

from __future__ import annotations

from pathlib import Path

from agent.inventory.blind_causes import CAUSES


def test_the_page_has_the_table(repository: Path) -> None:
    """The page of `auditor-blind` carries the rows as the code has them."""
    page = (repository / "docs/runbooks/unwatched.md").read_text(encoding="utf-8")
    rows = [f"| `{x.slug}` | {x.what} | {x.remedy} |\n" for x in CAUSES]
    assert "| cause | what happened | remedy |\n|---|---|---|\n" + "".join(rows) in page
