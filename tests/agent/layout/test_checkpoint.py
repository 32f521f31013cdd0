"""Offset checkpoints: what is read, what is refused and where."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import CheckpointFormatError
from agent.layout.checkpoint import MAX_CHECKPOINT_BYTES, UNKNOWN_OFFSET, OffsetEntry, parse_checkpoint

TOPICS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Z", "Cc"]), min_size=1, max_size=30
).filter(lambda text: not any(c.isspace() for c in text))
ENTRIES = st.lists(
    st.builds(
        OffsetEntry,
        TOPICS,
        st.integers(0, 2**31 - 1),
        st.one_of(st.just(UNKNOWN_OFFSET), st.integers(0, 2**63 - 1)),
    ),
    unique_by=lambda entry: (entry.topic, entry.partition),
)


def written(entries: Sequence[OffsetEntry]) -> str:
    lines = ["0", str(len(entries)), *(f"{e.topic} {e.partition} {e.offset}" for e in entries)]
    return "\n".join(lines)


def test_real_file():
    """A file as Kafka Streams writes it gives its entries in file order."""
    content = b"0\n2\napp-s-changelog 0 2999\napp-t-changelog 0 -4\n"
    assert parse_checkpoint(content) == (
        OffsetEntry("app-s-changelog", 0, 2999),
        OffsetEntry("app-t-changelog", 0, -4),
    )


@pytest.mark.parametrize(
    ("content", "entries"),
    [
        (b"0\n0\n", ()),
        (b"0\n0", ()),
        (b"0\n1\nt 0 -4\n", (OffsetEntry("t", 0, -4),)),
        (b"0\n1\nt 2147483647 9223372036854775807\n", (OffsetEntry("t", 2**31 - 1, 2**63 - 1),)),
        (b"0\n1\nt \t 1  2\n", (OffsetEntry("t", 1, 2),)),
    ],
)
def test_limits(content, entries):
    """A file that announces no entries has none; a partition is a Java int, an offset a Java long or -4."""
    assert parse_checkpoint(content) == entries


# fmt: off
MALFORMED = {
    b"": (1, "empty"), b"\n": (1, "version"), b"1\n0\n": (1, "version '0', found '1'"), b"0": (2, "missing"),
    b"0\n": (2, "missing"), b"0\n\n": (2, "not a number"), b"0\nmany\n": (2, "number of entries is not a number"),
    b"0\n-1\n": (2, "number of entries is out of range"), b"0\n2147483648\n": (2, "number of entries is out of range"),
    b"0\n" + b"9" * 5000 + b"\n": (2, "not a number"), b"0\n1\n": (2, "announces 1 entries, found 0"),
    b"0\n0\nt 0 1\n": (3, "announces 0 entries, found 1"), b"0\n2\na 0 1\n": (3, "announces 2 entries, found 1"),
    b"0\n1\na 0\n": (3, "expected `topic partition offset`"), b"0\n1\na b 0 1\n": (3,
         "expected `topic partition offset`"),
    b"0\n1\n 0 1\n": (3, "expected `topic partition offset`"), b"0\n1\na zero 1\n": (3, "partition is not a number"),
    b"0\n1\na 0 1\n\n": (4, "expected `topic partition offset`"), b"0\n1\na -1 1\n": (3, "partition is out of range"),
    b"0\n1\nt 2147483648 1\n": (3, "partition is out of range"),
    b"0\n1\na 0 -1\n": (3, "offset is out of range: -1 (Kafka 2.6 and later skips that entry)"),
    b"0\n1\nt 0 -3\n": (3, "offset is out of range"), b"0\n1\nt 0 -5\n": (3, "offset is out of range"),
    b"0\n1\na 0 -4.0\n": (3, "offset is not a number"), b"0\n1\nt 0 x\n": (3, "offset is not a number"),
    b"0\n1\na 0 9223372036854775808\n": (3, "offset is out of range"), b"0\n2\na 0 1\na 0 2\n": (4, "listed twice"),
    b"0\n1\n\xff\xfe 0 1\n": (3, "not UTF-8"), b"0\n1\na 0 1\x00\x00": (3, "not a number"),
    b"x" * 60: (1, "found " + repr("x" * 60)), b"x" * 61: (1, "found " + repr("x" * 60 + "...")),
}
# fmt: on


@pytest.mark.parametrize("content", MALFORMED)
def test_malformed(content):
    """Each way to be malformed is reported with its reason and its line, and no more of it than can be recognised."""
    line, reason = MALFORMED[content]
    with pytest.raises(CheckpointFormatError) as caught:
        parse_checkpoint(content)
    assert caught.value.line == line
    assert reason in str(caught.value)


def test_limit_leaves_room_for_thousands_of_entries():
    """Two thousand entries with the longest topic names fit."""
    assert 2_000 * (249 + 31) <= MAX_CHECKPOINT_BYTES <= 100_000_000


@given(ENTRIES, st.booleans())
def test_round_trip(entries, with_last_newline):
    """Whatever was written is read back, with or without a newline at the end."""
    content = written(entries) + ("\n" if with_last_newline else "")
    assert parse_checkpoint(content.encode()) == tuple(entries)


@given(st.one_of(st.binary(), st.text("0123456789 -\n\rabc.").map(str.encode)))
def test_garbage_raises_nothing_else(content):
    """Arbitrary bytes are parsed or refused with the declared error, nothing else."""
    with contextlib.suppress(CheckpointFormatError):
        assert all(isinstance(entry, OffsetEntry) for entry in parse_checkpoint(content))


@given(ENTRIES.filter(bool), st.data())
def test_truncated_never_loses_an_entry_silently(entries, data):
    """A file that lost its last lines is refused."""
    lines = written(entries).split("\n")
    kept = lines[: data.draw(st.integers(0, len(lines) - 1))]
    with pytest.raises(CheckpointFormatError):
        parse_checkpoint("\n".join(kept).encode())


ROWS = ("t 0 5", "t 2147483647 9223372036854775807", "t 3 -4", "t 2147483648 5", "t 0 9223372036854775808",
         "t 0 -1", "ü 1 2")  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_one_entry_is_read_as_any_number_of_them(row):
    """The shortest form has a reader of its own: it says what the other one says of the same row with blanks."""

    def read(content: str) -> object:
        try:
            return parse_checkpoint(content.encode())
        except CheckpointFormatError as error:
            return str(error)

    assert read(f"0\n1\n{row}\n") == read(f"0\n1\n{row}") == read(f"0\r\n1\r\n{row}\r\n")
