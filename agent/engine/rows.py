"""The present state of tasks and stores, worked out once for record, metric and page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agent.contract.events import Severity
from agent.contract.finding import Finding
from agent.inventory.disk import LockState
from agent.inventory.model import Database, Store, Task

Key = tuple[str, str]  # application, task; the task is empty where something concerns the application itself

_HELD = {LockState.HELD: True, LockState.FREE: False}


@dataclass(frozen=True, slots=True)
class StoreRow:
    """One store of a task, its segments taken together; None = unknown."""

    store: str  # its name
    held: bool | None = None  # whether a process has it open
    offset: int | None = None  # changelog offset that the checkpoint, else the store itself, claims
    flushed_puts: int = 0  # highest flushed sequence number of this incarnation
    bytes: int = 0  # live SST bytes
    files: int = 0  # live SST files


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task directory; None = unknown, and the series is absent meanwhile."""

    application_id: str  # application of the task
    task_id: str  # `N_M`, `__NAME__/N_M` or `global`
    held: bool | None = None  # whether a process holds the task (its lock or a store's)
    checkpoint_offset: int | None = None  # largest offset in the checkpoint
    checkpoint_written_at_us: int | None = None  # mtime of the checkpoint
    flushed_puts: int | None = None
    """Sum over stores of the highest flushed sequence number of this incarnation."""
    bytes: int | None = None  # live SST bytes
    incarnation: int | None = None  # number of the directory's incarnation, from 1
    last_seen_at_us: int | None = None
    """When the directory was last seen; None = it is there, see the snapshot's `tasks_seen_at_us`."""
    worst_severity: Severity | None = None  # worst open finding; None = none open
    exists: bool = True
    """False for a directory that is gone: it is not counted, and only when it was last seen is reported."""
    stores: tuple[StoreRow, ...] = ()  # its stores, where they are shown
    since_us: int | None = None  # since when it is held, or free; None = unknown
    checkpoint_problem: str | None = None  # why the checkpoint cannot be read


def is_held(lock: LockState | None) -> bool | None:
    """Return whether a process has a store open; None = unknown."""
    return _HELD.get(lock) if lock else None


def task_row(task: Task, worst: Severity | None, *, with_stores: bool) -> TaskRow:
    """Describe a task that is there, with its worst open finding."""
    checkpoint = task.checkpoint
    since_us = {True: task.held_since_us, False: task.released_us, None: None}[task.held]
    return TaskRow(
        application_id=task.application, task_id=task.id, held=task.held,
        checkpoint_offset=max(checkpoint.offsets.values(), default=None) if checkpoint else None,
        checkpoint_written_at_us=checkpoint.written_us if checkpoint else None,
        flushed_puts=sum(store.puts for store in task.stores.values()), bytes=size_of(task),
        incarnation=task.incarnation, worst_severity=worst, stores=store_rows(task) if with_stores else (),
        since_us=since_us, checkpoint_problem=task.checkpoint_problem,
    )  # fmt: skip


def store_rows(task: Task) -> tuple[StoreRow, ...]:
    """Describe each store of a task that is there."""
    return tuple(_store_row(task, store) for store in task.stores.values() if store.databases)


def _store_row(task: Task, store: Store) -> StoreRow:
    databases = store.databases.values()
    return StoreRow(
        store=store.name,
        held=is_held(store.lock),
        offset=offset_of(task, store.name, databases),
        flushed_puts=store.puts,
        bytes=sum(database.size_bytes for database in databases),
        files=sum(database.files for database in databases),
    )


def offset_of(task: Task, store_name: str, databases: Iterable[Database]) -> int | None:
    """Return the offset that the checkpoint claims for a store, else the highest one that is kept inside."""
    claimed = task.checkpoint.offsets.get(store_name) if task.checkpoint else None
    if claimed is not None:
        return claimed
    inside = (offset for x in databases if x.offsets for _, offset, _ in x.offsets.offsets)
    return max(inside, default=None)


def size_of(task: Task) -> int:
    """Add up the live SST bytes of a task."""
    return sum(database.size_bytes for database in task.databases)


def worst_by_task(findings: Iterable[Finding]) -> dict[Key, Severity]:
    """Return the worst severity of the findings on each task, and on each application itself."""
    worst: dict[Key, Severity] = {}
    for finding in findings:
        key = (finding.application_id, finding.task_id or "")
        if key not in worst or finding.severity.rank > worst[key].rank:
            worst[key] = finding.severity
    return worst
