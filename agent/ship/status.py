"""What waits in a spool, for a person at the terminal: read only, no lock, also beside a running agent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent.errors import SpoolError, UsageError
from agent.ship.database import Row, StoreError, last_checkpoint
from agent.ship.storage import BAD_NAME, DATABASE_NAME, other_format
from agent.ship.tables import TABLES

_BATCHES = "SELECT count(*) - sum(is_rejected), sum(is_rejected) FROM batches"
_RECORDS = " UNION ALL ".join(f"SELECT count(*), min(at_us) FROM {table}" for table in TABLES)  # noqa: S608
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Status:
    """What was in a spool at its last checkpoint: at most a few seconds ago while its agent runs.

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
        raise UsageError(_missing(directory))
    if why := other_format(path):
        raise SpoolError(f"cannot read {path}: {why}")
    ((segments, rejected),), sums = _asked(path)
    oldest = min((at_us for count, at_us in sums if count), default=None)
    size_bytes = sum(x.stat().st_size for x in directory.iterdir() if x.is_file())
    has_damaged = (directory / BAD_NAME).exists()
    return Status(
        segments or 0, rejected or 0, sum(count for count, _ in sums), oldest, size_bytes, has_damaged
    )


def _missing(directory: Path) -> str:
    return f"{directory} holds no spool: {DATABASE_NAME} is not there"


def _asked(path: Path) -> list[list[Row]]:
    reason: StoreError | None = None
    for _ in range(_TRIES):
        try:
            return last_checkpoint(path, (_BATCHES, _RECORDS))
        except StoreError as error:  # a checkpoint in this moment looks like damage
            reason = error
    raise SpoolError(f"cannot read {path}: {reason}; try again, or check the agent's log")
