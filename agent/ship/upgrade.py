"""The one-way reader of format 2: files of framed records, which the previous release left.

    <boot>-<first>.open                  was being written
    <boot>-<first>-<last>.sealed         waited to be shipped; `-k<n>`: n of its records were left
    <boot>-<first>-<last>.bad|rejected   set aside, announced as lost

One frame is `LLLLLLLL CCCCCCCC <line>` and a newline: eight hex digits of the line's length, eight of its CRC-32.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.ship.batches import SAFE_BOOT_ID, Batch

_HEAD_BYTES = 18
_BOOT = f"(?P<boot>{SAFE_BOOT_ID.pattern})"
_RANGE = r"(?P<first>\d{12,})-(?P<last>\d{12,})(?:-k(?P<left>\d+))?"
_WAITING = (
    re.compile(rf"{_BOOT}-{_RANGE}\.sealed"),
    re.compile(rf"{_BOOT}-(?P<first>\d{{12,}})\.open"),
)
_GIVEN_UP = re.compile(rf"{_BOOT}-{_RANGE}\.(?:bad|rejected|sealed\.tmp)|spool\.json(?:\.tmp)?")
Line = tuple[int, str, int, bytes]


@dataclass(frozen=True, slots=True)
class Segment:
    """What is whole of an old segment.

    Args of the dataclass:
        path: The file; to be deleted when its records are safe.
        batch: Its batch; None = nothing in it is whole.
        records: Sequence, kind, time and line of each whole record.
        lost: Boot id, number, first and last sequence of what is not; None = all is whole.
    """

    path: Path
    batch: Batch | None
    records: list[Line]
    lost: tuple[str, int, int, int] | None


def leftovers(directory: Path) -> list[Path]:
    """List the files of format 2 whose records wait: boots by their oldest record, segments by sequence.

    Raises:
        OSError: the directory cannot be read.
    """
    found: list[tuple[str, int, Path]] = []
    begin: dict[str, int] = {}
    for path in directory.iterdir():
        name = _parsed(path.name)
        if name:
            boot_id = name["boot"]
            found.append((boot_id, int(name["first"]), path))
            times = [at_us for _, _, at_us, _ in _records(path.read_bytes(), boot_id)[:1]]
            begin[boot_id] = min([*times, begin.get(boot_id, 1 << 63)])
    return [path for _, _, path in sorted(found, key=lambda x: (begin[x[0]], x[0], x[1], x[2]))]


def read_segment(path: Path) -> Segment:
    """Read one file of those.

    Raises:
        OSError: it cannot be read.
    """
    name = _parsed(path.name)
    boot_id, first = name["boot"], int(name["first"])
    data = path.read_bytes()
    records = _records(data, boot_id)
    after = records[-1][0] + 1 if records else first
    if "last" in name:
        last = int(name["last"])
        missing = int(name["left"] or last - first + 1) - len(records)
    else:
        last = after - 1
        rest = data[_size(records) :]
        # a line never holds a newline: without one the rest is a half-written record, as a kill leaves it
        missing = rest.count(b"\n")
    lost = (boot_id, missing, after, max(last, after + missing - 1)) if missing > 0 else None
    if not records:
        return Segment(path, None, [], lost)
    pod_uid = str(json.loads(records[0][3])["data"]["pod_uid"])
    return Segment(
        path, Batch(0, pod_uid, boot_id, first, last if lost is None else after - 1), records, lost
    )


def remains(directory: Path) -> list[Path]:
    """List what can go once all is taken in: the position file, and what was set aside and announced long ago.

    Raises:
        OSError: the directory cannot be read.
    """
    return [path for path in directory.iterdir() if _GIVEN_UP.fullmatch(path.name)]


def _parsed(name: str) -> dict[str, str]:
    """Read a name; empty for any other file."""
    matches = [match for pattern in _WAITING if (match := pattern.fullmatch(name))]
    return matches[0].groupdict() if matches else {}


def _records(data: bytes, boot_id: str) -> list[Line]:
    """Read whole records of one boot, in rising sequence, until the first fault."""
    found: list[Line] = []
    for line in frames_in(data):
        try:
            event = json.loads(line)["data"]
            record = (int(event["sequence"]), str(event["kind"]), int(event["observed_at_us"]), line)
        except (ValueError, KeyError, TypeError):
            break
        if event.get("boot_id") != boot_id or (found and record[0] <= found[-1][0]):
            break
        found.append(record)
    return found


def frames_in(data: bytes) -> Iterator[bytes]:
    """Read frames until the end or the first fault; never raises."""
    at = 0
    while len(head := data[at : at + _HEAD_BYTES]) == _HEAD_BYTES:
        try:
            size, crc = int(head[:8], 16), int(head[9:17], 16)
        except ValueError:
            return
        line = data[at + _HEAD_BYTES : at + _HEAD_BYTES + size]
        at += _HEAD_BYTES + size + 1
        if zlib.crc32(line) != crc or at > len(data):
            return
        yield line


def _size(records: list[Line]) -> int:
    return sum(_HEAD_BYTES + len(line) + 1 for *_, line in records)
