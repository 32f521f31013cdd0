"""Applications that no process has used for a month: whole directories that are left over. Pure.

ksqlDB and renamed applications leave them. Kafka Streams never removes the directory of another application.id.
"""

from __future__ import annotations

from agent.contract.wording import named
from agent.engine.rows import size_of
from agent.inventory.disk import LockState
from agent.inventory.model import Application, Inventory

UNUSED_US = 30 * 86_400_000_000
"""Longer than any stop that is planned; what is in a state directory by then is restored from its changelog anyway."""

_MAY_BE_HELD = (LockState.HELD, LockState.UNKNOWN)
_MIB = 1024 * 1024


def unused(inventory: Inventory, now_us: int) -> str:
    """Say which applications are unused, and how much they take; empty = none is."""
    found = [x for x in inventory.applications.values() if x.exists and _is_unused(x, now_us)]
    if not found:
        return ""
    size = sum(size_of(task) for x in found for task in x.tasks.values() if task.exists)
    one = len(found) == 1
    return (
        f"{len(found)} application{'' if one else 's'} unused for {UNUSED_US // 86_400_000_000} days,"
        f" {size / _MIB:.0f} MiB: {named(sorted(x.id for x in found))}"
    )


def _is_unused(application: Application, now_us: int) -> bool:
    tasks = [task for task in application.tasks.values() if task.exists]
    if application.lock in _MAY_BE_HELD or application.processes or any(task.held for task in tasks):
        return False
    written = (task.checkpoint.written_us for task in tasks if task.checkpoint is not None)
    opened = (
        x.options_written_us for task in tasks for s in task.stores.values() for x in s.databases.values()
    )
    newest_us = max((application.mtime_us, *(task.mtime_us for task in tasks), *written, *opened))
    return 0 < newest_us < now_us - UNUSED_US
