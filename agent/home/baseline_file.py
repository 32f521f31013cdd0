"""The baseline as a file: gzip JSON lines, replaced in one step, bounded, never trusted when read.

Written beside its place and renamed, so that a kill leaves the former one whole. Not synced: what a crash of the
node leaves behind fails gzip's checksum and is set aside. Its modification time says until when it was right.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import error as ZlibError  # noqa: N812 - it is a class

from agent.errors import BaselineError

NAME = "baseline.jsonl.gz"
CORRUPT_NAME, OTHER_FORMAT_NAME = "baseline.corrupt", "baseline.other-format"
MAX_FILE_BYTES = 64 << 20
MAX_TEXT_BYTES = 1 << 30
MAX_LINE_BYTES = 8 << 20
"""What is known about a task takes 1 to 60 KB; histories are bounded."""

_LEVEL = 1  # CPU is what the agent has least of; higher levels save a tenth

Line = dict[str, Any]


class BaselineFile:
    """One file in the agent's own directory."""

    def __init__(self, directory: Path) -> None:
        """Keep the baseline in `directory`, which exists and is the agent's own."""
        self._path = directory / NAME
        self._temporary = directory / f"{NAME}.tmp"
        self._writer: gzip.GzipFile | None = None
        self.text_bytes = 0

    def written_us(self) -> int | None:
        """Return until when the file was right, microseconds since the epoch; None = there is none."""
        try:
            return self._path.stat().st_mtime_ns // 1000
        except OSError:
            return None

    def lines(self) -> Iterator[Line]:
        """Read the lines, one at a time in memory.

        Raises:
            BaselineError: the file is too large, damaged or not what the agent writes; said when it is met.
        """
        try:
            if self._path.stat().st_size > MAX_FILE_BYTES:
                raise BaselineError(f"{self._path} is larger than {MAX_FILE_BYTES} bytes")
            with gzip.open(self._path, "rb") as file:
                yield from self._parse(file)
        except (OSError, EOFError, ZlibError) as error:
            raise BaselineError(f"cannot read {self._path}: {error}") from error

    def _parse(self, file: gzip.GzipFile) -> Iterator[Line]:
        left = MAX_TEXT_BYTES
        while text := file.readline(MAX_LINE_BYTES + 1):
            left -= len(text)
            if len(text) > MAX_LINE_BYTES or left < 0:
                raise BaselineError(f"{self._path} holds more text than the agent writes")
            try:
                line = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise BaselineError(f"{self._path}: not JSON: {error}") from error
            if not isinstance(line, dict):
                raise BaselineError(f"{self._path}: a line is no object")
            yield line

    def write(self, line: Line) -> None:
        """Add a line to the next baseline; the first one begins it.

        Raises:
            BaselineError: the disk refuses; what was started is given up.
        """
        text = json.dumps(line, separators=(",", ":")).encode("ascii") + b"\n"
        try:
            if self._writer is None:
                self._writer = gzip.open(self._temporary, "wb", compresslevel=_LEVEL)  # noqa: SIM115 - kept open
                self.text_bytes = 0
            self._writer.write(text)
            self.text_bytes += len(text)
        except OSError as error:
            self._fail(error)

    def commit(self, right_until_us: int) -> None:
        """Put what was written in the place of the former baseline.

        Raises:
            BaselineError: the disk refuses; the former one stays.
        """
        assert self._writer is not None
        try:
            self._writer.close()
            self._writer = None
            self._date(self._temporary, right_until_us)
            self._temporary.replace(self._path)
        except OSError as error:
            self._fail(error)

    def touch(self, right_until_us: int) -> None:
        """Say that nothing has changed until now; a failure leaves the older time, which is the safe side."""
        try:
            self._date(self._path, right_until_us)
        except OSError:
            return

    def set_aside(self, name: str) -> None:
        """Move a baseline that cannot be used out of the way; of its kind the newest is kept."""
        try:
            self._path.replace(self._path.with_name(name))
        except OSError as error:
            raise BaselineError(f"cannot set {self._path} aside: {error.strerror}") from error

    def _date(self, path: Path, at_us: int) -> None:
        os.utime(path, ns=(at_us * 1000, at_us * 1000))

    def _fail(self, error: OSError) -> None:
        self.abandon()
        raise BaselineError(f"cannot write {self._temporary}: {error.strerror or error}") from error

    def abandon(self) -> None:
        """Give up what was started."""
        writer, self._writer = self._writer, None
        try:
            if writer is not None:
                writer.close()
        except OSError:
            pass  # the disk that refused the content refuses its end, too
        finally:
            self._temporary.unlink(missing_ok=True)
