"""The entries of a versioned store are read as it writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import LayoutError
from agent.verify.kinds import big_endian
from agent.verify.versions import LATEST, Version, could_be_versioned, read_versions, split_key

SEGMENT = big_endian(7)


def row(next_ms: int, versions: list[Version]) -> bytes:
    """Write a row; versions newest first."""
    heads = [
        big_endian(x.at_ms) + (-1 if x.value is None else len(x.value)).to_bytes(4, "big", signed=True)
        for x in versions
    ]
    values = [x.value or b"" for x in reversed(versions)]
    return big_endian(next_ms) + big_endian(versions[-1].at_ms) + b"".join(heads) + b"".join(values)


def test_the_latest_version_is_time_and_value() -> None:
    """Its key begins with eight times 0xff."""
    assert split_key(LATEST + b"k") == (True, b"k")
    assert read_versions(LATEST + b"k", big_endian(5) + b"value") == [Version(5, b"value")]


@given(
    st.lists(st.tuples(st.integers(1, 1 << 40), st.none() | st.binary(max_size=9)), min_size=1, max_size=6)
)
def test_a_row_gives_its_versions_newest_first(found: list[tuple[int, bytes | None]]) -> None:
    """Tombstones and empty values among them."""
    versions = [Version(at_ms, value) for at_ms, value in sorted(dict(found).items(), reverse=True)]
    assert read_versions(SEGMENT + b"k", row(versions[0].at_ms + 1, versions)) == versions


def test_a_tombstone_may_be_alone() -> None:
    """With nothing before it, it is valid up to its own time."""
    assert read_versions(SEGMENT + b"k", row(9, [Version(9, None)])) == [Version(9, None)]


@pytest.mark.parametrize(
    "value",
    [
        b"",
        big_endian(9),
        row(9, [Version(5, b"ab")]) + b"x",
        row(9, [Version(5, b"ab")])[:-1],
        row(5, [Version(5, b"ab")]),
        row(9, [Version(5, b"a"), Version(6, b"b")]),
    ],
)
def test_other_rows_are_errors(value: bytes) -> None:
    """Too short, too long, or not in order."""
    with pytest.raises(LayoutError):
        read_versions(SEGMENT + b"k", value)
    assert not could_be_versioned(SEGMENT + b"k", value)


BASE_MS = 1_795_704_000_000


def mixed(times: list[tuple[int, int]], least_s: int, next_s: int, values: bytes) -> bytes:
    """Write a row with versions in any order, seconds behind `BASE_MS`."""
    heads = [big_endian(BASE_MS + at_s * 1000) + size.to_bytes(4, "big", signed=True) for at_s, size in times]
    return (
        big_endian(BASE_MS + next_s * 1000) + big_endian(BASE_MS + least_s * 1000) + b"".join(heads) + values
    )


@pytest.mark.parametrize(
    ("times", "least_s", "values", "found"),
    [
        # 4.3.1, at-least-once, two kills: the least time comes first, everything behind it is buried
        ([(49, 1), (49, 1), (42, 1), (35, 1), (28, 1), (49, 1)], 49, b"abcdef", [(49, b"f")]),
        (
            [(67, 2), (54, -1), (19, 1), (19, 1), (47, -1), (40, 3), (19, 1)],
            19,
            b"abcdefgh",
            [(67, b"gh"), (54, None), (19, b"f")],
        ),
    ],
)
def test_a_row_gives_what_its_store_finds_in_it(times, least_s, values, found):
    """After a start a versioned store does not know its segments: it puts records of before behind the oldest one."""
    row_of_two = mixed(times, least_s, 80, values)
    expected = [Version(BASE_MS + at_s * 1000, value) for at_s, value in found]
    assert read_versions(SEGMENT + b"k", row_of_two) == expected
    assert could_be_versioned(SEGMENT + b"k", row_of_two)


@pytest.mark.parametrize(
    "torn", [b"", b"x", b"x" * 11, big_endian(1 << 46) + b"\0\0\0\0", big_endian(9) + b"\xff\xff\xff\xfe"]
)
def test_what_is_behind_the_oldest_version_must_be_versions(torn):
    """Bytes that are none, or only a part of one, are an error as ever."""
    value = mixed([(49, 1)], 49, 80, b"") + torn + b"vw"
    with pytest.raises(LayoutError):
        read_versions(SEGMENT + b"k", value)


def test_an_entry_of_a_plain_store_is_not_taken_for_one() -> None:
    """Keys of eight bytes, or values that are no rows."""
    assert not could_be_versioned(LATEST, big_endian(5) + b"v")
    assert not could_be_versioned(b"customer-17", big_endian(42))
    assert could_be_versioned(LATEST + b"k", big_endian(5) + b"v")
