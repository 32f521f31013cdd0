"""Filters of jq that pages show, run by jq on what `scan --json` really prints."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs import ours
from tests.docs.fixture import SETTINGS, unpacked
from tests.docs.shell import commands
from tests.docs.shown import lines_of_blocks, lines_of_sentences

FILTERS = [
    (line.place, command.words)
    for line in (*lines_of_blocks(), *lines_of_sentences())
    for command in commands(line.text)
    if command.words[:1] == ("jq",)
]


@pytest.mark.packages
@pytest.mark.parametrize(("place", "words"), FILTERS)
def test_a_filter_finds_something(place: str, words: tuple[str, ...], tmp_path: Path) -> None:
    """Each line of its output is an incident, and none comes twice."""
    if shutil.which("jq") is None:
        pytest.skip("no jq: apt-get install jq")
    unpacked(tmp_path)
    _, said = ours.run(["statewarden", "scan", str(tmp_path), "--json", *SETTINGS])
    done = subprocess.run(words, input=said, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), place
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert found
    assert len({one["id"] for one in found}) == len(found)
