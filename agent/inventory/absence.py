"""What a restarted agent may still believe of what it remembers. Pure.

Its inventory comes from a baseline; between then and now anything may have happened. An incarnation, a file's time, a
manifest's number and the times in `LOG.old.*` show much of it. Who did it, in which order, and what came and went
does not show: that is forgotten instead of guessed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

from agent.contract.events import Change, Source
from agent.inventory.disk import LockState, Unseen
from agent.inventory.model import (
    PROCESSES_KEPT,
    Application,
    Database,
    Inventory,
    ProcessLife,
    Session,
    Store,
    Task,
)
from agent.inventory.observations import DatabaseReading, Observation, TaskReading
from agent.inventory.recent import recent
from agent.inventory.transitions import Transition
from agent.layout.names import CHECKPOINT_FILE

PROCESS_MARGIN_US = 1_000_000
"""Start times of processes are exact to a clock tick, and to what the wall clock was set by since the boot."""


@dataclass(slots=True)
class _Held:
    """Stores of one application that were held when the agent went away: still so, or opened again."""

    kept: int = 0
    reopened_us: list[int] = field(default_factory=list)


class Eyes(Protocol):
    """Who can read single files."""

    def identity(self, path: str) -> str | None:
        """Read the IDENTITY of a database; None = there is none."""
        ...

    def written_us(self, path: str) -> int | None:
        """Return when a file was written; None = it is not there."""
        ...


class Absence:
    """One walk over everything after a restart."""

    def __init__(self, inventory: Inventory, since_us: int) -> None:
        """Compare with `inventory`, which was right until `since_us`."""
        self._inventory, self._since_us = inventory, since_us
        self._held: dict[str, _Held] = {}

    def prepare(self, reading: Observation, eyes: Eyes) -> None:
        """Forget, before the reading is reduced, what the reading does not bear out."""
        application = self._inventory.applications.get(reading.place.application or "")
        task = application.tasks.get(reading.place.task or "") if application is not None else None
        if isinstance(reading, TaskReading) and task is not None:
            self._prepare_task(task, reading, eyes)
            return
        if not isinstance(reading, DatabaseReading):
            return
        store = task.stores.get(reading.place.store or "") if task is not None else None
        database = store.databases.get(reading.place.segment or "") if store is not None else None
        if application is None or store is None or database is None:
            return
        was_held = database.lock is LockState.HELD
        if reading.identity == database.identity and not (opens := _opens(database, reading)):
            if was_held and reading.lock is LockState.HELD:
                self._of(application).kept += 1
            elif was_held and store.session is not None:
                store.session.release_unseen = True
            return
        if reading.identity == database.identity:
            if was_held and reading.lock is LockState.HELD:
                self._of(application).reopened_us.append(min(opens))
            if not was_held and store.session is None and len(opens) == 1 and reading.lock is LockState.HELD:
                return  # the one session since then is the one that lasts: nothing in between is unknown
            # the first of its segments tells; with the others nothing is left of what was known
            if (left := self._left(task, store, eyes)) is not None:
                store.unwatched, store.unwatched_us = left, min(opens)
                if store.session is not None and len(opens) == 1 and not store.segmented:
                    # with what the process before had flushed ends its manifest, and begins the next
                    flushed = reading.puts if reading.manifest == database.manifest else reading.opened_puts
                    left.puts_at_release = max(store.puts, store.retired_puts + flushed)
        _forget(store, reading.at_us if reading.identity == database.identity else self._since_us)

    def _left(self, task: Task | None, store: Store, eyes: Eyes) -> Session | None:
        """Return the session that left what the first opening in the absence trusted; None = that is not known.

        Of one that lasted when the agent went: a close in order would have written the checkpoint again.

        Source:
            TaskManager.tryCloseCleanAllActiveTasks, StreamTask.postCommit (2.6.0, 3.9.2, 4.2.1).
        """
        if store.session is None:
            return store.sessions[-1] if store.sessions else None
        fact = task.checkpoint if task is not None else None
        if task is None or fact is None or store.keeps_offsets or fact.written_us > self._since_us:
            return None
        if eyes.written_us(f"{task.path}/{CHECKPOINT_FILE}") != fact.written_us:
            return None
        return replace(
            store.session,
            released_us=self._since_us,
            puts_at_release=store.puts,
            final_identities=store.identities,
        )

    def _prepare_task(self, task: Task, reading: TaskReading, eyes: Eyes) -> None:
        if task.exists and _is_another(task, eyes):
            task.inode = 0  # whatever number the directory has, it is not the one that is known
        if reading.unseen is Unseen.VANISHED or (reading.unseen is None and reading.inode != task.inode):
            for each in task.stores.values():
                _forget(each, self._since_us)

    def _of(self, application: Application) -> _Held:
        return self._held.setdefault(application.id, _Held())

    def conclude(self, now_us: int) -> list[Transition]:
        """Return which processes were restarted, as far as stores or visible processes show it."""
        changes: list[Transition] = []
        for application in self._inventory.applications.values():
            life = application.life
            if life is None or life.started_us > self._since_us or application.lock is not LockState.HELD:
                continue
            held = self._held.get(application.id, _Held())
            began = [x.started_at_us for x in application.processes]
            if began and min(began) > self._since_us + PROCESS_MARGIN_US:
                changes += _restart(application, life, min(began), now_us, "its process began meanwhile")
            elif held.reopened_us and not held.kept and not began:
                why = "every store that was held has been opened again"
                changes += _restart(application, life, min(held.reopened_us), now_us, why)
        return changes


def _is_another(task: Task, eyes: Eyes) -> bool:
    """Distinguish a task directory that was recreated from the one that is known, although its inode number came back.

    It is another one if every database that was known has a successor in its place, and the checkpoint that was known
    is not there any more: a deletion that was cut short leaves it.

    Source:
        ext4 and xfs give a freed inode number to the next directory; seen with one task that was wiped and recreated.
    """
    before = task.checkpoint
    if before is not None and eyes.written_us(f"{task.path}/{CHECKPOINT_FILE}") == before.written_us:
        return False
    successors = 0
    for database in task.databases:
        identity = eyes.identity(database.path)
        if identity is not None and (database.unnamed or identity == database.identity):
            return False
        successors += identity is not None
    return successors > 0


def _forget(store: Store, until_us: int) -> None:
    """Forget who held a store until then: the next session is not the successor of any that is known."""
    store.sessions = ()
    store.free_seen = False
    store.forgotten_us = until_us


def _opens(database: Database, reading: DatabaseReading) -> list[int]:
    """Times of the opens since the inventory was right; an open that left no old log has none, so the reading's own."""
    opens = [x for x in reading.reopened_us if x not in database.reopened_us]
    moved_on = reading.manifest is not None and reading.manifest != database.manifest
    return opens or ([reading.at_us] if moved_on else [])


def _restart(
    application: Application, life: ProcessLife, at_us: int, now_us: int, why: str
) -> list[Transition]:
    life.ended_us = at_us
    application.lives = recent(application.lives, ProcessLife(at_us), PROCESSES_KEPT)
    application.lock_since_us = at_us
    facts = {"detail": f"while the agent was away: {why}", "occurred_at_us": at_us}
    return [
        Transition(change, now_us, Source.BASELINE, application.id, facts=facts)
        for change in (Change.PROCESS_ENDED, Change.PROCESS_STARTED)
    ]
