"""Which stores a state directory has, where their databases are, and which changelog is theirs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agent.engine.listing import LINK
from agent.errors import CheckpointFormatError, UnreadError
from agent.layout import names
from agent.layout.checkpoint import MAX_CHECKPOINT_BYTES, OffsetEntry, parse_checkpoint
from agent.layout.names import CHANGELOG_SUFFIX
from agent.layout.paths import PathRole, classify


@dataclass(frozen=True, slots=True)
class Store:
    """One store of one task."""

    application: str
    task: str  # `0_1` or `__NAME__/0_1`
    name: str
    directory: Path
    segments: dict[int, Path] = field(default_factory=dict)
    """Start of each segment, ms -> its directory; empty for a store of one database."""
    database: Path | None = None  # directory of that one; None for a store of segments
    has_process_file: bool = True
    """Whether a release from 2.6.2 on was here: its checkpoints name the last offset applied."""

    @property
    def is_global(self) -> bool:
        """Whether it has every partition of its topic, which is a topic that the application names."""
        return self.task == names.GLOBAL_DIRECTORY

    @property
    def path(self) -> str:
        """Application, task and name, as people write them."""
        return f"{self.application}/{self.task}/{self.name}"

    @property
    def databases(self) -> dict[int, Path]:
        """Segment -> directory; segment 0 for a store of one database."""
        return self.segments if self.database is None else {0: self.database}

    @property
    def partition(self) -> int:
        """Partition of the changelog; a global store has no single one."""
        return int(self.task.rpartition("_")[2])

    @property
    def changelog(self) -> str:
        """Name that Kafka Streams gives the changelog (a named topology puts its name before the store's)."""
        topology, slash, _ = self.task.rpartition("/")
        named = f"{topology.strip('_')}-" if slash else ""
        return f"{self.application}-{named}{self.name}{CHANGELOG_SUFFIX}"

    def checkpointed(self) -> dict[tuple[str, int], int]:
        """Read the task's checkpoint: topic and partition -> offset of the last record that is surely applied.

        Raises `UnreadError`: it is there and cannot be read.
        """
        path = self.directory / names.CHECKPOINT_FILE
        try:
            with path.open("rb") as file:
                entries = parse_checkpoint(file.read(MAX_CHECKPOINT_BYTES))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise UnreadError(f"{path}: {error.strerror}") from error
        except CheckpointFormatError as error:
            raise UnreadError(f"{path}: {error}") from error
        return {(x.topic, x.partition): self._applied(x) for x in entries}

    def _applied(self, entry: OffsetEntry) -> int:
        """Up to 2.5, and of global stores always, an entry is the next offset; one less is true of both."""
        is_last = self.has_process_file and not self.is_global
        return entry.offset if is_last or entry.offset < 0 else entry.offset - 1


def find_stores(
    state_dir: Path, *, application: str | None = None, task: str | None = None, name: str | None = None
) -> list[Store]:
    """List the stores below a state directory, by application, task and name; the global ones come last."""
    found = []
    for app in _directories(state_dir, application):
        has_process_file = (state_dir / app / names.PROCESS_FILE).exists()
        for found_task in _tasks(state_dir, app):
            if task in (None, found_task):
                stores = _stores(state_dir, app, found_task, has_process_file=has_process_file)
                found += [store for store in stores if name in (None, store.name)]
    return sorted(found, key=lambda x: (x.is_global, x.application, x.task, x.name))


def _tasks(state_dir: Path, application: str) -> Iterator[str]:
    for child in _directories(state_dir / application):
        role = classify(f"{application}/{child}").role
        if role is PathRole.TASK:
            yield child
        elif role is PathRole.TOPOLOGY:
            for inner in _directories(state_dir / application / child):
                if classify(f"{application}/{child}/{inner}").role is PathRole.TASK:
                    yield f"{child}/{inner}"


def _stores(state_dir: Path, application: str, task: str, *, has_process_file: bool) -> Iterator[Store]:
    directory = state_dir / application / task
    for child in _directories(directory):
        if child == names.ROCKSDB_DIRECTORY:
            for name in _directories(directory / child):
                path = directory / child / name
                yield Store(application, task, name, directory, {}, path, has_process_file)
            continue
        segments = {}
        for inner in _directories(directory / child):
            place = classify(f"{application}/{task}/{child}/{inner}")
            if place.role is PathRole.SEGMENT:
                segments[int(inner[len(child) + 1 :])] = directory / child / inner
        yield Store(application, task, child, directory, segments, None, has_process_file)


def _directories(path: Path, only: str | None = None) -> list[str]:
    """Names of directories in a directory, or the one of that name; none where it is gone.

    Raises `UnreadError`: it may not be read, or has a link, which is not followed.
    """
    try:
        with os.scandir(path) as entries:
            asked = [entry for entry in entries if only in (None, entry.name)]
            for entry in asked:
                if entry.is_symlink():
                    raise UnreadError(f"{path / entry.name}{LINK[1]}")
            return sorted(entry.name for entry in asked if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UnreadError(f"{path}: {error.strerror}") from error
