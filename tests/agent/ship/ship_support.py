"""What the tests of spool and shipper share: a clock by hand, records, and what a reader would see."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from agent.contract.codec import decode
from agent.contract.events import Kind, Origin, Record
from agent.ship import database
from agent.ship.spool import Spool
from agent.ship.values import MIN_SEAL_BYTES, Limits

ORIGIN = Origin(pod_uid="uid-1", boot_id="boot1", pod="orders-0")
AT_US = 1_700_000_000_000_000


class HandClock:
    """A clock that moves only when told to."""

    def __init__(self) -> None:
        self.at_s = 1000.0
        self.stepped_s = 0.0
        """How far somebody set the wall clock; the monotonic one does not care."""

    def now_us(self) -> int:
        return AT_US + int((self.at_s + self.stepped_s) * 1_000_000)

    def monotonic_s(self) -> float:
        return self.at_s

    def wait(self, seconds: float) -> None:
        self.at_s += seconds


def heartbeat(number: int = 0) -> Record:
    return Record(Kind.HEARTBEAT, AT_US + number, {"tasks": number})


def transition(detail_bytes: int = 0, number: int = 0) -> Record:
    """Make a transition of about the size that is asked for."""
    return Record(Kind.TRANSITION, AT_US + number, {"change": "task-held", "detail": "x" * detail_bytes})


def finding() -> Record:
    body: dict[str, object] = {
        "finding_id": "f1", "detector": "d", "level": "self", "severity": "info", "confidence": "confirmed",
        "status": "open", "opened_at_us": AT_US, "upstream": [], "affected": "no", "missing_facts": [],
        "summary": "s", "next_action": "n", "evidence": [],
    }  # fmt: skip
    return Record(Kind.FINDING, AT_US, body)


def open_spool(directory: Path, clock: HandClock, origin: Origin = ORIGIN, **options: Any) -> Spool:
    """Open a spool with small segments."""
    sizes = {name: options.pop(name) for name in tuple(options) if name in Limits.__slots__}
    limits = Limits(**{"seal_bytes": MIN_SEAL_BYTES, **sizes})
    return Spool(directory, origin, clock=clock, limits=limits, **options)


def drain(spool: Spool) -> list[dict[str, Any]]:
    """Take and acknowledge everything that is sealed, as a reader would see it."""
    rows: list[dict[str, Any]] = []
    while (parcel := spool.next_parcel()) is not None:
        rows += [decode(line) for line in parcel.payload.splitlines()]
        spool.acknowledge(parcel)
    return rows


def sequences(rows: Iterable[dict[str, Any]], boot_id: str = ORIGIN.boot_id) -> list[int]:
    return [row["sequence"] for row in rows if row["boot_id"] == boot_id]


def drop_rows(rows: Iterable[dict[str, Any]]) -> list[tuple[str, int, int, int, str]]:
    """List the announcements: kind, count, first, last, reason."""
    names = ("dropped_kind", "dropped_count", "first_sequence", "last_sequence", "reason")
    return [tuple(row[name] for name in names) for row in rows if row["kind"] == "drop"]


def summary(size_bytes: int = 0, number: int = 0) -> Record:
    """Make a summary of about the size that is asked for."""
    body = {"application_id": "a", "task_id": "0_0", "stores": [{"store": "x" * size_bytes}]}
    return Record(Kind.SUMMARY, AT_US + number, body)


def on_disk(directory: Path) -> int:
    """Add up the files of a spool."""
    return sum(path.stat().st_size for path in directory.iterdir() if path.is_file())


def make_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the spool sync nothing; for tests that write much and cut no power."""
    monkeypatch.setattr(database, "SETTINGS", (*database.SETTINGS, "synchronous=OFF"))


def killed(source: Path, target: Path) -> Path:
    """Copy a spool as a kill would leave it: no seal, no close, no lock."""
    shutil.copytree(source, target)
    return target


def names(spool: Spool) -> list[str]:
    """List the names of the segments that wait, the open one excluded."""
    return [batch.name for batch in spool._queue.sealed]


def json_lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]
