"""A case gives one clock: what judges asks it how much time passed, and subtracts no time of its own from now."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.every import every

AGENT = Path(__file__).resolve().parents[2] / "agent"
WAITS = re.compile(r"now_us\s*-\s*\(?[a-z]")
MODULES = sorted(x for name in ("detectors", "judging", "quantities") for x in (AGENT / name).glob("*.py"))


@every("path", MODULES, ids=lambda path: path.stem)
def test_waiting_is_asked_for(path: Path) -> None:
    """`AgentCase.waited_us` and `passed_us` leave out by how much the clock was set forward."""
    found = [line.strip() for line in path.read_text("utf-8").splitlines() if WAITS.search(line)]
    assert found == []
