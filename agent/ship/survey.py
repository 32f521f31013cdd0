"""What a spool directory holds, for people: read only, no lock, also while an agent writes to it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent.errors import SpoolError
from agent.ship import frames
from agent.ship.home import LOCK_NAME, POSITION_NAME, Position, read_position, refuse_newer
from agent.ship.segments import BAD, OPEN, parse_open_name, parse_range_name


@dataclass(frozen=True, slots=True)
class FileReport:
    """One segment file.

    Args of the dataclass:
        name: Its name.
        state: open, sealed, bad or rejected.
        boot_id: Start of the agent that wrote it.
        first: First sequence by its name.
        last: Last sequence by its name; of an open one the last whole record.
        size_bytes: Its size.
        records: Whole records in it, also behind damage.
        kinds: Record kind -> whole records.
        oldest_at_us: When the oldest whole record was observed.
        fault: What is wrong with it, a sentence; None = nothing.
        torn_bytes: Half-written record at the end of an open one: normal while an agent writes, and after a kill.
    """

    name: str
    state: str
    boot_id: str
    first: int
    last: int
    size_bytes: int
    records: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)
    oldest_at_us: int | None = None
    fault: str | None = None
    torn_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Survey:
    """A whole spool; files by boot and sequence."""

    directory: Path
    position: Position
    files: tuple[FileReport, ...]

    @property
    def faulty(self) -> tuple[FileReport, ...]:
        """Files that are not what their names say; what is quarantined already is not counted again."""
        return tuple(x for x in self.files if x.fault is not None and x.state != BAD)


def survey(directory: Path) -> Survey:
    """Look at every file of a spool.

    Raises:
        SpoolError: it is no spool, cannot be read, or is of a newer release.
    """
    try:
        names = sorted(path.name for path in directory.iterdir())
    except OSError as error:
        raise SpoolError(f"cannot read {directory}: {error.strerror}; give a spool directory") from error
    refuse_newer(directory)
    reports = [report for name in names if (report := _report(directory / name)) is not None]
    if not reports and not {LOCK_NAME, POSITION_NAME} & set(names):
        raise SpoolError(f"{directory} holds no spool: neither {POSITION_NAME} nor segments are there")
    reports.sort(key=lambda x: (x.boot_id, x.first, x.last))
    return Survey(directory, read_position(directory), tuple(reports))


def whole_lines_of(directory: Path, report: FileReport) -> tuple[bytes, ...]:
    """Read every whole record of a file, also behind damage; empty if the file is gone meanwhile.

    Raises:
        SpoolError: the file cannot be read.
    """
    return frames.salvage(_read(directory / report.name))


def holes(files: tuple[FileReport, ...]) -> Iterator[tuple[str, int, int]]:
    """List (boot, first, last) of sequences between the files of a boot that are in none of them."""
    reached: dict[str, int] = {}
    for report in files:
        before = reached.get(report.boot_id, report.first - 1)
        if report.first > before + 1:
            yield report.boot_id, before + 1, report.first - 1
        reached[report.boot_id] = max(before, report.last)


def _report(path: Path) -> FileReport | None:
    opened, name = parse_open_name(path.name), parse_range_name(path.name)
    if opened is None and name is None:
        return None
    data = _read(path)
    found, lines = frames.parse(data), frames.salvage(data)
    kinds: Counter[str] = Counter()
    oldest_at_us: int | None = None
    for line in lines:
        kind, at_us = _kind_and_time(line)
        kinds[kind] += 1
        oldest_at_us = at_us if oldest_at_us is None else min(oldest_at_us, at_us)
    if opened is not None:
        whole, state, (boot_id, first) = not found.corrupt, OPEN, opened
        last, fault = first + len(lines) - 1, None if whole else "damaged in the middle"
    else:
        assert name is not None
        whole = found.good_bytes == len(data) and len(lines) == name.records
        boot_id, first, last, state = name.boot_id, name.first, name.last, name.state
        fault = None if whole else f"{len(lines)} of {name.records} records are whole"
    return FileReport(
        path.name,
        state,
        boot_id,
        first,
        last,
        len(data),
        len(lines),
        dict(kinds),
        oldest_at_us,
        fault,
        torn_bytes=len(data) - found.good_bytes if state == OPEN and whole else 0,
    )


def _kind_and_time(line: bytes) -> tuple[str, int]:
    try:
        data = json.loads(line)["data"]
        return str(data["kind"]), int(data["observed_at_us"])
    except (ValueError, KeyError, TypeError):
        return "unreadable", 0


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:  # shipped in this moment
        return b""
    except OSError as error:
        raise SpoolError(f"cannot read {path}: {error.strerror}") from error
