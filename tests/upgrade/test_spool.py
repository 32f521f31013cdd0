"""The spool of an older release is emptied by the agent of today: every whole record, in order, under its old name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.cli import main
from agent.contract.codec import decode
from agent.contract.events import Origin
from tests.agent.ship.ship_support import HandClock, heartbeat, open_spool

NOW = Origin(pod_uid="uid-a", boot_id="now", pod="pod-a")
OWN = {"lock", "reserve", "spool.db", "spool.db-wal", "home"}


def whole_records(path: Path) -> list[bytes]:
    """Read a file of frames: eight digits of the length, eight of a checksum, the record, a newline."""
    return [line[18:] for line in path.read_bytes().splitlines() if line.endswith(b"}")]


def test_all_that_waited_is_shipped_in_order(unpacked: Callable[[str], Path]) -> None:
    """Byte for byte what was written; boots by age, each without a hole; what was set aside was announced then."""
    folder = unpacked("spool")
    waiting = [*folder.glob("*.sealed"), *folder.glob("*.open")]
    expected = {path.name.partition("-")[0]: list[bytes]() for path in sorted(waiting)}
    for path in sorted(waiting, key=lambda path: path.name.split("-")[1]):
        expected[path.name.partition("-")[0]] += whole_records(path)
    assert any(folder.glob("*.open"))
    assert any(folder.glob("*.rejected"))
    assert any(folder.glob("*.bad"))
    parcels: list[bytes] = []
    with open_spool(folder, HandClock(), NOW) as spool:
        spool.append(heartbeat())
        spool.seal()
        while (parcel := spool.next_parcel()) is not None:
            parcels.append(parcel.payload)
            spool.acknowledge(parcel)
    lines = [line for payload in parcels for line in payload.splitlines()]
    rows: list[dict[str, Any]] = [decode(line) for line in lines]
    *boots, newest = dict.fromkeys(str(row["boot_id"]) for row in rows)
    began = {boot: min(row["observed_at_us"] for row in rows if row["boot_id"] == boot) for boot in boots}
    assert (boots, newest) == (sorted(boots, key=lambda boot: began[boot]), "now")
    shipped = {
        boot: [line for line in lines if json.loads(line)["data"]["boot_id"] == boot] for boot in boots
    }
    assert shipped == expected
    drops = {
        (row["boot_id"] == "now", str(row["reason"]).partition(";")[0])
        for row in rows
        if row["kind"] == "drop"
    }
    assert drops == {(False, "rejected-by-sink"), (False, "corrupt-segment")}
    assert {path.name for path in folder.iterdir()} <= OWN


def test_before_that_it_is_no_missing_spool(
    unpacked: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """`statewarden spool` says whose it is and who takes it in."""
    folder = unpacked("spool")
    waiting = len([*folder.glob("*.sealed"), *folder.glob("*.open")])
    assert main(["spool", str(folder)]) == 2
    said = capsys.readouterr().err
    assert (
        f"holds the spool of an earlier release, {waiting} files of which wait: `statewarden run` takes them in"
        in said
    )
