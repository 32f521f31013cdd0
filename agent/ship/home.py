"""The directory of a spool: may it be there, is it free, of which format, and which sequence was the last.

The spool has a volume of its own. It never lies below a state directory: the agent never writes there.

Formats: 1 had no thinned segments and wrote its position file with the first sealed segment only; it is migrated
by taking the segments as they are and stamping the directory with 2, so that an older agent, which would overlook
thinned segments for ever, refuses it.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from agent.errors import SpoolError, SpoolInUseError

_LOG = logging.getLogger(__name__)
FORMAT = 2
LOCK_NAME, POSITION_NAME = "lock", "spool.json"


@dataclass(frozen=True, slots=True)
class Position:
    """What the position file says; format 0 = there is none.

    Args of the dataclass:
        format: Which release's rules the directory follows.
        boot_id: Start of the agent that sealed last.
        last_sequence: Highest sequence that it has sealed.
    """

    format: int = 0
    boot_id: str = ""
    last_sequence: int = 0


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
        refuse_newer(directory)  # before anything is made or locked in it
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
            refuse_newer(directory)
            self._position = read_position(directory)
        except BaseException:
            os.close(self._lock)
            raise

    def last_sequence(self, boot_id: str) -> int:
        """Tell the highest sequence that this boot has sealed; 0 = none."""
        return self._position.last_sequence if boot_id == self._position.boot_id else 0

    def write_position(self, boot_id: str, last_sequence: int) -> None:
        """Remember the highest sequence, so that it is never given out again after the segment has left.

        Durable once the caller has synced the directory, as sealing does next. A disk that has no room for it is no
        reason not to seal: as long as a segment is there its name says the same, and every start has a boot id of its
        own.
        """
        position = Position(FORMAT, boot_id, last_sequence)
        temporary = self.directory / f"{POSITION_NAME}.tmp"
        try:
            with temporary.open("w", encoding="utf-8") as file:
                file.write(json.dumps(asdict(position)) + "\n")
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.directory / POSITION_NAME)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            _LOG.warning("spool: cannot write its position", extra={"reason": str(error)})
        else:
            self._position = position

    def stamp(self) -> None:
        """Give the directory this release's format, once what it holds is in order."""
        if self._position.format != FORMAT:
            self.write_position(self._position.boot_id, self._position.last_sequence)

    def close(self) -> None:
        """Let another agent have the directory."""
        os.close(self._lock)

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise SpoolInUseError(
                f"spool {self.directory} is in use by another statewarden agent; "
                "give each agent a spool directory of its own, or stop the other one"
            ) from error


def read_position(directory: Path) -> Position:
    """Read the position file; a directory without one, or with an unreadable one, gives format 0.

    Raises:
        SpoolError: the file cannot be read.
    """
    path = directory / POSITION_NAME
    try:
        content = json.loads(path.read_bytes())
        return Position(int(content["format"]), str(content["boot_id"]), int(content["last_sequence"]))
    except FileNotFoundError:
        return Position()
    except OSError as error:
        raise SpoolError(f"cannot read {path}: {error.strerror}; make it readable for the agent") from error
    except (ValueError, KeyError, TypeError):
        # the segments' names say the same unless all were shipped, and then the boot id is a new one
        _LOG.warning("spool: position file is unreadable and is written anew", extra={"file": path.name})
        return Position()


def refuse_newer(directory: Path) -> None:
    """Leave a spool of a later release alone.

    Raises:
        SpoolError: it is one, or its position file cannot be read.
    """
    if not directory.is_dir():
        return
    written = read_position(directory).format
    if written > FORMAT:
        raise SpoolError(
            f"spool {directory} has format {written}, this agent knows up to {FORMAT}: "
            "run the newer statewarden on it, or give this one another directory; nothing was changed"
        )


def lies_inside(directory: Path, outer: Path) -> bool:
    """Tell whether a directory is another one or lies below it, symbolic links followed."""
    inner, outer = directory.resolve(), outer.resolve()
    return inner == outer or outer in inner.parents
