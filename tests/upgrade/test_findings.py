"""What `--json` printed and what was shipped by an older release, beside what this one makes of the same recordings."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.cli import main
from agent.contract.codec import decode
from tests.upgrade.inside import FACTS, FLEET

Row = dict[str, Any]


def rows_of(text: str) -> list[Row]:
    """Read JSON lines."""
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def now(repository: Path, capsys: pytest.CaptureFixture[str]) -> list[Row]:
    """Replay the recordings and give what `--json` prints."""
    sets = [word for key, value in FACTS.items() for word in ("--set", f"{key}={value}")]
    for pod, trace in FLEET.items():
        path = repository / "tests" / "data" / "traces" / trace
        assert main(["replay", str(path), "--pod", pod, "--json", *sets]) in (0, 1)
    return [row for row in rows_of(capsys.readouterr().out) if row["line"] == "finding"]


def test_every_field_is_printed_with_its_type(then: Path, now: list[Row]) -> None:
    """A reader of then finds all that it reads; there may be more. An incident has its own line since 0.3."""
    before = [
        row
        for row in rows_of((then / "findings.jsonl").read_text())
        if row.get("line", "finding") == "finding"
    ]
    before = [{name: value for name, value in row.items() if name != "incident"} for row in before]
    kinds = {(name, type(value)) for row in now for name, value in row.items()}
    assert {(name, type(value)) for row in before for name, value in row.items()} <= kinds
    steps = {frozenset(step) for row in before for step in row["evidence"]}
    assert steps <= {frozenset(step) for row in now for step in row["evidence"]}


def ids(rows: list[Row]) -> dict[tuple[str, ...], set[str]]:
    """Give the ids of findings by detector and place; a setting that is missing has none."""
    found: dict[tuple[str, ...], set[str]] = {}
    for row in rows:
        if row["level"] != "self":
            place = (row["detector"], row["pod"], str(row["task_id"]), str(row["store"]))
            found.setdefault(place, set()).add(row["id"])
    return found


def test_a_finding_keeps_its_id(then: Path, now: list[Row]) -> None:
    """What both versions find in a recording has one id, so that a ticket of then is still about it."""
    before, after = ids(rows_of((then / "findings.jsonl").read_text())), ids(now)
    both = before.keys() & after.keys()
    assert {detector for detector, *_ in both} >= {
        "skipped-eos-wipe",
        "stale-eos-checkpoint",
    }
    assert {place: before[place] for place in both} == {place: after[place] for place in both}


def test_events_are_read_and_explained(
    unpacked: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Every line, and the story of a finding that is in them."""
    events = unpacked("events")
    rows = [
        decode(line)
        for path in sorted(events.rglob("*.jsonl.gz"))
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]
    finding = next(row for row in rows if row["kind"] == "finding" and row["severity"] != "info")
    assert main(["explain", str(finding["finding_id"]), "--events", str(events)]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert str(finding["summary"]) in said.out
    assert (
        main(["explain", f"{finding['application_id']}/{finding['task_id']}", "--events", str(events)]) == 0
    )
    assert re.search(rf"^i?-?{str(finding['finding_id'])[:12]}", capsys.readouterr().out, re.MULTILINE)
