"""One reading of a directory: at which time each application is judged, and what was read. No I/O."""

from __future__ import annotations

from dataclasses import replace

from agent.contract.finding import Finding
from agent.contract.names import not_here
from agent.engine.pipeline import Pipeline
from agent.inventory.disk import LockState
from agent.inventory.file_times import SERVED_VOLUMES
from agent.inventory.model import Application, Inventory
from agent.inventory.settings import SettingsBook

JUDGED_AFTER_US = 3_600_000_000
"""What no process works on is judged as if it had been quiet for an hour: rules that wait have waited."""

UNCOMPARED = "file times are the file server's, whose clock one reading cannot compare with this node's"

SETTLE_S = 6.0
"""A deletion removes a file at least every second; after so long without one it is over (`torn-store` asks for 5 s)."""


def judge_once(pipeline: Pipeline, now_us: int) -> list[Finding]:
    """Read everything once and judge it; no reported time is in the future.

    Where a process holds a lock, or a lock could not be asked, the next moment may change everything: judged at now.
    """
    pipeline.ledger.read_once_us = now_us
    pipeline.scan(now_us)
    pipeline.confirm(now_us)
    pipeline.beat(now_us)
    working = _working(pipeline.inventory)
    # all were asked when the tasks had been read: now for those who wait, or whom other tasks concern
    pipeline.summarise(now_us, whom=lambda x: x.id in working)
    pipeline.summarise(now_us + JUDGED_AFTER_US, whom=lambda x: x.id not in working)
    return _findings(pipeline, now_us)


def needs_second_reading(inventory: Inventory) -> bool:
    """Return whether files are missing where a process works: one reading does not show a deletion that goes on."""
    return any(
        store.remains or any(database.missing for database in store.databases.values())
        for application in inventory.applications.values()
        if may_go_on(application)
        for task in application.tasks.values()
        for store in task.stores.values()
    )


def judge_again(pipeline: Pipeline, now_us: int) -> list[Finding]:
    """Read and judge a second time, `SETTLE_S` later."""
    pipeline.reread("", now_us)
    working = _working(pipeline.inventory)
    pipeline.summarise(now_us, whom=lambda application: application.id in working)
    return _findings(pipeline, now_us)


def _findings(pipeline: Pipeline, now_us: int) -> list[Finding]:
    return [
        replace(x, resolved_at_us=now_us) if (x.resolved_at_us or 0) > now_us else x
        for x in pipeline.ledger.findings()
    ]


def _working(inventory: Inventory) -> set[str]:
    """Name the applications on whose directories a process works, or may: asked once, not once per task."""
    return {application.id for application in inventory.applications.values() if may_go_on(application)}


def may_go_on(application: Application) -> bool:
    """Return whether a process works on an application's directory, or may."""
    tasks = application.tasks.values()
    locks = {application.lock, *(task.lock for task in tasks)}
    locks.update(database.lock for task in tasks for database in task.databases)
    known_free = not locks & {LockState.HELD, LockState.UNKNOWN}
    return not known_free or bool(application.processes)


def coverage(inventory: Inventory) -> str:
    """Count what was read, and the stores that were not read to the end."""
    applications = [x for x in inventory.applications.values() if x.exists]
    tasks = [task for x in applications for task in x.tasks.values() if task.exists]
    stores = [store for task in tasks for store in task.stores.values() if store.databases]
    unread = sum(any(x.unread or x.problems for x in store.databases.values()) for store in stores)
    held = sum(bool(task.held) for task in tasks)
    counted = (
        plural(len(applications), "application"),
        plural(len(tasks), "task"),
        plural(len(stores), "store") + (f" ({unread} read only in part)" if unread else ""),
    )
    clock = f"; {UNCOMPARED}" if inventory.volume in SERVED_VOLUMES else ""
    return f"{', '.join(counted)} on disk ({plural(held, 'task') if held else 'no task'} locked by a process){clock}"


def strangers(settings: SettingsBook, inventory: Inventory) -> str | None:
    """Name the applications that a flag or a properties file names and that are not there.

    A settings file may be shared by pods of several applications; a flag and a properties file are for this one.

    Gives a sentence; None = all are there, or nothing is yet.
    """
    there = sorted(x.id for x in inventory.applications.values() if x.exists)
    origins = {name: {x.origin for x in group.values()} for name, group in settings.own.items()}
    named = [name for name, found in origins.items() if found & {"flag", "properties"}]
    by_flag = any("flag" in origins[name] for name in named if name not in there)
    return not_here("--set" if by_flag else "--properties", named, there)


def plural(count: int, word: str) -> str:
    """Write a number of things."""
    return f"{count} {word}{'' if count == 1 else 's'}"
