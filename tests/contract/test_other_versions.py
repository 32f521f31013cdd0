"""The event contract's promise (docs/contract.md), from agent to sink to reader; the rollup's half is in
`tests/spark_rollup/bronze/test_load.py` and `intake/test_formats.py`."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from agent.cli import main
from agent.contract import codec
from agent.contract.codec import (
    DATASCHEMA,
    ContractError,
    Encoder,
    LaterVersionError,
    UnknownMajorError,
    decode,
)
from agent.contract.events import SCHEMA_MAJOR, SCHEMA_MINOR, Origin, Record
from agent.contract.fields import FIELDS
from agent.ship.shipper import Outcome, Shipper
from agent.ship.sinks.directory import DirectorySink
from tests.agent.ship.ship_support import HandClock, finding, open_spool, transition

WRITER = Origin("uid-a", "boot1", "pod-a", "shop")
LATER = f"{SCHEMA_MAJOR}.{SCHEMA_MINOR + 1}"
ANOTHER = f"{SCHEMA_MAJOR + 1}.0"


def line(record: Record, **data: Any) -> str:
    """Write a record and change fields of its data."""
    event = json.loads(Encoder(WRITER).encode(record, 1))
    event["data"] |= data
    return json.dumps(event)


def test_the_type_says_the_major_version() -> None:
    """Whoever reads only the envelope can distinguish versions."""
    event = json.loads(line(finding()))
    assert event["type"] == f"io.statewarden.finding.v{SCHEMA_MAJOR}"
    assert event["dataschema"] == DATASCHEMA == f"urn:statewarden:events:v{SCHEMA_MAJOR}"
    assert event["data"]["schema_version"] == f"{SCHEMA_MAJOR}.{SCHEMA_MINOR}"


@pytest.mark.parametrize("minor", range(SCHEMA_MINOR + 1))
def test_older_minor_versions_are_read(minor: int) -> None:
    """Without what came later: no field of a later version is required."""
    came_later = {row.name for row in FIELDS if int(row.since.partition(".")[2]) > minor}
    event = json.loads(line(finding(), schema_version=f"{SCHEMA_MAJOR}.{minor}"))
    event["data"] = {name: value for name, value in event["data"].items() if name not in came_later}
    assert decode(json.dumps(event))["finding_id"] == "f1"


def test_what_a_later_minor_version_added_is_ignored() -> None:
    """A new field, one inside a list, and a known field in a kind that did not have it."""
    evidence = [{"at": "2026-11-22T03:14:07Z", "what": "w", "where": "x", "why": "new"}]
    text = line(finding(), schema_version=LATER, colour="red", evidence=evidence, tasks=3)
    assert decode(text)["colour"] == "red"
    with pytest.raises(ContractError, match="'tasks' does not belong"):
        decode(line(finding(), tasks=3))


@pytest.mark.parametrize(
    "new", [{"kind": "gossip"}, {"severity": "fatal"}, {"kind": ["gossip"]}, {"level": None}], ids=json.dumps
)
def test_a_kind_or_value_of_a_later_minor_version_asks_for_an_upgrade(new: dict[str, Any]) -> None:
    """In this version the same is a mistake."""
    with pytest.raises(LaterVersionError, match=f"contract version {LATER}, .*: upgrade statewarden"):
        decode(line(finding(), schema_version=LATER, **new))
    with pytest.raises(ContractError) as caught:
        decode(line(finding(), **new))
    assert not isinstance(caught.value, LaterVersionError)


@pytest.mark.parametrize("minor", ["", "x", "-1", "\N{SUPERSCRIPT TWO}", "9" * 5000], ids="abcde")
def test_an_odd_version_is_no_later_one(minor: str) -> None:
    """It is read as this version, or refused as any other broken line."""
    version = f"{SCHEMA_MAJOR}.{minor}"
    assert decode(line(finding(), schema_version=version))["finding_id"] == "f1"
    with pytest.raises(ContractError) as caught:
        decode(line(finding(), schema_version=version, kind="gossip"))
    assert not isinstance(caught.value, LaterVersionError)


@pytest.mark.parametrize("version", [LATER, ANOTHER])
def test_spool_and_sink_pass_a_line_of_another_version_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """After a downgrade they hold what a later agent wrote: shipped as it is, in its place, before anything new."""
    clock, target = HandClock(), tmp_path / "shipped"
    target.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(codec, "SCHEMA_VERSION", version)
        with open_spool(tmp_path / "spool", clock, Origin("uid-a", "later", "pod-a")) as spool:
            spool.append(finding())
            spool.append(transition())
    with open_spool(tmp_path / "spool", clock, WRITER) as spool:
        spool.append(finding())
        spool.seal()
        shipper = Shipper(spool, DirectorySink(target))
        while shipper.ship_once(clock.monotonic_s()) is Outcome.SHIPPED:
            continue
        assert (spool.stats().records, spool.stats().dropped) == (0, {})
    rows = [
        json.loads(text)["data"]
        for path in sorted(target.rglob("*.jsonl.gz"), reverse=True)
        for text in gzip.decompress(path.read_bytes()).splitlines()
    ]
    assert [(row["boot_id"], row["schema_version"]) for row in rows] == [
        ("later", version),
        ("later", version),
        ("boot1", codec.SCHEMA_VERSION),
    ]


@pytest.mark.parametrize("new", [{"schema_version": ANOTHER}, {"schema_version": LATER, "severity": "fatal"}])
def test_a_story_names_what_was_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], new: dict[str, Any]
) -> None:
    """One sentence on standard error, and code 3."""
    (tmp_path / "a.jsonl").write_text(f"{line(finding(), **new)}\n")
    assert main(["explain", "f1", "--events", str(tmp_path)]) == 3
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "1 event not read, the first: " in said
    assert "upgrade statewarden" in said
    (tmp_path / "b.jsonl").write_text(f"{line(finding())}\n")
    assert main(["explain", "f1", "--events", str(tmp_path)]) == 3
    shown = capsys.readouterr()
    assert "upgrade statewarden" in shown.err
    assert shown.out.startswith("INFO     ")


def test_another_major_version_is_distinguished() -> None:
    """Readers set it aside without knowing anything else of it."""
    with pytest.raises(UnknownMajorError, match="upgrade statewarden, the line is not read"):
        decode(json.dumps({"id": "x", "data": {"schema_version": ANOTHER, "kind": "gossip"}}))


def test_a_transition_is_no_exception() -> None:
    """An unknown change of a later version is refused by name, not taken for another."""
    with pytest.raises(LaterVersionError, match=r"transition\.change must be one of .*, got 'task-frozen'"):
        decode(line(transition(), schema_version=LATER, change="task-frozen"))
