"""How large a spool may become, and how its room is shared out. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from agent.errors import SpoolError

SEAL_BYTES = 256 * 1024
MIN_SEAL_BYTES = 16 * 1024
SEAL_AGE_S = 15.0
CAP_BYTES = 64 * 1024 * 1024
MIN_CAP_BYTES = 1024 * 1024
MIN_CAP_SEGMENTS = 8
_LARGEST_LOG_BYTES = 4 * 1024 * 1024
_LEAST_ROOM_BYTES = 128 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes of a spool.

    Args of the dataclass:
        seal_bytes: Size from which a segment is sealed.
        seal_age_s: Age, in seconds, from which a segment is sealed.
        cap_bytes: Size that the directory never outgrows: database, log, reserve and what was set aside together.
    """

    seal_bytes: int = SEAL_BYTES
    seal_age_s: float = SEAL_AGE_S
    cap_bytes: int = CAP_BYTES

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


@dataclass(frozen=True, slots=True)
class Shares:
    """Who gets what of the cap.

    Args of the dataclass:
        seal_bytes: Size from which a segment is sealed.
        log_bytes: The write-ahead log.
        reserve_bytes: Room that is kept for the moment in which the disk is full.
        database_bytes: The database file.
    """

    seal_bytes: int
    log_bytes: int
    reserve_bytes: int
    database_bytes: int

    @property
    def largest_record_bytes(self) -> int:
        """Size beyond which one record would make the log outgrow its share."""
        return self.log_bytes * 3 // 8


def share_out(limits: Limits, room_bytes: int) -> Shares:
    """Share the cap out; on a volume that is smaller than the cap, log and reserve are small, too.

    Args:
        limits: As configured.
        room_bytes: What the spool has on its volume already, and what is free there.
    """
    room = max(_LEAST_ROOM_BYTES, min(limits.cap_bytes, room_bytes))
    seal = min(limits.seal_bytes, room // MIN_CAP_SEGMENTS)
    log = max(2 * seal, min(room // 8, _LARGEST_LOG_BYTES))
    reserve = log // 2
    return Shares(seal, log, reserve, limits.cap_bytes - log - reserve)
