"""What waits in a spool, for a person at the terminal: read only, no lock, also beside a running agent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent.errors import SpoolError, UsageError
from agent.ship.database import DATABASE_NAME, StoreError, aside_files, last_checkpoint
from agent.ship.queue import other_format

_SUMS = (
    "SELECT count(DISTINCT CASE WHEN NOT is_rejected THEN batch END),"
    " count(DISTINCT CASE WHEN is_rejected THEN batch END), count(*), min(at_us) FROM records"
)
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Status:
    """What was in a spool at its last checkpoint: about a second ago at most while its agent runs.

    Args of the dataclass:
        segments: Segments that wait, the open one included.
        rejected: Segments that the sink will never take.
        records: Records in both.
        oldest_at_us: When the oldest of them was observed; None = there are none.
        size_bytes: Size of all files.
        has_damaged: Whether a damaged database is kept for inspection.
    """

    segments: int
    rejected: int
    records: int
    oldest_at_us: int | None
    size_bytes: int
    has_damaged: bool


def status_of(directory: Path) -> Status:
    """Read the state of a spool.

    Raises:
        UsageError: there is none.
        SpoolError: it cannot be read.
    """
    path = directory / DATABASE_NAME
    if not path.is_file():
        raise UsageError(f"{directory} holds no spool: {DATABASE_NAME} is not there")
    segments, rejected, records, oldest_at_us = _asked(path)
    size_bytes = sum(x.stat().st_size for x in directory.iterdir() if x.is_file())
    return Status(segments, rejected, records, oldest_at_us, size_bytes, aside_files(directory)[0].exists())


def _asked(path: Path) -> tuple[int, int, int, int | None]:
    reason: object = other_format(path)
    if reason:
        raise SpoolError(f"{path}: {reason}; `statewarden run` sets it aside")
    for _ in range(_TRIES):
        try:
            (((segments, rejected, records, oldest_at_us),),) = last_checkpoint(path, (_SUMS,))
        except StoreError as error:  # a checkpoint in this moment looks like damage
            reason = error
        else:
            return segments, rejected, records, oldest_at_us
    raise SpoolError(f"cannot read {path}: {reason}; try again, or check the agent's log")
