"""Bring a spool in order by hand: what an agent's start does, and more: damaged segments give back what is whole."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path

from agent.errors import SpoolError
from agent.ship import frames
from agent.ship.home import SpoolHome
from agent.ship.recovery import recover
from agent.ship.segments import (
    BAD,
    REJECTED,
    CorruptSegmentError,
    RangeName,
    describe,
    parse_range_name,
    range_path,
    sync_directory,
    write_durably,
)

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Repaired:
    """What was done.

    Args of the dataclass:
        torn_tails: Half-written records cut off.
        quarantined: Segments found damaged now.
        salvaged_records: Whole records taken out of quarantined segments; they wait to be shipped again.
        hopeless: Quarantined segments without a whole record; they stay.
        retried: Rejected segments that wait to be shipped again.
    """

    torn_tails: int
    quarantined: int
    salvaged_records: int
    hopeless: int
    retried: int


def repair(directory: Path, *, retry_rejected: bool = False) -> Repaired:
    """Repair a spool that no agent uses.

    Args:
        directory: The spool.
        retry_rejected: Whether segments that the sink rejected wait to be shipped again.

    Raises:
        SpoolError: it is in use, of a newer release, or its volume refuses.
    """
    home = SpoolHome(directory, None)
    try:
        found = recover(directory)
        salvaged = hopeless = retried = 0
        for path in sorted(directory.iterdir()):
            name = parse_range_name(path.name)
            if name is not None and name.state == BAD:
                count = _salvage(path, name.boot_id)
                salvaged += count
                hopeless += not count
            elif name is not None and name.state == REJECTED and retry_rejected:
                path.replace(path.with_suffix(".sealed"))
                retried += 1
        sync_directory(directory)
        home.stamp()
    except OSError as error:
        raise SpoolError(f"cannot repair {directory}: {error}; check its volume") from error
    finally:
        home.close()
    return Repaired(found.torn_tails, found.corrupt_segments, salvaged, hopeless, retried)


def _salvage(path: Path, boot_id: str) -> int:
    """Turn a quarantined segment into a sealed one with its whole records; tell how many these are."""
    by_sequence: dict[int, bytes] = {}
    for line in frames.salvage(path.read_bytes()):
        try:
            data = json.loads(line)["data"]
            if data["boot_id"] == boot_id:
                by_sequence[int(data["sequence"])] = line
        except (ValueError, KeyError, TypeError):
            continue
    lines = tuple(by_sequence[number] for number in sorted(by_sequence))
    if not lines:
        return 0
    name = RangeName(boot_id, min(by_sequence), max(by_sequence), len(lines))
    content = b"".join(frames.frame(line) for line in lines)
    target = range_path(path.parent, name)
    try:
        describe(target, name, lines, len(content))
    except CorruptSegmentError as error:
        _LOG.warning("spool: nothing to salvage", extra={"segment": path.name, "reason": str(error)})
        return 0
    write_durably(target, content)
    path.unlink()
    return len(lines)
