"""Segment files: their names, the one that is being written, and those that are sealed.

    <boot>-<first>.open                  being written
    <boot>-<first>-<last>.sealed         complete, synced, waits to be shipped
    <boot>-<first>-<last>-k<n>.sealed    the same after room was made: only n of its records are left
    <boot>-<first>-<last>.bad            quarantined: could not be read
    <boot>-<first>-<last>.rejected       set aside: the sink will never take it

A segment holds sequences of one boot, without a hole unless it was thinned (`-k<n>`).
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from agent.contract.events import Record
from agent.ship import drops, frames, priority

OPEN, SEALED, BAD, REJECTED = "open", "sealed", "bad", "rejected"
SAFE_BOOT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_OPEN_NAME = re.compile(rf"({SAFE_BOOT_ID.pattern})-(\d{{12,}})\.{OPEN}")
_RANGE_NAME = re.compile(
    rf"({SAFE_BOOT_ID.pattern})-(\d{{12,}})-(\d{{12,}})(?:-k(\d+))?\.({SEALED}|{BAD}|{REJECTED})"
)
_FILE_MODE = 0o640


class CorruptSegmentError(ValueError):
    """A segment does not hold what its name says; the message says what it does hold."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A sealed segment.

    Args of the dataclass:
        path: Where it lies.
        pod_uid: Whose records these are: not always this pod's, a volume may have moved.
        boot_id: Start of the agent that wrote it.
        first: First sequence.
        last: Last sequence.
        records: Number of records; fewer than first to last if it was thinned.
        size_bytes: Size of the file.
        oldest_at_us: When its oldest record was observed.
        account: What must be announced if it is never shipped.
    """

    path: Path
    pod_uid: str
    boot_id: str
    first: int
    last: int
    records: int
    size_bytes: int
    oldest_at_us: int
    account: drops.Account

    @property
    def name(self) -> str:
        """Name under which a sink knows it: the same content always has the same name."""
        return range_stem(RangeName(self.boot_id, self.first, self.last, self.records))


@dataclass(frozen=True, slots=True)
class Parcel:
    """A sealed segment on its way to a sink.

    Args of the dataclass:
        segment: Where it came from.
        payload: JSON lines exactly as encoded, each with its newline.
    """

    segment: Segment
    payload: bytes


@dataclass(frozen=True, slots=True)
class RangeName:
    """What the name of a complete file says; `records` is what it holds if it is whole."""

    boot_id: str
    first: int
    last: int
    records: int
    state: str = SEALED


def parse_open_name(name: str) -> tuple[str, int] | None:
    """Read boot id and first sequence off the name of an open segment; None for any other file."""
    match = _OPEN_NAME.fullmatch(name)
    return (match[1], int(match[2])) if match else None


def parse_range_name(name: str) -> RangeName | None:
    """Read the name of a sealed or set-aside segment; None for any other file."""
    match = _RANGE_NAME.fullmatch(name)
    if match is None:
        return None
    first, last = int(match[2]), int(match[3])
    return RangeName(match[1], first, last, int(match[4]) if match[4] else last - first + 1, match[5])


def range_stem(name: RangeName) -> str:
    """Spell a name without its state."""
    thinned = f"-k{name.records}" if name.records != name.last - name.first + 1 else ""
    return f"{name.boot_id}-{name.first:012d}-{name.last:012d}{thinned}"


def range_path(directory: Path, name: RangeName) -> Path:
    """Place a complete file."""
    return directory / f"{range_stem(name)}.{name.state}"


def read_lines(segment: Segment) -> tuple[bytes, ...]:
    """Read a sealed segment back.

    Raises:
        CorruptSegmentError: it is not what was sealed.
        OSError: it cannot be read.
    """
    return whole_lines(segment.path.read_bytes(), segment.records)


def whole_lines(data: bytes, records: int) -> tuple[bytes, ...]:
    """Take a complete file apart.

    Args:
        data: Its content.
        records: How many records its name promises.

    Raises:
        CorruptSegmentError: it does not hold exactly those.
    """
    found = frames.parse(data)
    if found.good_bytes != len(data) or len(found.lines) != records:
        raise CorruptSegmentError(f"{len(found.lines)} of {records} records are whole")
    return found.lines


def describe(path: Path, name: RangeName, lines: tuple[bytes, ...], size_bytes: int) -> Segment:
    """Make the value of a segment from its records.

    Args:
        path: Where the segment lies or will lie.
        name: What its name says.
        lines: At least one record.
        size_bytes: Size of the file.

    Raises:
        CorruptSegmentError: the records are not ours or not those that the name promises.
    """
    account: drops.Account = {}
    oldest_at_us, pod_uid, before = 0, "", name.first - 1
    has_holes = name.records != name.last - name.first + 1
    for line in lines:
        try:
            data = json.loads(line)["data"]
            boot_id, sequence = data["boot_id"], int(data["sequence"])
            fits = before < sequence <= name.last if has_holes else sequence == before + 1
            if boot_id != name.boot_id or not fits:
                raise CorruptSegmentError(f"record {boot_id}/{sequence} in the place of {before + 1}")
            at_us, pod_uid = int(data["observed_at_us"]), str(data["pod_uid"])
            drops.add_record(account, boot_id, sequence, str(data["kind"]), data)
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptSegmentError(f"record {before + 1} is not an event: {error}") from error
        oldest_at_us = min(oldest_at_us, at_us) if oldest_at_us else at_us
        before = sequence
    return Segment(
        path, pod_uid, name.boot_id, name.first, name.last, len(lines), size_bytes, oldest_at_us, account
    )


def thin(segment: Segment, rank: int) -> Segment:
    """Rewrite a segment without its records of one rank, durably, under a name of its own.

    A name of its own because the sink may have the whole segment already, with the acknowledgement lost.

    Args:
        segment: Has records of other ranks, too. Its file stays.
        rank: See `priority`.

    Raises:
        CorruptSegmentError: it cannot be read any more.
        OSError: the disk refuses; the old file is as it was.
    """
    lines = read_lines(segment)
    kept = tuple(x for x in lines if priority.rank_of(str(json.loads(x)["data"]["kind"])) != rank)
    content = b"".join(frames.frame(line) for line in kept)
    name = RangeName(segment.boot_id, segment.first, segment.last, len(kept))
    path = range_path(segment.path.parent, name)
    write_durably(path, content)
    return describe(path, name, kept, len(content))


def write_durably(path: Path, content: bytes) -> None:
    """Write a file that is there completely or not at all.

    Raises:
        OSError: the disk refuses; nothing is there under this name.
    """
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


@dataclass(slots=True)
class OpenSegment:
    """The segment that is being written; the only mutable file of the spool."""

    path: Path
    pod_uid: str
    boot_id: str
    first: int
    opened_s: float
    descriptor: int
    synced_s: float
    size_bytes: int = 0
    records: int = 0
    dirty: bool = False
    finished: bool = False
    oldest_at_us: int = 0
    account: drops.Account = field(default_factory=dict)

    @classmethod
    def create(cls, directory: Path, pod_uid: str, boot_id: str, first: int, now_s: float) -> OpenSegment:
        """Create the file; its name is durable before the first record is.

        Raises:
            OSError: the directory cannot be written to.
        """
        path = directory / f"{boot_id}-{first:012d}.{OPEN}"
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, _FILE_MODE)
        try:
            sync_directory(directory)
        except OSError:
            os.close(descriptor)
            path.unlink(missing_ok=True)
            raise
        return cls(path, pod_uid, boot_id, first, now_s, descriptor, synced_s=now_s)

    @property
    def next_sequence(self) -> int:
        """Sequence that fits behind the last record."""
        return self.first + self.records

    def append(self, line: bytes, record: Record) -> None:
        """Write one record at the end of what is whole; what a failed write left there is overwritten.

        Raises:
            OSError: the record is not written; the segment stays as it was.
        """
        framed = frames.frame(line)
        written = 0
        while written < len(framed):
            written += os.pwrite(self.descriptor, framed[written:], self.size_bytes + written)
        drops.add_record(self.account, self.boot_id, self.next_sequence, record.kind.value, record.body)
        at_us = record.observed_at_us
        self.oldest_at_us = min(self.oldest_at_us, at_us) if self.records else at_us
        self.size_bytes += len(framed)
        self.records += 1
        self.dirty = True

    def sync(self, now_s: float) -> None:
        """Make everything that was appended durable.

        Raises:
            OSError: the disk refuses.
        """
        os.fdatasync(self.descriptor)
        self.dirty, self.synced_s = False, now_s

    def seal(self) -> Segment:
        """Finish the file and give it its final name, both durably.

        Raises:
            OSError: the disk refuses; sealing can be tried again, appending cannot.
        """
        self.finished = True
        os.ftruncate(self.descriptor, self.size_bytes)
        os.fsync(self.descriptor)
        last = self.next_sequence - 1
        path = range_path(self.path.parent, RangeName(self.boot_id, self.first, last, self.records))
        self.path.replace(path)
        self.path = path  # so that a second try, after a failed sync, finds the file
        sync_directory(path.parent)
        os.close(self.descriptor)
        return Segment(
            path,
            self.pod_uid,
            self.boot_id,
            self.first,
            last,
            self.records,
            self.size_bytes,
            self.oldest_at_us,
            self.account,
        )

    def discard(self) -> None:
        """Remove the file; for a segment without records.

        Raises:
            OSError: the disk refuses; discarding can be tried again.
        """
        self.path.unlink(missing_ok=True)
        os.close(self.descriptor)


def sync_directory(directory: Path) -> None:
    """Make names in a directory durable.

    Raises:
        OSError: the disk refuses.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
