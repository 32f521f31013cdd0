"""What a spool directory holds after an earlier agent ended, however it ended.

Never fatal for what it finds: a half-written record is cut off, a segment that cannot be read is set aside,
and both are counted. What is whole is kept.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from pathlib import Path

from agent.ship import drops, frames
from agent.ship.drops import Account, Key, Span
from agent.ship.segments import (
    BAD,
    SEALED,
    CorruptSegmentError,
    Segment,
    describe,
    parse_open_name,
    parse_range_name,
    range_path,
    sync_directory,
)

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class Recovered:
    """What was found.

    Args of the dataclass:
        segments: Sealed segments, in the order in which to ship them.
        aside: Files that were set aside, now or earlier, with their sizes, oldest first.
        torn_tails: Half-written records that were cut off.
        corrupt_segments: Segments that were set aside now.
        lost: What was in them, to be announced.
        last_sequence: Boot id -> highest sequence that any file's name claims.
    """

    segments: list[Segment] = field(default_factory=list)
    aside: list[tuple[Path, int]] = field(default_factory=list)
    torn_tails: int = 0
    corrupt_segments: int = 0
    lost: Account = field(default_factory=dict)
    last_sequence: dict[str, int] = field(default_factory=dict)


def recover(directory: Path) -> Recovered:
    """Bring a spool directory in order: afterwards it has no open segment.

    Args:
        directory: The spool; the caller holds its lock.

    Raises:
        OSError: the directory cannot be read or written.

    Cost:
        Reads every segment once, one at a time in memory.
    """
    found = Recovered()
    for path in sorted(directory.iterdir()):
        opened = parse_open_name(path.name)
        if opened is not None:
            _seal_leftover(path, *opened, found)
    set_aside: list[tuple[int, Path, int]] = []
    for path in sorted(directory.iterdir()):
        name = parse_range_name(path.name)
        if name is None:
            continue
        found.last_sequence[name.boot_id] = max(found.last_sequence.get(name.boot_id, 0), name.last)
        kept = path
        if name.state == SEALED:
            kept = _check_sealed(path, name.boot_id, name.first, name.last, found)
        if kept.suffix != f".{SEALED}":
            stat = kept.stat()
            set_aside.append((stat.st_mtime_ns, kept, stat.st_size))
    found.aside = [(path, size) for _, path, size in sorted(set_aside)]
    found.segments = _in_order(found.segments)
    sync_directory(directory)
    return found


def _seal_leftover(path: Path, boot_id: str, first: int, found: Recovered) -> None:
    """Seal what is whole of a segment that was being written when its agent ended."""
    data = path.read_bytes()
    content = frames.parse(data)
    rest = data[content.good_bytes :]
    next_sequence = first + len(content.lines)
    if content.corrupt:
        # one newline per record: a line never holds one
        lost = max(1, rest.count(b"\n") + (not rest.endswith(b"\n")))
        bad = range_path(path.parent, boot_id, next_sequence, next_sequence + lost - 1, BAD)
        bad.write_bytes(rest)
        _note_corrupt(
            found, bad, boot_id, next_sequence, next_sequence + lost - 1, "unreadable in the middle"
        )
    elif rest:
        found.torn_tails += 1
        _LOG.warning("spool: cut a half-written record", extra={"segment": path.name, "bytes": len(rest)})
    if not content.lines:
        path.unlink()
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.ftruncate(descriptor, content.good_bytes)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    path.replace(range_path(path.parent, boot_id, first, next_sequence - 1, SEALED))


def _check_sealed(path: Path, boot_id: str, first: int, last: int, found: Recovered) -> Path:
    """Take a sealed segment in, or set it aside; return where it lies now."""
    data = path.read_bytes()
    content = frames.parse(data)
    try:
        if content.good_bytes != len(data) or len(content.lines) != last - first + 1:
            raise CorruptSegmentError(f"{len(content.lines)} of {last - first + 1} records are whole")
        found.segments.append(describe(path, boot_id, first, content.lines, len(data)))
    except CorruptSegmentError as error:
        bad = path.with_suffix(f".{BAD}")
        path.replace(bad)
        _note_corrupt(found, bad, boot_id, first, last, str(error))
        return bad
    return path


def _note_corrupt(found: Recovered, bad: Path, boot_id: str, first: int, last: int, why: str) -> None:
    found.corrupt_segments += 1
    drops.add(found.lost, Key(boot_id, drops.UNKNOWN_KIND, ""), Span(last - first + 1, first, last))
    _LOG.error("spool: set a corrupt segment aside", extra={"segment": bad.name, "reason": why})


def _in_order(segments: list[Segment]) -> list[Segment]:
    """Order boots by their oldest record (boot ids are random), and segments of a boot by sequence."""
    begin: dict[str, int] = {}
    for segment in segments:
        begin[segment.boot_id] = min(begin.get(segment.boot_id, segment.oldest_at_us), segment.oldest_at_us)
    return sorted(segments, key=lambda s: (begin[s.boot_id], s.boot_id, s.first))
