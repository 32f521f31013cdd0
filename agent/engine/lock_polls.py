"""Polling of locks: they make no notification, so the agent has to ask. Asks little, in turn, and never takes one."""

from __future__ import annotations

from collections.abc import Callable

from agent.contract.events import Source
from agent.inventory.disk import LockState
from agent.inventory.model import Application, Inventory, Task
from agent.inventory.transitions import Transition
from agent.layout import names
from agent.layout.paths import StatePath, classify
from agent.observe.observer import Observer

LOCK_POLL_US = 250_000
"""Short enough for everything but a hand-off within one process (docs/state-format.md#lock-poll)."""

SLOW_POLL_US = 5_000_000
LOCKS_PER_POLL = 64
LIST_US = 1_000_000
"""How often held tasks are listed: with ten thousand of them a list costs a millisecond; only after a change."""

ReadApplication = Callable[[StatePath, int, Source], list[Transition]]
ReadTask = Callable[[Task, int, Source], list[Transition]]


class LockPolls:
    """Asks for one lock per application that shows its process, and for all others in turn."""

    def __init__(
        self,
        inventory: Inventory,
        observer: Observer,
        read_application: ReadApplication,
        read_task: ReadTask,
        started_us: int,
    ) -> None:
        self._inventory, self._observer = inventory, observer
        self._read_application, self._read_task = read_application, read_task
        self._poll_at_us = started_us + LOCK_POLL_US
        self.slow_poll_us = started_us + SLOW_POLL_US
        # the rest of a round, last first: a list of all tasks for each poll costs more than the polling
        self._in_turn: list[Task] = []
        self._held: dict[str, list[Task]] = {}
        self._list_at_us = self._listed_us = 0

    @property
    def next_us(self) -> int:
        """When the next poll is due."""
        return min(self._poll_at_us, self.slow_poll_us)

    def shift(self, by_us: int) -> None:
        """Move every time: the clock was set."""
        self._poll_at_us += by_us
        self._list_at_us = self._listed_us = 0
        self.slow_poll_us += by_us

    def poll(self, now_us: int) -> list[Transition]:
        """Poll what is due; read what changed."""
        changes: list[Transition] = []
        if now_us >= self._poll_at_us:
            self._poll_at_us = now_us + LOCK_POLL_US
            changes += self._ask_all(now_us)
        if now_us >= self.slow_poll_us:
            self.slow_poll_us = now_us + SLOW_POLL_US
            changes += self._ask_in_turn(now_us)
        return changes

    def pass_over(self, until_us: int) -> None:
        """Leave out the frequent polls before a time, on a disk that does not change: they find what the last found.

        A task may have become held since the tasks were listed; then nothing is left out before the next list.
        """
        late_us = until_us - 1 - self._poll_at_us
        active_us = (x.last_activity_us for x in self._inventory.applications.values())
        if late_us < 0 or max(active_us, default=0) >= self._listed_us:
            return
        last_us = until_us - 1 - late_us % LOCK_POLL_US
        self._poll_at_us = last_us + LOCK_POLL_US
        if last_us >= self._list_at_us:
            self._listed_us = last_us - (last_us - self._list_at_us) % LIST_US
            self._list_at_us = self._listed_us + LIST_US

    def ask_application(
        self, application: Application, now_us: int, source: Source = Source.TIMER
    ) -> list[Transition]:
        """Ask whether the application's process still holds its lock."""
        path = f"{application.id}/{names.LOCK_FILE}"
        if self._observer.ask_lock(path) is application.lock:
            return []
        return self._read_application(classify(path), now_us, source)

    def _ask_all(self, now_us: int) -> list[Transition]:
        """Without an application lock (up to 2.6.1) every held task shows its own process."""
        changes: list[Transition] = []
        if now_us >= self._list_at_us:
            self._list_at_us = now_us + LIST_US
            for application in self._inventory.applications.values():
                if not application.lock_ever_held and application.last_activity_us >= self._listed_us:
                    held = [task for task in application.tasks.values() if task.held]
                    self._held[application.id] = held[:LOCKS_PER_POLL]
            self._listed_us = now_us
        for application in self._inventory.applications.values():
            if not application.exists:
                continue
            if application.lock_ever_held:
                changes += self.ask_application(application, now_us)
            else:
                for task in self._held.get(application.id, ()):
                    changes += self._ask(task, now_us)
        return changes

    def _ask_in_turn(self, now_us: int) -> list[Transition]:
        """Ask for a bounded number of locks, of every store in turn, so that each is found in the end."""
        changes: list[Transition] = []
        asked = 0
        is_new_round = False
        while asked < LOCKS_PER_POLL:
            if not self._in_turn:
                if is_new_round:
                    break  # all were asked: so few are they
                is_new_round = True
                self._in_turn = [t for a in self._inventory.applications.values() for t in a.tasks.values()]
                self._in_turn.reverse()
                continue
            task = self._in_turn.pop()
            if task.exists:
                asked += self._ask_every_lock(task, now_us, changes)
        return changes

    def _ask_every_lock(self, task: Task, now_us: int, changes: list[Transition]) -> int:
        """Ask for the lock of a task and of each of its stores; returns how many were asked for."""
        known: list[tuple[str, LockState | None]] = []
        if task.lock is not None:
            known.append((f"{task.path}/{names.LOCK_FILE}", task.lock))
        known += [(f"{x.path}/{names.STORE_LOCK_FILE}", x.lock) for x in task.databases]
        for path, before in known:
            lock = self._observer.ask_lock(path)
            if lock is not LockState.UNKNOWN and lock is not before:
                changes += self._read_task(task, now_us, Source.TIMER)
                break
        return len(known)

    def _ask(self, task: Task, now_us: int) -> list[Transition]:
        path = _sentinel(task)
        if path is None:
            return []
        lock = self._observer.ask_lock(path)
        if lock is LockState.UNKNOWN or (lock is LockState.HELD) == bool(task.held):
            return []
        return self._read_task(task, now_us, Source.TIMER)


def _sentinel(task: Task) -> str | None:
    """The lock that shows who holds a task: its own `.lock` where it has one, else the LOCK of a store."""
    if task.lock is not None:
        return f"{task.path}/{names.LOCK_FILE}"
    return next((f"{x.path}/{names.STORE_LOCK_FILE}" for x in task.databases), None)
