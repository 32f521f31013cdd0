"""Standard output that may be closed, full, or have no reader any more; what a command found must outlive all three.

Exit code 1 says that something was found, so trouble with the output may never look like it, nor like 0.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

from agent.errors import StatewardenError


class OutputError(StatewardenError):
    """Standard output cannot be written."""


class Output:
    """Standard output of one command.

    A reader that has enough (`| head`) is no error: what follows is dropped, and the command goes on to its exit code.
    Anything else ends the command.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self.plain = stream
        self._is_gone = False

    def write(self, text: str) -> int:
        """Write, unless the reader has gone. Raises `OutputError`: it cannot be written."""
        if self.plain is None:
            raise OutputError("standard output is closed; nothing was written")
        if not self._is_gone:
            with self._failures():
                self.plain.write(text)
        return len(text)

    def flush(self) -> None:
        """Let everything go out. Raises `OutputError`: it cannot be written."""
        if self.plain is not None and not self._is_gone:
            with self._failures():
                self.plain.flush()

    def isatty(self) -> bool:
        """Return whether a person watches."""
        return self.plain is not None and self.plain.isatty()

    def __getattr__(self, name: str) -> Any:
        """Be the stream in everything else."""
        return getattr(self.plain, name)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            self._give_up()
        except (OSError, ValueError) as error:  # ValueError: the stream itself was closed
            self._give_up()
            reason = error.strerror if isinstance(error, OSError) else None
            raise OutputError(f"can't write standard output: {reason or error}") from error

    def _give_up(self) -> None:
        """Send what is still in the buffer nowhere: the interpreter flushes it once more at its end."""
        self._is_gone = True
        with suppress(OSError, ValueError, AttributeError):
            descriptor = os.open(os.devnull, os.O_WRONLY)
            os.dup2(descriptor, self.plain.fileno())  # type: ignore[union-attr]
            os.close(descriptor)


@contextmanager
def guarded_output() -> Iterator[Output]:
    """Put the guard in the place of standard output."""
    plain = cast("TextIO | None", sys.stdout)
    output = Output(plain)
    sys.stdout = cast("TextIO", output)
    try:
        yield output
    finally:
        sys.stdout = cast("TextIO", plain)


def log_stream() -> TextIO:
    """Give the stream of a log: one that outlives trouble with it, so without the guard."""
    plain = sys.stdout.plain if isinstance(sys.stdout, Output) else sys.stdout
    return plain or sys.stderr


def complain(text: str) -> None:
    """Write one line to standard error, if there is one."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"statewarden: {text}\n")
