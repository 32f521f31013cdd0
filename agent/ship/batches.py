"""Batches of records: sealed, a batch is a segment that sinks take. Values only."""

from __future__ import annotations

import re
from dataclasses import dataclass

SAFE_BOOT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(slots=True)
class Batch:
    """Records of one boot that are shipped together."""

    number: int  # its identity in the spool, in the order of arrival
    pod_uid: str  # whose records these are: not always this pod's, a volume may have moved
    boot_id: str  # start of the agent that wrote it
    first: int  # first sequence
    last: int  # last sequence
    records: int = 0  # number of records in it
    size_bytes: int = 0  # size of their lines
    oldest_at_us: int = 0  # when its oldest record was observed
    is_rejected: bool = False  # whether the sink will never take it; its loss is announced

    @property
    def name(self) -> str:
        """Name under which a sink knows it: the same content always has the same name."""
        return segment_name(self.boot_id, self.first, self.last, self.records)


@dataclass(frozen=True, slots=True)
class Parcel:
    """A sealed batch on its way to a sink."""

    segment: Batch  # where it came from
    payload: bytes  # JSON lines exactly as encoded, each with its newline


def segment_name(boot_id: str, first: int, last: int, records: int) -> str:
    """Spell a name; `-k` says how many records are left if that is not all of them."""
    thinned = f"-k{records}" if records != last - first + 1 else ""
    return f"{boot_id}-{first:012d}-{last:012d}{thinned}"
