"""Of which stores a digest is to be made: those that were closed in order, the newest close first. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from agent.inventory.disk import LockState
from agent.inventory.model import Application, Inventory, Store, Task
from agent.inventory.sessions import stored_offset

KEPT = 64
"""Closes that wait. One more, and the oldest is left out: the newest says most of how the application ended."""

SETTLES_US = 2_000_000
"""How long a store stays closed before its digest is started: a restart of a thread opens it within that, and up to
2.1 the checkpoint is written after the lock was let go."""

Key = tuple[str, str, str]
"""Application, task, store."""


class Outcome(StrEnum):
    """What became of a close."""

    MADE = "made"
    OVERTAKEN = "overtaken"  # the store was opened again, or deleted
    LEFT_OUT = "left-out"  # too many were waiting, or the agent stopped
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Close:
    """A store that no process holds, after an orderly close."""

    key: Key
    content: tuple[frozenset[str], int]
    """Identities of its databases and its offset: the same means the same entries."""
    at_us: int


class Closes:
    """Knows which digests are to be made, and counts what becomes of them."""

    def __init__(self) -> None:
        """Begin with none."""
        self.outcomes: Counter[Outcome] = Counter()
        self.current: Close | None = None
        """The one whose digest is being made."""
        self._waiting: dict[Key, Close] = {}
        self._done: dict[tuple[str, str], dict[str, tuple[frozenset[str], int]]] = {}

    def __len__(self) -> int:
        """Return how many are to be made, the current one included."""
        return len(self._waiting) + (self.current is not None)

    def see(self, inventory: Inventory, application_id: str, task_id: str = "") -> None:
        """Read a task, or all tasks of an application, and take in what is closed or is not any more."""
        application = inventory.applications.get(application_id)
        tasks = application.tasks if application is not None else {}
        seen = {x.key: x for task in tasks.values() if task_id in ("", task.id) for x in closes_of(task)}
        known = [*self._waiting, *([self.current.key] if self.current else [])]
        gone = {x for x in known if x[0] == application_id and task_id in ("", x[1])} - seen.keys()
        for key in gone:
            self._forget(key)
        for close in sorted(seen.values(), key=lambda x: x.at_us):
            self._take(close)
        for place in [x for x in self._done if x[0] == application_id and not _exists(application, x[1])]:
            del self._done[place]

    def next(self, now_us: int) -> Close | None:
        """Begin with the newest close that has settled; None = there is none, or one is being made."""
        settled = [x for x in self._waiting.values() if x.at_us + SETTLES_US <= now_us]
        if self.current is not None or not settled:
            return None
        self.current = max(settled, key=lambda x: x.at_us)
        del self._waiting[self.current.key]
        self._mark_done(self.current)
        return self.current

    def end(self, outcome: Outcome) -> None:
        """Count what became of the current one."""
        self.outcomes[outcome] += 1
        self.current = None

    def leave_out(self) -> int:
        """Leave out all that is to be made; return how many."""
        number = len(self)
        self.outcomes[Outcome.LEFT_OUT] += number
        self.current, self._waiting = None, {}
        return number

    def _take(self, close: Close) -> None:
        current, before = self.current, self._waiting.pop(close.key, None)
        if current is not None and current.key == close.key and current.content != close.content:
            self._forget(close.key)  # it was opened and closed again between two readings
        if self._done.get(close.key[:2], {}).get(close.key[2]) == close.content:
            return
        if before is not None and before.content != close.content:
            self.outcomes[Outcome.OVERTAKEN] += 1
        self._waiting[close.key] = close
        if len(self._waiting) > KEPT:
            oldest = min(self._waiting.values(), key=lambda x: x.at_us)
            del self._waiting[oldest.key]
            self._mark_done(oldest)
            self.outcomes[Outcome.LEFT_OUT] += 1

    def _forget(self, key: Key) -> None:
        self._waiting.pop(key, None)
        if self.current is not None and self.current.key == key:
            self.current = None
            self._done.get(key[:2], {}).pop(key[2], None)  # no digest of this content was made
        self.outcomes[Outcome.OVERTAKEN] += 1

    def _mark_done(self, close: Close) -> None:
        application, task, store = close.key
        self._done.setdefault((application, task), {})[store] = close.content


def closes_of(task: Task) -> list[Close]:
    """List the stores of a task that were closed in order and that no process holds."""
    if not task.exists or task.is_global or task.lock is LockState.HELD:
        return []
    return [close for store in task.stores.values() if (close := _close_of(task, store)) is not None]


def _close_of(task: Task, store: Store) -> Close | None:
    session = store.sessions[-1] if store.sessions else None
    if session is None or session.released_us is None or store.lock is not LockState.FREE:
        return None
    # not known: too short, or a source topic stands in for the changelog; the files themselves decide then
    if session.closed is False or session.closed_with_offset is False:
        return None
    offset = stored_offset(store) if store.keeps_offsets else _checkpointed(task, store)
    identities = [x.identity for x in store.databases.values()]
    if offset is None or offset < 0 or not identities or None in identities:
        return None
    return Close((task.application, task.id, store.name), (store.identities, offset), session.released_us)


def _checkpointed(task: Task, store: Store) -> int | None:
    return task.checkpoint.offsets.get(store.name) if task.checkpoint is not None else None


def _exists(application: Application | None, task_id: str) -> bool:
    task = application.tasks.get(task_id) if application is not None else None
    return task is not None and task.exists
