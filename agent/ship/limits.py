"""How large a spool may become. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from agent.errors import SpoolError

SEAL_BYTES = 256 * 1024
MIN_SEAL_BYTES = 16 * 1024
"""Well above the drop records that announce one dropped segment: dropping must gain room."""
SEAL_AGE_S = 15.0
CAP_BYTES = 64 * 1024 * 1024
CAP_FILES = 2_048
MIN_CAP_FILES = 4


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes of a spool.

    Args of the dataclass:
        seal_bytes: Size from which a segment is sealed.
        seal_age_s: Age, in seconds, from which a segment is sealed.
        cap_bytes: Size that the directory never outgrows; at least three segments.
        cap_files: Number of segment files, those set aside included, that it never outgrows.
    """

    seal_bytes: int = SEAL_BYTES
    seal_age_s: float = SEAL_AGE_S
    cap_bytes: int = CAP_BYTES
    cap_files: int = CAP_FILES

    def check(self) -> None:
        """Refuse sizes that cannot work.

        Raises:
            SpoolError: says which and why.
        """
        if self.seal_bytes < MIN_SEAL_BYTES or self.cap_bytes < 3 * self.seal_bytes:
            raise SpoolError(
                f"spool segments of {self.seal_bytes} bytes under a cap of {self.cap_bytes} are too small: "
                f"a segment takes at least {MIN_SEAL_BYTES} bytes, the cap at least three segments"
            )
        if self.cap_files < MIN_CAP_FILES:
            raise SpoolError(f"a spool needs at least {MIN_CAP_FILES} files, not {self.cap_files}")
