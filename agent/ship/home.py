"""The directory of a spool: may it be there, is it free, and which sequence was the last.

The spool has a volume of its own. It never lies below a state directory: the agent never writes there.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
from pathlib import Path

from agent.errors import SpoolError

_LOG = logging.getLogger(__name__)
FORMAT = 1
LOCK_NAME, POSITION_NAME = "lock", "spool.json"


class SpoolHome:
    """An existing spool directory that this process alone uses until `close`."""

    def __init__(self, directory: Path, state_directory: Path | None) -> None:
        """Make the directory if needed and take its lock.

        Args:
            directory: The spool.
            state_directory: What is audited; None = nothing live, as in a replay.

        Raises:
            SpoolError: it lies in the state directory, cannot be used, is in use, or was written by a newer
                release, in which case nothing in it is touched.
        """
        self.directory = directory
        if state_directory is not None and lies_inside(directory, state_directory):
            raise SpoolError(
                f"spool {directory} lies in the state directory {state_directory}, where the agent never "
                "writes; give the spool a directory elsewhere, best on a volume of its own"
            )
        try:
            directory.mkdir(parents=True, exist_ok=True)
            flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
            self._lock = os.open(directory / LOCK_NAME, flags, 0o640)
        except OSError as error:
            raise SpoolError(
                f"cannot use {directory} as spool: {error.strerror}; give it a writable volume of its own"
            ) from error
        try:
            self._take_lock()
            self._boot_id, self._last_sequence = self._read_position()
        except BaseException:
            os.close(self._lock)
            raise

    def last_sequence(self, boot_id: str) -> int:
        """Tell the highest sequence that this boot has sealed; 0 = none."""
        return self._last_sequence if boot_id == self._boot_id else 0

    def write_position(self, boot_id: str, last_sequence: int) -> None:
        """Remember the highest sequence, so that it is never given out again after the segment has left.

        Durable once the caller has synced the directory, as sealing does next.

        Raises:
            OSError: the disk refuses.
        """
        content = json.dumps({"format": FORMAT, "boot_id": boot_id, "last_sequence": last_sequence})
        temporary = self.directory / f"{POSITION_NAME}.tmp"
        with temporary.open("w", encoding="utf-8") as file:
            file.write(content + "\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.directory / POSITION_NAME)
        self._boot_id, self._last_sequence = boot_id, last_sequence

    def close(self) -> None:
        """Let another agent have the directory."""
        os.close(self._lock)

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise SpoolError(
                f"spool {self.directory} is in use by another statewarden agent; "
                "give each agent a spool directory of its own, or stop the other one"
            ) from error

    def _read_position(self) -> tuple[str, int]:
        path = self.directory / POSITION_NAME
        try:
            content = json.loads(path.read_bytes())
            written, boot_id, last = (
                int(content["format"]),
                str(content["boot_id"]),
                int(content["last_sequence"]),
            )
        except FileNotFoundError:
            return "", 0
        except OSError as error:
            raise SpoolError(
                f"cannot read {path}: {error.strerror}; make it readable for the agent"
            ) from error
        except (ValueError, KeyError, TypeError):
            # the segments' names say the same unless all were shipped, and then the boot id is a new one
            _LOG.warning("spool: position file is unreadable and is written anew", extra={"file": path.name})
            return "", 0
        if written > FORMAT:
            raise SpoolError(
                f"spool {self.directory} has format {written}, this agent knows up to {FORMAT}: "
                "run the newer statewarden on it, or give this one another directory; nothing was changed"
            )
        return boot_id, last


def lies_inside(directory: Path, outer: Path) -> bool:
    """Tell whether a directory is another one or lies below it, symbolic links followed."""
    inner, outer = directory.resolve(), outer.resolve()
    return inner == outer or outer in inner.parents
