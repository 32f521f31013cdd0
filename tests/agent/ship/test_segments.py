"""Names of segment files, and what a segment says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.contract.codec import encode
from agent.contract.events import Origin, Record
from agent.ship.segments import (
    CorruptSegmentError,
    RangeName,
    describe,
    parse_open_name,
    parse_range_name,
    range_path,
)
from tests.agent.ship.ship_support import AT_US, ORIGIN, finding, heartbeat


@pytest.mark.parametrize("boot_id", ["b", "0f-1a", "a.b_c", "x-000000000001"])
def test_names_round_trip(boot_id: str) -> None:
    """Boot id, range and state are read off a name, also if the boot id looks like one."""
    path = range_path(Path(), boot_id, 7, 1_000_000_000_000, "sealed")
    assert parse_range_name(path.name) == RangeName(boot_id, 7, 1_000_000_000_000, "sealed")
    assert parse_open_name(f"{boot_id}-000000000007.open") == (boot_id, 7)


@pytest.mark.parametrize(
    "name", ["lock", "spool.json", "a-1-2.sealed", "b-000000000001.tmp", "..-1.open", ""]
)
def test_other_names_are_left_alone(name: str) -> None:
    """Whatever is not a segment is none."""
    assert parse_open_name(name) is None
    assert parse_range_name(name) is None


def lines(records: list[Record], first: int = 5, origin: Origin = ORIGIN) -> tuple[bytes, ...]:
    """Encode records with consecutive sequences."""
    return tuple(encode(record, origin, n).encode() for n, record in enumerate(records, first))


def test_a_segment_knows_whose_records_it_holds() -> None:
    """Pod, range, oldest time and findings come from the records, not from this process."""
    origin = Origin(pod_uid="other pod", boot_id="b", pod="p")
    segment = describe(Path("x"), "b", 5, lines([heartbeat(9), finding()], origin=origin), 77)
    assert (segment.pod_uid, segment.name, segment.records) == ("other pod", "b-000000000005-000000000006", 2)
    assert segment.oldest_at_us == AT_US
    assert segment.holds_findings
    assert not describe(Path("x"), "boot1", 5, lines([heartbeat()]), 77).holds_findings


@pytest.mark.parametrize("wrong", [(b"{}",), (b"nonsense",), (b"[1]",), lines([heartbeat()], first=6)])
def test_foreign_content_is_corruption(wrong: tuple[bytes, ...]) -> None:
    """Lines that are no events, or events of another place, are refused."""
    with pytest.raises(CorruptSegmentError):
        describe(Path("x"), "boot1", 5, wrong, 1)
