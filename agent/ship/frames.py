"""How records lie in a segment file: length, checksum, line. Pure.

One frame is `LLLLLLLL CCCCCCCC <line>` and a newline: eight hex digits of the line's length in bytes, eight
of its CRC-32, then the line exactly as encoded. Text on purpose: with `cut -c 19-` a segment is JSON lines.
"""

from __future__ import annotations

import string
import zlib
from dataclasses import dataclass

HEAD_BYTES = 18
FRAME_OVERHEAD_BYTES = HEAD_BYTES + 1
_HEX = frozenset(string.hexdigits.encode())


@dataclass(frozen=True, slots=True)
class Frames:
    """What a segment file holds.

    Args of the dataclass:
        lines: Whole records up to the first fault, without newline.
        good_bytes: Size of what is whole; the fault, if any, begins here.
        corrupt: Whether the fault is anything but a frame that ends too early: then more records may follow.
    """

    lines: tuple[bytes, ...]
    good_bytes: int
    corrupt: bool


def frame(line: bytes) -> bytes:
    """Wrap one line."""
    return b"%08x %08x %s\n" % (len(line), zlib.crc32(line), line)


def parse(data: bytes) -> Frames:
    """Read frames until the end or the first fault; never raises.

    Args:
        data: Content of a segment file.
    """
    lines: list[bytes] = []
    at = 0
    while at < len(data):
        head = data[at : at + HEAD_BYTES]
        if not _is_head(head):
            return Frames(tuple(lines), at, corrupt=True)
        if len(head) < HEAD_BYTES:
            return Frames(tuple(lines), at, corrupt=False)
        start = at + HEAD_BYTES
        end = start + int(head[:8], 16)
        line = data[start:end]
        if end >= len(data):
            # a frame cut short by a kill; bytes beyond a newline would belong to another frame
            return Frames(tuple(lines), at, corrupt=b"\n" in line)
        if zlib.crc32(line) != int(head[9:17], 16) or data[end] != ord("\n"):
            return Frames(tuple(lines), at, corrupt=True)
        lines.append(line)
        at = end + 1
    return Frames(tuple(lines), at, corrupt=False)


def salvage(data: bytes) -> tuple[bytes, ...]:
    """Find every whole frame, whatever lies between them; never raises.

    Args:
        data: Content of a damaged segment file.
    """
    lines: list[bytes] = []
    while data:
        found = parse(data)
        lines += found.lines
        rest = data[found.good_bytes :]
        newline = rest.find(b"\n")  # a line never holds one, so the next frame begins behind it at the latest
        data = rest[newline + 1 :] if newline >= 0 else b""
    return tuple(lines)


def _is_head(head: bytes) -> bool:
    """Whether this is a frame's head, or the beginning of one."""
    return all((byte == ord(" ")) if place in (8, 17) else byte in _HEX for place, byte in enumerate(head))
