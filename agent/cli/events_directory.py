"""Write a replay's records as the agent would have shipped them: segments without a spool."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from agent.contract.codec import Encoder
from agent.contract.events import Origin, Record
from agent.errors import UsageError
from agent.ship.sinks.base import object_name
from agent.ship.sinks.directory import DirectorySink

SEGMENT_RECORDS = 5_000


class EventsDirectory:
    """Takes records and writes segments; a context manager. Without a directory it takes them and writes nothing."""

    def __init__(self, directory: Path | None, origin: Origin) -> None:
        """Prepare to write below `directory`."""
        self._sink = DirectorySink(directory) if directory is not None else None
        self._directory, self._origin = directory, origin
        self._encoder = Encoder(origin)
        self._lines: list[str] = []
        self._sequence = 0

    def __enter__(self) -> EventsDirectory:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what is left."""
        self._flush()

    def append(self, record: Record) -> None:
        """Take one record.

        Raises:
            UsageError: the directory cannot be written.
        """
        if self._sink is None:
            return
        self._sequence += 1
        self._lines.append(self._encoder.encode(record, self._sequence))
        if len(self._lines) >= SEGMENT_RECORDS:
            self._flush()

    def _flush(self) -> None:
        if self._sink is None or not self._lines:
            return
        first = self._sequence - len(self._lines) + 1
        name = object_name(self._origin.pod_uid, f"{self._origin.boot_id}-{first:012d}-{self._sequence:012d}")
        payload = "".join(line + "\n" for line in self._lines).encode("ascii")
        try:
            self._sink.put(name, payload)
        except Exception as error:
            raise UsageError(f"{self._directory}: events cannot be written: {error}") from error
        self._lines = []
