"""The page about `scan` lists what a finding has, and the picture in README.md shows what it is said to show."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from agent.cli import main

TRACE = "tests/data/traces/kafka-20685-4.1.2/trace-pod-a.jsonl.gz"
FACTS = ("--set", "processing_guarantee=exactly_once_v2", "--set", "kafka_streams_version=4.1.2")


def test_every_field_is_on_the_page(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fields of a line of `--json`, and of the incident in it; and the page names no others."""
    assert main(["replay", str(repository / TRACE), *FACTS, "--json"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    page = (repository / "docs/scan.md").read_text("utf-8").partition("## Fields")[2]
    for kind in ("finding", "incident", "summary"):
        table = re.split(rf"\| field of (?:an?|the) `{kind}` \|", page)[1].partition("\n\n")[0]
        cells = re.findall(r"^\| (`[^|]+) \|", table, flags=re.MULTILINE)
        fields = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
        found = {name for row in rows if row["line"] == kind for name in row}
        assert found == fields | {"line", "version"}


def test_the_picture_shows_the_words_beside_it(repository: Path) -> None:
    """What README.md says of it: a critical incident, its cause, and what to do before the next start."""
    picture = (repository / "docs/scan.svg").read_text("utf-8").replace("&#160;", " ")
    shown = " ".join(re.sub(r"<[^>]+>", " ", picture).split())
    for words in (
        "statewarden scan",
        "1 critical",
        "CRITICAL",
        "KAFKA-20685; this release has it",
        "BEFORE the next start",
    ):
        assert words in shown
