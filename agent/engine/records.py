"""Inventory values -> bodies of contract records."""

from __future__ import annotations

from agent.contract.events import Source
from agent.engine.disabled import Disabled, setting_rows
from agent.engine.rows import is_held, offset_of, size_of
from agent.inventory.model import Application, Database, Inventory, Store, Task
from agent.inventory.settings import KEYS, ApplicationSettings
from agent.inventory.transitions import Transition
from agent.layout import names
from agent.layout.profile import Profile
from agent.layout.releases import ReleaseRange
from agent.quantities.flushed import unsaved_puts


def transition_body(application: Application, change: Transition) -> dict[str, object]:
    """Body of a `transition` record."""
    return {
        "application_id": change.application, "process_id": application.process_id, "task_id": change.task,
        "store": change.store, "segment": change.segment, "source": change.source.value,
        "change": change.change.value, **{name: _plain(fact) for name, fact in change.facts.items()},
    }  # fmt: skip


def _plain(fact: object) -> object:
    """Of a checkpoint's entries make rows: only here, since a walk at the start gathers ten thousand transitions."""
    if not isinstance(fact, tuple):
        return fact
    return [{"topic": x.topic, "partition": x.partition, "offset": x.offset} for x in fact]


def summary_body(application: Application, task: Task, profile: Profile) -> dict[str, object]:
    """Body of a `summary` record: the present state of a task."""
    checkpoint = task.checkpoint
    rows = [
        _store_row(task, store, database) | {"unsaved_puts": unsaved_puts(store, profile)}
        for store in task.stores.values()
        for database in store.databases.values()
    ]
    return {
        "application_id": application.id, "process_id": application.process_id, "task_id": task.id,
        "source": Source.TIMER.value, "task_incarnation": task.incarnation, "held": task.held,
        "bytes": size_of(task), "checkpoint_written_at_us": checkpoint.written_us if checkpoint else None,
        "stores": rows, "offsets": _offset_rows(application, task),
    }  # fmt: skip


def _store_row(task: Task, store: Store, database: Database) -> dict[str, object]:
    status = database.offsets.status if database.offsets else None
    return {
        "store": store.name, "segment": database.segment, "identity": database.identity,
        "held": is_held(database.lock), "puts": database.puts, "bytes": database.size_bytes,
        "files": database.files, "entries_low": database.entries_low, "entries_high": database.entries_high,
        "offset": offset_of(task, store.name, (database,)),
        "status": None if status is None else ("open" if status else "closed"),
    }  # fmt: skip


def _offset_rows(application: Application, task: Task) -> list[dict[str, object]]:
    checkpoint = task.checkpoint
    if checkpoint is None:
        return []
    partition = task.partition or 0
    return [
        {"topic": f"{application.id}-{name}{names.CHANGELOG_SUFFIX}", "partition": partition, "offset": offset}
        for name, offset in checkpoint.offsets.items()
    ]  # fmt: skip


def configuration_body(
    application: Application, settings: ApplicationSettings, releases: ReleaseRange, disabled: Disabled
) -> dict[str, object]:
    """Body of a `configuration` record: effective settings, each with its origin, and disabled detectors."""
    effective = settings.effective()
    found = [(key.name, effective.get(key.name)) for key in KEYS]
    rows: list[dict[str, object]] = [
        {"key": name, "value": x.value if x else None, "origin": x.origin if x else "unset"}
        for name, x in found
    ]
    return {
        "application_id": application.id, "process_id": application.process_id,
        "settings": rows + setting_rows(disabled),
        "release_low": str(releases.low) if releases.low else None,
        "release_high": str(releases.high) if releases.high else None,
    }  # fmt: skip


def heartbeat_body(inventory: Inventory, since_us: int) -> dict[str, object]:
    """Body of a `heartbeat` record: what is watched, and the blind intervals since the last one."""
    blind = [
        {"from_us": x.started_us, "to_us": x.ended_us, "cause": x.cause, "application_id": x.application,
         "task_id": x.task}
        for x in inventory.blind if x.ended_us is None or x.ended_us >= since_us
    ]  # fmt: skip
    applications = sorted(x.id for x in inventory.applications.values() if x.exists)
    tasks = sum(t.exists for a in inventory.applications.values() for t in a.tasks.values())
    return {"blind": blind, "applications": applications, "tasks": tasks}
