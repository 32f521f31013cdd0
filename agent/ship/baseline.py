"""The baseline as rows of the agent's database: packed JSON lines, replaced in one step, never trusted when read.

There are two generations of rows. The next baseline is written over the older one, a commit for each row, and valid
once the head names it: a kill leaves the former one whole. Rows keep their pages, so records never take that room.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from agent.errors import BaselineError, SpoolError
from agent.ship.database import Row
from agent.ship.queue import Queue

MAX_BYTES = 64 << 20
MAX_TEXT_BYTES = 1 << 30
MAX_LINE_BYTES = 8 << 20  # what is known about a task takes 1 to 60 KB; histories are bounded
ROW_TEXT_BYTES = 256 << 10  # from so much text on a row is written: the log has room for many
_LEVEL = 1  # CPU is what the agent has least of; higher levels save a tenth

Line = dict[str, Any]
Guard = Callable[[str], AbstractContextManager[None]]


class BaselineTable:
    """The baseline in a spool's database; used by one thread."""

    def __init__(self, queue: Queue, guard: Guard) -> None:
        """Use a queue's database.

        `queue`: holds it, and how much of it the baseline may take. `guard`: given what is done: keeps other
        threads out, and raises `SpoolError` for what the disk refuses.
        """
        self._queue, self._guard = queue, guard
        self._text: list[bytes] = []
        self._row_bytes = self._rows = self._size_bytes = 0
        self.text_bytes = 0

    def written_us(self) -> int | None:
        """Return until when the baseline was right, microseconds since the epoch; None = there is none."""
        head = self._run("SELECT until_us FROM baseline_head")
        return int(head[0][0]) if head else None

    def lost(self) -> tuple[int, str] | None:
        """Return until when one was right that is gone with a database that was set aside, and why it was."""
        return self._queue.lost

    def lines(self) -> Iterator[Line]:
        """Read the lines, one row at a time in memory.

        Raises `BaselineError`: they are too large, damaged or not what the agent writes; said when it is met.
        """
        ((generation, rows),) = self._run("SELECT generation, row_count FROM baseline_head") or [(0, 0)]
        left = MAX_TEXT_BYTES
        for number in range(rows):
            found = self._run("SELECT packed FROM baseline WHERE n=?", (2 * number + generation,))
            text = _unpacked(found[0][0]) if found else b""
            left -= len(text)
            if not text or left < 0:
                raise BaselineError("a row is missing, or there is more text than the agent writes")
            yield from map(_parsed, text.splitlines())

    def write(self, line: Line) -> None:
        """Add a line to the next baseline; the first one begins it.

        Raises `BaselineError`: the disk refuses, or it is too much; what was started is given up.
        """
        text = json.dumps(line, separators=(",", ":")).encode("ascii")
        self._text.append(text)
        self._row_bytes += len(text) + 1
        self.text_bytes += len(text) + 1
        if self._row_bytes >= ROW_TEXT_BYTES:
            self._write_row()
        if self.text_bytes > MAX_TEXT_BYTES or self._size_bytes > MAX_BYTES:
            self.abandon()
            raise BaselineError(
                f"more than {MAX_BYTES} bytes, or {MAX_TEXT_BYTES} of text: too much for a baseline"
            )

    def commit(self, right_until_us: int) -> None:
        """Put what was written in the place of the former baseline.

        Raises `BaselineError`: the disk refuses; the former one stays.
        """
        if self._text:
            self._write_row()
        head = (right_until_us, self._next_generation(), self._rows)
        self._run("INSERT OR REPLACE INTO baseline_head VALUES (0, ?, ?, ?)", head)
        self._queue.lost = None
        self.abandon()

    def touch(self, right_until_us: int) -> bool:
        """Say that nothing has changed until now; return whether there is a baseline of which to say it."""
        return bool(self._run("UPDATE baseline_head SET until_us=? RETURNING n", (right_until_us,)))

    def forget(self) -> None:
        """Delete a baseline that cannot be used."""
        self._run("DELETE FROM baseline_head")

    def abandon(self) -> None:
        """Give up what was started."""
        self._text = []
        self._row_bytes = self._rows = self._size_bytes = self.text_bytes = 0

    def _write_row(self) -> None:
        packed = zlib.compress(b"\n".join(self._text), _LEVEL)
        try:
            n = 2 * self._rows + self._next_generation()
            with self._at():
                self._queue.limit(n, len(packed))
                database = self._queue.database
                # SQLite's REPLACE takes the new pages before it gives the old back
                with database.transaction():
                    database.run("DELETE FROM baseline WHERE n=?", (n,))
                    database.run("INSERT INTO baseline VALUES (?, ?)", (n, packed))
        except BaselineError:
            self.abandon()
            raise
        self._text, self._row_bytes = [], 0
        self._rows += 1
        self._size_bytes += len(packed)

    def _next_generation(self) -> int:
        head = self._run("SELECT generation FROM baseline_head")
        return 1 - int(head[0][0]) if head else 0

    def _run(self, statement: str, values: Row = ()) -> list[Row]:
        with self._at():
            return self._queue.database.run(statement, values)

    @contextmanager
    def _at(self) -> Iterator[None]:
        try:
            with self._guard("keep the baseline in"):
                yield
        except SpoolError as error:
            raise BaselineError(str(error)) from error


def _unpacked(packed: bytes) -> bytes:
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(packed, ROW_TEXT_BYTES + MAX_LINE_BYTES)
    except zlib.error as error:
        raise BaselineError(f"a row is damaged: {error}") from error
    if not unpacking.eof:
        raise BaselineError("a row is cut off, or holds more text than the agent writes")
    return text


def _parsed(text: bytes) -> Line:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BaselineError(f"not JSON: {error}") from error
    if not isinstance(line, dict):
        raise BaselineError("a line is no object")
    return line
