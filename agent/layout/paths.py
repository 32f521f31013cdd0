"""Relative path -> `StatePath`: which application, task, store and segment a path belongs to, and its role.

A total function: an unknown shape is a role (`OTHER`), never an exception. It reads names only; what is
really there is the observation's business.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from agent.layout import names


class PathRole(StrEnum):
    """What a path is for. Directories first, then files."""

    STATE_DIRECTORY = "state-directory"
    APPLICATION = "application"
    TOPOLOGY = "topology"
    TASK = "task"
    STORES = "stores"
    STORE = "store"
    SEGMENTED_STORE = "segmented-store"
    SEGMENT = "segment"

    APPLICATION_LOCK = "application-lock"
    PROCESS_FILE = "process-file"
    TASK_LOCK = "task-lock"
    CHECKPOINT = "checkpoint"
    STORE_CHECKPOINT = "store-checkpoint"
    POSITION = "position"
    TEMPORARY = "temporary"
    STORE_LOCK = "store-lock"
    IDENTITY = "identity"
    CURRENT = "current"
    MANIFEST = "manifest"
    OPTIONS = "options"
    SST = "sst"
    BLOB = "blob"
    WAL = "wal"
    INFO_LOG = "info-log"
    OTHER = "other"


DATABASE_ROLES = frozenset({PathRole.STORE, PathRole.SEGMENT})
"""Directories that hold one RocksDB each."""


@dataclass(frozen=True, slots=True)
class StatePath:
    """A classified path."""

    path: str  # relative to the state directory, `/`-separated, no leading slash; empty = the root itself
    role: PathRole  # what it is for
    application: str | None = None  # application id; None above application level
    task: str | None = None  # `N_M`, `__NAME__/N_M` or `global`; None above task level
    store: str | None = None  # store name; None above store level
    segment: str | None = None  # directory name of the segment; None for a key-value store

    @property
    def name(self) -> str:
        """Last component of the path."""
        return self.path.rpartition("/")[2]

    @property
    def database(self) -> str | None:
        """Path of the RocksDB directory that this path is or is in; None if there is none."""
        if self.role in DATABASE_ROLES:
            return self.path
        if self.role in _DATABASE_FILES:
            return self.path.rpartition("/")[0]
        return None

    @property
    def task_path(self) -> str | None:
        """Path of the task directory; None above task level."""
        return None if self.task is None else f"{self.application}/{self.task}"


_DATABASE_FILES = frozenset(
    {
        PathRole.STORE_LOCK,
        PathRole.IDENTITY,
        PathRole.CURRENT,
        PathRole.MANIFEST,
        PathRole.OPTIONS,
        PathRole.SST,
        PathRole.BLOB,
        PathRole.WAL,
        PathRole.INFO_LOG,
    }
)


def join(directory: str, name: str) -> str:
    """Join a path relative to the state directory, where "" is the state directory itself."""
    return f"{directory}/{name}" if directory else name


@lru_cache(maxsize=4096)  # the same few names are announced again and again; about 2 MiB when full
def classify(path: str) -> StatePath:
    """Classify a path relative to the state directory; may hold any characters (surrogate escapes), never raises."""
    if not path:
        return StatePath("", PathRole.STATE_DIRECTORY)
    head, *rest = path.split("/")
    application = sys.intern(head)
    if names.OF_THE_VOLUME.fullmatch(application):
        return StatePath(path, PathRole.OTHER)
    if not rest:
        return StatePath(path, PathRole.APPLICATION, application)
    if names.TOPOLOGY_DIRECTORY.fullmatch(rest[0]):
        if len(rest) == 1:
            return StatePath(path, PathRole.TOPOLOGY, application)
        if not names.TASK_DIRECTORY.fullmatch(rest[1]):
            return StatePath(path, PathRole.OTHER, application)
        return _in_task(path, application, f"{rest[0]}/{rest[1]}", rest[2:])
    if names.TASK_DIRECTORY.fullmatch(rest[0]) or rest[0] == names.GLOBAL_DIRECTORY:
        return _in_task(path, application, rest[0], rest[1:])
    if len(rest) == 1 and rest[0] == names.LOCK_FILE:
        return StatePath(path, PathRole.APPLICATION_LOCK, application)
    if len(rest) == 1 and rest[0] == names.PROCESS_FILE:
        return StatePath(path, PathRole.PROCESS_FILE, application)
    return StatePath(path, PathRole.OTHER, application)


def _in_task(path: str, application: str, task: str, rest: list[str]) -> StatePath:
    if not rest:
        return StatePath(path, PathRole.TASK, application, task)
    head = sys.intern(rest[0])
    if head == names.ROCKSDB_DIRECTORY:
        if len(rest) == 1:
            return StatePath(path, PathRole.STORES, application, task)
        if len(rest) == 2:
            return StatePath(path, PathRole.STORE, application, task, sys.intern(rest[1]))
        role = _database_file(rest[2]) if len(rest) == 3 else PathRole.OTHER
        return StatePath(path, role, application, task, sys.intern(rest[1]))
    if len(rest) == 1:
        return StatePath(path, _task_file(head), application, task, _named_store(head))
    segment = rest[1]
    if segment.startswith(head) and names.SEGMENT_SUFFIX.fullmatch(segment[len(head) :]):
        if len(rest) == 2:
            return StatePath(path, PathRole.SEGMENT, application, task, head, segment)
        role = _database_file(rest[2]) if len(rest) == 3 else PathRole.OTHER
        return StatePath(path, role, application, task, head, segment)
    return StatePath(path, PathRole.OTHER, application, task, head)


def _task_file(name: str) -> PathRole:
    if name == names.LOCK_FILE:
        return PathRole.TASK_LOCK
    if name == names.CHECKPOINT_FILE:
        return PathRole.CHECKPOINT
    if name.endswith(names.TEMP_SUFFIX):
        return PathRole.TEMPORARY
    if name.startswith(names.CHECKPOINT_PREFIX):
        return PathRole.STORE_CHECKPOINT
    if name.endswith(names.POSITION_SUFFIX):
        return PathRole.POSITION
    # A directory directly below the task is a windowed, session or custom store; a plain file is foreign.
    return PathRole.SEGMENTED_STORE


def _named_store(name: str) -> str | None:
    role = _task_file(name)
    if role is PathRole.STORE_CHECKPOINT:
        return name[len(names.CHECKPOINT_PREFIX) :]
    if role is PathRole.POSITION:
        return name[: -len(names.POSITION_SUFFIX)]
    return name if role is PathRole.SEGMENTED_STORE else None


def _database_file(name: str) -> PathRole:
    fixed = _DATABASE_NAMES.get(name)
    if fixed is not None:
        return fixed
    if name.endswith(".sst") and names.SST_FILE.fullmatch(name):
        return PathRole.SST
    for pattern, role in _DATABASE_PATTERNS:
        if pattern.fullmatch(name):
            return role
    return PathRole.OTHER


_DATABASE_NAMES = {
    names.STORE_LOCK_FILE: PathRole.STORE_LOCK,
    names.IDENTITY_FILE: PathRole.IDENTITY,
    names.CURRENT_FILE: PathRole.CURRENT,
    names.INFO_LOG_FILE: PathRole.INFO_LOG,
}
_DATABASE_PATTERNS = (
    (names.MANIFEST_FILE, PathRole.MANIFEST),
    (names.OPTIONS_FILE, PathRole.OPTIONS),
    (names.WAL_FILE, PathRole.WAL),
    (names.BLOB_FILE, PathRole.BLOB),
    (names.OLD_INFO_LOG_FILE, PathRole.INFO_LOG),
)
