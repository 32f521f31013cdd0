"""Values of the spool: batches of records, how large it may become, which kinds are given up first, its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.contract.events import Kind
from agent.errors import SpoolError

SEAL_BYTES, MIN_SEAL_BYTES = 256 * 1024, 16 * 1024
CAP_BYTES, MIN_CAP_BYTES = 64 * 1024 * 1024, 1024 * 1024
MIN_CAP_SEGMENTS = 8
_LOG_BYTES = 4 * 1024 * 1024

FOLDED, HIGHEST = 0, 3
"""Drop records are folded rather than lost: the next announcement says what they said. So any record may displace
them, and a sink that is away for weeks does not fill the spool with announcements."""

_RANKS = {
    Kind.DROP.value: FOLDED,
    Kind.SUMMARY.value: 1,
    Kind.DIGEST.value: 1,
    Kind.TRANSITION.value: 2,
    Kind.HEARTBEAT.value: 2,
}
"""The next summary says it all again; a digest is large, and another one can be made; transitions and heartbeats come
in masses. All other kinds are rare, and findings are what matters most."""


def rank_of(kind: str) -> int:
    """Rank a record kind: 0 is given up first; unknown kinds are kept longest."""
    return _RANKS.get(kind, HIGHEST)


@dataclass(slots=True)
class Batch:
    """Records of one boot that are shipped together; sealed, it is a segment."""

    number: int  # its identity in the spool, in the order of arrival
    pod_uid: str  # whose records these are: not always this pod's, a volume may have moved
    boot_id: str  # start of the agent that wrote it
    first: int  # sequences
    last: int
    records: int = 0
    size_bytes: int = 0  # of their lines
    oldest_at_us: int = 0  # when its oldest record was observed
    is_rejected: bool = False  # the sink will never take it; its loss is announced

    @property
    def name(self) -> str:
        """Name under which a sink knows it: the same content always has the same name.

        `-k` says how many records are left if that is not all of them.
        """
        thinned = f"-k{self.records}" if self.records != self.last - self.first + 1 else ""
        return f"{self.boot_id}-{self.first:012d}-{self.last:012d}{thinned}"


@dataclass(frozen=True, slots=True)
class Parcel:
    """A sealed batch on its way to a sink."""

    segment: Batch
    payload: bytes  # JSON lines exactly as encoded, each with its newline


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes of a spool."""

    seal_bytes: int = SEAL_BYTES  # size from which a segment is sealed
    seal_age_s: float = 15.0  # age from which a segment is sealed
    cap_bytes: int = CAP_BYTES
    """Size that the directory never outgrows: database, log and what was set aside together."""

    def check(self) -> None:
        """Refuse sizes that cannot work.

        Raises:
            SpoolError: says which and why.
        """
        least = max(MIN_CAP_BYTES, MIN_CAP_SEGMENTS * self.seal_bytes)
        if self.seal_bytes < MIN_SEAL_BYTES or self.cap_bytes < least:
            raise SpoolError(
                f"spool segments of {self.seal_bytes} bytes under a cap of {self.cap_bytes} are too small: a segment"
                f" takes at least {MIN_SEAL_BYTES} bytes, the cap at least {MIN_CAP_SEGMENTS} segments and 1 MiB"
            )

    @property
    def log_bytes(self) -> int:
        """Part of the cap that the log may take; it is emptied at a quarter: a transaction writes some more."""
        return min(self.cap_bytes // 8, _LOG_BYTES)

    @property
    def log_room_bytes(self) -> int:
        """Part of the cap that is kept free for the log: its pages have headers.

        One transaction that adds a large record and gives up others touches more pages than the record has.
        """
        return self.log_bytes * 5 // 4


@dataclass(frozen=True, slots=True)
class SpoolStats:
    """State of the spool in numbers: what waits, the open segment included, and what was lost since the start."""

    records: int = 0
    bytes: int = 0  # in use, a damaged database that was set aside included
    segments: int = 0
    oldest_at_us: int | None = None  # when the oldest waiting record was observed; None = nothing waits
    dropped: Mapping[str, int] = field(default_factory=dict)  # kind (or `unknown`) -> records given up
    corrupt_segments: int = 0  # how often damage was found
    write_failures: int = 0  # appends that the disk refused
    aside: int = 0  # kept for inspection: a damaged database, and segments that the sink rejected
