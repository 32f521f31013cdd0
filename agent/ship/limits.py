"""How large a spool may become. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from agent.errors import SpoolError

SEAL_BYTES = 256 * 1024
MIN_SEAL_BYTES = 16 * 1024
SEAL_AGE_S = 15.0
CAP_BYTES = 64 * 1024 * 1024
MIN_CAP_BYTES = 1024 * 1024
MIN_CAP_SEGMENTS = 8
_LOG_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes of a spool."""

    seal_bytes: int = SEAL_BYTES  # size from which a segment is sealed
    seal_age_s: float = SEAL_AGE_S  # age, in seconds, from which a segment is sealed
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
        """Part of the cap that is kept free for the log.

        Its pages have headers, and one transaction that adds a large record and gives up others touches more pages
        than the record has.
        """
        return self.log_bytes * 5 // 4
