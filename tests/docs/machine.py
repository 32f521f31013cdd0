"""Commands of every machine, run by bash on a copy of the recorded state directory."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from tests.docs.fixture import World
from tests.docs.shell import Line, commands
from tests.docs.shown import lines_of_blocks, lines_of_sentences
from tests.docs.table import entries, table

ON_FILES = re.compile(r"\b(?:STATE|OUT|VERIFIED)\b")


def lines() -> list[Line]:
    """List lines of such commands alone that name a file of the small world."""
    programs = set(table()["machine"]["programs"])
    return [
        line
        for line in (*lines_of_blocks(), *lines_of_sentences())
        if ON_FILES.search(line.text) and {command.words[0] for command in commands(line.text)} <= programs
    ]


def run(line: Line, world: World, place: Path) -> subprocess.CompletedProcess[str]:
    """Run a line on a copy, below `place` and nowhere else."""
    shutil.copytree(world["state"], place / "state")
    text = line.text
    for entry in entries("path"):
        text = re.sub(entry["word"], entry["is"].format(**{**world, "place": str(place)}), text)
    assert not re.search(r"\brm\b.* /(?!\S*/state/)", text), text
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text], cwd=place, capture_output=True, text=True, check=False
    )
