"""The directory sink: gzip JSON lines in a folder per pod; also the right choice for a shared volume."""

from __future__ import annotations

import os
from pathlib import Path

from agent.delivery import ShipSettings, Target
from agent.errors import ConfigError, RetryableShipError
from agent.ship.home import is_inside
from agent.ship.sinks.base import SUFFIX, packed, require_same


class DirectorySink:
    """Writes `<directory>/<pod uid>/<boot>-<first>-<last>.jsonl.gz`; readers see whole files only."""

    def __init__(self, directory: Path, state_directory: Path | None = None) -> None:
        """Remember where; folders are made when the first segment comes.

        `state_directory`: what is audited; the sink must not lie in it. Raises `ConfigError`: it does.
        """
        if state_directory is not None and is_inside(directory, state_directory):
            raise ConfigError(
                f"sink directory {directory} is inside the state directory {state_directory}, where the agent "
                "never writes; give it a directory elsewhere"
            )
        self._directory = directory

    def put(self, name: str, payload: bytes) -> None:
        """Write a segment durably under its name; see `Sink.put`.

        Raises `RetryableShipError`: the file system refuses, for whatever reason: an operator fixes those. Raises
        `PermanentShipError`: another content has this name already.
        """
        path = self._directory / f"{name}{SUFFIX}"
        try:
            if path.exists():
                require_same(path.read_bytes(), payload, path)
            else:
                self._write(path, payload)
        except OSError as error:
            raise RetryableShipError(f"cannot write {path}: {error.strerror or error}") from error

    def _write(self, path: Path, payload: bytes) -> None:
        folder = path.parent
        folder.mkdir(parents=True, exist_ok=True)
        # one writer per name, so a leftover of a killed attempt is simply overwritten
        temporary = folder / f".{path.name}.tmp"
        with temporary.open("wb") as file:
            file.write(packed(payload))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_directory(folder)
        sync_directory(self._directory)


def make(target: Target, settings: ShipSettings, state_directory: Path | None) -> DirectorySink:
    """Make the sink of a target; see `Make`."""
    return DirectorySink(Path(target.url), state_directory)


def sync_directory(directory: Path) -> None:
    """Make names in a directory durable. Raises `OSError`: the disk refuses."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
