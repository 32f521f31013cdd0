"""Names of segment files, and what a segment says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.contract.codec import encode
from agent.contract.events import Origin, Record
from agent.ship import frames, priority
from agent.ship.segments import (
    CorruptSegmentError,
    RangeName,
    describe,
    parse_open_name,
    parse_range_name,
    range_path,
    read_lines,
    thin,
)
from tests.agent.ship.ship_support import AT_US, ORIGIN, finding, heartbeat


@pytest.mark.parametrize("boot_id", ["b", "0f-1a", "a.b_c", "x-000000000001"])
@pytest.mark.parametrize("records", [999_999_999_994, 3])
def test_names_round_trip(boot_id: str, records: int) -> None:
    """Boot id, range, number of records and state are read off a name, also if the boot id looks like one."""
    name = RangeName(boot_id, 7, 1_000_000_000_000, records, "bad")
    assert parse_range_name(range_path(Path(), name).name) == name
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
    name = RangeName("b", 5, 6, 2)
    segment = describe(Path("x"), name, lines([heartbeat(9), finding()], origin=origin), 77)
    assert (segment.pod_uid, segment.name, segment.records) == ("other pod", "b-000000000005-000000000006", 2)
    assert segment.oldest_at_us == AT_US
    assert priority.ranks_of(segment.account) == {2, 3}


@pytest.mark.parametrize("wrong", [(b"{}",), (b"nonsense",), (b"[1]",), lines([heartbeat()], first=6)])
def test_foreign_content_is_corruption(wrong: tuple[bytes, ...]) -> None:
    """Lines that are no events, or events of another place, are refused."""
    with pytest.raises(CorruptSegmentError):
        describe(Path("x"), RangeName("boot1", 5, 5, 1), wrong, 1)


def test_a_thinned_segment_may_have_holes_but_no_disorder() -> None:
    """Sequences rise within the range that the name gives; repeats, steps back and strangers are corruption."""
    name = RangeName("boot1", 5, 9, 2)
    good = (*lines([heartbeat()], 5), *lines([finding()], 9))
    assert describe(Path("x"), name, good, 1).name == "boot1-000000000005-000000000009-k2"
    for bad in ((good[1], good[0]), (good[0], good[0]), (*lines([heartbeat()], 4), good[1])):
        with pytest.raises(CorruptSegmentError):
            describe(Path("x"), name, bad, 1)


def test_thinning_keeps_the_other_ranks_exactly(tmp_path: Path) -> None:
    """The rest is written under a name of its own, byte for byte; the old file stays for the caller to delete."""
    content = lines([heartbeat(), finding(), heartbeat(2)])
    data = b"".join(frames.frame(line) for line in content)
    path = tmp_path / "boot1-000000000005-000000000007.sealed"
    path.write_bytes(data)
    shorter = thin(describe(path, RangeName("boot1", 5, 7, 3), content, len(data)), rank=2)
    assert shorter.path.name == "boot1-000000000005-000000000007-k1.sealed"
    assert read_lines(shorter) == (content[1],)
    assert path.read_bytes() == data
