"""Checkpoints: the very limits of what is a number, and where an error is."""

from __future__ import annotations

import pytest

from agent.errors import CheckpointFormatError
from agent.layout.checkpoint import MAX_CHECKPOINT_BYTES, OffsetEntry, parse_checkpoint


def test_limit_leaves_room_for_thousands_of_entries():
    """Two thousand entries with the longest topic names fit."""
    assert 2_000 * (249 + 31) <= MAX_CHECKPOINT_BYTES <= 100_000_000


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        (b"t 0 0", OffsetEntry("t", 0, 0)),
        (b"t 0 -4", OffsetEntry("t", 0, -4)),
        (b"t 2147483647 9223372036854775807", OffsetEntry("t", 2**31 - 1, 2**63 - 1)),
        (b"t \t 1  2", OffsetEntry("t", 1, 2)),
    ],
)
def test_largest_and_smallest(line, entry):
    """A partition is a Java int, an offset a Java long or -4."""
    assert parse_checkpoint(b"0\n1\n" + line + b"\n") == (entry,)


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (b"", 1, "empty"),
        (b"\n", 1, "version"),
        (b"1\n0\n", 1, "version '0', found '1'"),
        (b"0", 2, "missing"),
        (b"0\n", 2, "missing"),
        (b"0\n-1\n", 2, "number of entries"),
        (b"0\n2147483648\n", 2, "number of entries"),
        (b"0\n1\n", 2, "announces 1 entries, found 0"),
        (b"0\n0\nt 0 1\n", 3, "announces 0 entries, found 1"),
        (b"0\n1\nt 2147483648 1\n", 3, "partition"),
        (b"0\n1\nt -1 1\n", 3, "partition"),
        (b"0\n1\nt 0 9223372036854775808\n", 3, "offset"),
        (b"0\n1\nt 0 -3\n", 3, "offset"),
        (b"0\n1\nt 0 -5\n", 3, "offset"),
        (b"0\n1\nt 0 x\n", 3, "offset"),
        (b"0\n2\nt 0 1\nt 0 2\n", 4, "twice"),
        (b"0\n2\nt 0 1\nt 0\n", 4, "found"),
    ],
)
def test_errors_are_located(content, line, reason):
    """Every error says what is wrong, and in which line."""
    with pytest.raises(CheckpointFormatError, match=reason) as caught:
        parse_checkpoint(content)
    assert caught.value.line == line


@pytest.mark.parametrize(("length", "shown"), [(60, "x" * 60), (61, "x" * 60 + "...")])
def test_long_garbage_is_cut(length, shown):
    """An error shows enough to recognise the file, and no more."""
    with pytest.raises(CheckpointFormatError) as caught:
        parse_checkpoint(b"x" * length)
    assert f"found {shown!r}" in str(caught.value)
