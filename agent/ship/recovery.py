"""What a spool directory holds after an earlier agent ended, however it ended.

Never fatal for what it finds: a half-written record is cut off, a segment that cannot be read is set aside,
and both are counted. What is whole is kept.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agent.ship import drops, frames
from agent.ship.drops import Account, Key, Span
from agent.ship.segments import (
    BAD,
    SEALED,
    CorruptSegmentError,
    RangeName,
    Segment,
    describe,
    parse_open_name,
    parse_range_name,
    range_path,
    sync_directory,
    whole_lines,
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

    A file that the disk refuses to read or rename is counted as corrupt and left alone: no single file keeps the
    agent from starting.

    Args:
        directory: The spool; the caller holds its lock.

    Raises:
        OSError: the directory cannot be read.

    Cost:
        Reads every segment once, one at a time in memory.
    """
    found = Recovered()
    for path in sorted(directory.iterdir()):
        opened = parse_open_name(path.name)
        if opened is not None:
            with _fenced(path, found):
                _seal_leftover(path, *opened, found)
        elif path.suffix == ".tmp" and parse_range_name(path.stem):
            with _fenced(path, found):
                path.unlink()  # an unfinished file of a killed agent; what it was made from is still there
    complete = {path: name for path in sorted(directory.iterdir()) if (name := parse_range_name(path.name))}
    shortest = _shortest(complete.values())
    set_aside: list[tuple[int, Path, int]] = []
    for path, name in complete.items():
        found.last_sequence[name.boot_id] = max(found.last_sequence.get(name.boot_id, 0), name.last)
        with _fenced(path, found):
            kept: Path | None = path
            if name.state == SEALED:
                kept = _check_sealed(path, name, shortest, found)
            if kept is not None and kept.suffix != f".{SEALED}":
                stat = kept.stat()
                set_aside.append((stat.st_mtime_ns, kept, stat.st_size))
    found.aside = [(path, size) for _, path, size in sorted(set_aside)]
    found.segments = _in_order(found.segments)
    with _fenced(directory, found):
        sync_directory(directory)
    return found


@contextmanager
def _fenced(path: Path, found: Recovered) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        found.corrupt_segments += 1
        _LOG.error(
            "spool: left a file alone that the disk refuses",
            extra={"segment": path.name, "reason": str(error)},
        )


def _seal_leftover(path: Path, boot_id: str, first: int, found: Recovered) -> None:
    """Seal what is whole of a segment that was being written when its agent ended."""
    data = path.read_bytes()
    content = frames.parse(data)
    rest = data[content.good_bytes :]
    next_sequence = first + len(content.lines)
    if content.corrupt:
        # one newline per record: a line never holds one
        lost = max(1, rest.count(b"\n") + (not rest.endswith(b"\n")))
        name = RangeName(boot_id, next_sequence, next_sequence + lost - 1, lost, BAD)
        bad = range_path(path.parent, name)
        _keep_rest(bad, rest)
        _note_corrupt(found, bad, name, "unreadable in the middle")
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
    count = len(content.lines)
    path.replace(range_path(path.parent, RangeName(boot_id, first, next_sequence - 1, count)))


def _keep_rest(bad: Path, rest: bytes) -> None:
    try:
        bad.write_bytes(rest)
    except OSError as error:  # a full disk: what is whole matters more than what is not
        bad.unlink(missing_ok=True)
        _LOG.error("spool: cannot keep what is unreadable", extra={"segment": bad.name, "reason": str(error)})


def _check_sealed(
    path: Path, name: RangeName, shortest: Mapping[tuple[str, int, int], int], found: Recovered
) -> Path | None:
    """Take a sealed segment in, or set it aside; return where it lies now, None = it is gone."""
    if shortest[name.boot_id, name.first, name.last] < name.records:
        # killed between making the shorter one, whose losses were announced before, and deleting this one
        path.unlink()
        return None
    data = path.read_bytes()
    try:
        found.segments.append(describe(path, name, whole_lines(data, name.records), len(data)))
    except CorruptSegmentError as error:
        bad = path.with_suffix(f".{BAD}")
        path.replace(bad)
        _note_corrupt(found, bad, name, str(error))
        return bad
    return path


def _shortest(names: Iterable[RangeName]) -> dict[tuple[str, int, int], int]:
    """Find how many records the most thinned version of each sealed segment has."""
    least: dict[tuple[str, int, int], int] = {}
    for name in names:
        if name.state == SEALED:
            key = (name.boot_id, name.first, name.last)
            least[key] = min(least.get(key, name.records), name.records)
    return least


def _note_corrupt(found: Recovered, bad: Path, name: RangeName, why: str) -> None:
    found.corrupt_segments += 1
    key = Key(name.boot_id, drops.UNKNOWN_KIND, "")
    drops.add(found.lost, key, Span(name.records, name.first, name.last))
    _LOG.error("spool: set a corrupt segment aside", extra={"segment": bad.name, "reason": why})


def _in_order(segments: list[Segment]) -> list[Segment]:
    """Order boots by their oldest record (boot ids are random), and segments of a boot by sequence."""
    begin: dict[str, int] = {}
    for segment in segments:
        begin[segment.boot_id] = min(begin.get(segment.boot_id, segment.oldest_at_us), segment.oldest_at_us)
    return sorted(segments, key=lambda s: (begin[s.boot_id], s.boot_id, s.first))
