"""Bytes of an offset checkpoint (`.checkpoint`, `.checkpoint_<store>`) -> entries or a located error."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent.errors import CheckpointFormatError

MAX_CHECKPOINT_BYTES = 1 << 20
"""Read no more than this; a task has a few entries of at most 249 + 31 characters each."""

UNKNOWN_OFFSET = -4
"""OffsetCheckpoint.OFFSET_UNKNOWN (2.6+): the store was registered, its offset is not known."""

_BELOW = " (Kafka 2.6 and later skips that entry)"
"""OffsetCheckpoint.isValid: read with a warning, as if it were not there; a start up to 2.5 seeks to it, and fails."""

_VERSION = "0"  # OffsetCheckpoint.VERSION
_MAX_PARTITION = 2**31 - 1  # Java int
_MAX_OFFSET = 2**63 - 1  # Java long
_LINE_END = re.compile(r"\r\n|\r|\n")  # what BufferedReader.readLine takes as the end of a line
_WHITESPACE = re.compile(r"\s+", re.ASCII)  # OffsetCheckpoint.WHITESPACE_MINIMUM_ONCE
_ONE_ENTRY = re.compile(rb"0\n1\n([!-~]+) ([0-9]{1,10}) ([0-9]{1,19}|-4)\n?", re.ASCII)
_INTEGER = re.compile(r"-?[0-9]{1,19}", re.ASCII)


@dataclass(frozen=True, slots=True)
class OffsetEntry:
    """One line of a checkpoint."""

    topic: str  # changelog topic, or a source topic under topology optimisation
    partition: int  # its partition
    offset: int  # up to 2.5 the next offset to read, from 2.6 the last one applied; -4 = unknown


def parse_checkpoint(content: bytes) -> tuple[OffsetEntry, ...]:
    """Parse an offset checkpoint; the entries in file order.

    Stricter than Kafka Streams in two points: a negative offset other than -4 and a partition that is listed
    twice are errors here, where Streams leaves the one out and lets the other overwrite.

    Raises `CheckpointFormatError`: with the reason and the 1-based line.

    Source:
        OffsetCheckpoint.read (1.1 to 4.3): version line, count line, `topic partition offset` lines.
    """
    one = _ONE_ENTRY.fullmatch(content)
    if one is not None and int(one[2]) <= _MAX_PARTITION and int(one[3]) <= _MAX_OFFSET:  # nearly all of them
        return (OffsetEntry(one[1].decode("ascii"), int(one[2]), int(one[3])),)
    if not content:
        raise CheckpointFormatError("the file is empty (truncated?)", 1)
    lines = _LINE_END.split(_decode(content))
    if not lines[-1]:
        lines.pop()
    if not lines or lines[0] != _VERSION:
        found = lines[0] if lines else ""
        raise CheckpointFormatError(f"expected version {_VERSION!r}, found {_shorten(found)}", 1)
    if len(lines) < 2:
        raise CheckpointFormatError("the line with the number of entries is missing (truncated?)", 2)
    count = _integer(lines[1], "number of entries", 2, high=_MAX_PARTITION)
    entries: list[OffsetEntry] = []
    seen: set[tuple[str, int]] = set()
    for number, line in enumerate(lines[2:], start=3):
        entry = _parse_entry(line, number)
        if (entry.topic, entry.partition) in seen:
            raise CheckpointFormatError(f"{entry.topic}-{entry.partition} is listed twice", number)
        seen.add((entry.topic, entry.partition))
        entries.append(entry)
    if len(entries) != count:
        raise CheckpointFormatError(f"line 2 announces {count} entries, found {len(entries)}", len(lines))
    return tuple(entries)


def _decode(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise CheckpointFormatError(f"not UTF-8 at byte {error.start}", line) from error


def _parse_entry(line: str, number: int) -> OffsetEntry:
    pieces = _WHITESPACE.split(line)
    if len(pieces) != 3 or not pieces[0]:
        raise CheckpointFormatError(f"expected `topic partition offset`, found {_shorten(line)}", number)
    topic, partition, offset = pieces
    return OffsetEntry(
        topic,
        _integer(partition, "partition", number, high=_MAX_PARTITION),
        _integer(offset, "offset", number, high=_MAX_OFFSET, also=UNKNOWN_OFFSET, below=_BELOW),
    )


def _integer(text: str, what: str, line: int, *, high: int, also: int = 0, below: str = "") -> int:
    if not _INTEGER.fullmatch(text):
        raise CheckpointFormatError(f"{what} is not a number: {_shorten(text)}", line)
    value = int(text)
    if value != also and not 0 <= value <= high:
        means = below if value < 0 else ""
        raise CheckpointFormatError(f"{what} is out of range: {value}{means}", line)
    return value


def _shorten(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "...")
