"""Framing: what is whole is read back, what is not is found, nothing raises."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.ship import frames

LINES = st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b" ")), max_size=6)


@given(lines=LINES)
def test_round_trip(lines: list[bytes]) -> None:
    """What was framed is read back, whole."""
    data = b"".join(map(frames.frame, lines))
    assert frames.parse(data) == frames.Frames(tuple(lines), len(data), corrupt=False)


@given(lines=LINES, cut=st.integers(0, 400))
def test_a_cut_is_a_torn_tail_and_never_corruption(lines: list[bytes], cut: int) -> None:
    """Every prefix gives the frames that fit into it, and the fault begins right after them."""
    framed = [frames.frame(line) for line in lines]
    data = b"".join(framed)[:cut]
    whole = [n for n in range(len(lines) + 1) if len(b"".join(framed[:n])) <= len(data)][-1]
    found = frames.parse(data)
    assert found.lines == tuple(lines[:whole])
    assert found.good_bytes == len(b"".join(framed[:whole]))
    assert not found.corrupt


@given(lines=LINES.filter(bool), where=st.integers(0, 10_000), flip=st.integers(1, 255))
def test_a_changed_byte_is_found(lines: list[bytes], where: int, flip: int) -> None:
    """One changed byte never yields a changed record."""
    data = bytearray(b"".join(map(frames.frame, lines)))
    data[where % len(data)] ^= flip
    found = frames.parse(bytes(data))
    if found.lines != tuple(lines):  # upper and lower case of a hex digit mean the same
        assert found.lines == tuple(lines[: len(found.lines)])
        assert found.good_bytes < len(data)


@given(data=st.binary(max_size=200))
def test_garbage_never_raises(data: bytes) -> None:
    """Any bytes can be parsed."""
    assert frames.parse(data).good_bytes <= len(data)


def test_zeros_after_a_power_cut_are_corruption() -> None:
    """A block of zeros, as a file system may leave it, is not mistaken for a torn record."""
    good = frames.frame(b"{}")
    assert frames.parse(good + b"\0" * 64) == frames.Frames((b"{}",), len(good), corrupt=True)


def test_the_line_begins_where_the_documentation_says() -> None:
    """`cut -c 19-` on a segment gives the JSON lines."""
    assert frames.frame(b'{"a":1}')[18:] == b'{"a":1}\n'
