"""The background thread of a process that deletes obsolete task directories."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.scenario_app import App


class Cleaner:
    """The background thread of a process that deletes obsolete task directories."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.world = app.world
        self._locked: str | None = None

    def probes(self, task_id: str) -> None:
        """Up to 2.8 each tick takes and frees the lock of each unowned directory, however young."""
        if self.app.habits.task_lock:
            path = f"{self.app.run.task(task_id).path}/.lock"
            self.world.lock(path)
            self.world.unlock(path)

    def deletes(self, task_id: str, *, stop_after: str | None = None) -> None:
        """Delete a directory that nobody holds; `stop_after`: the deletion hangs there, for a kill to tear it."""
        task = self.app.run.task(task_id)
        habits = self.app.habits
        lock = f"{task.path}/.lock"
        if habits.task_lock:
            self.world.lock(lock)
            self._locked = lock
        keep = [".lock"] if habits.cleaner_keeps_lock_file else []
        if not self.app.delete_tree(task.path, stop_after, keep=keep):
            return
        task.databases.clear()
        if habits.task_lock:
            self.world.unlock(lock, nameless=not self.world.has(lock))
        self._locked = None

    def dies(self) -> None:
        """Its process was killed: a lock that it held goes."""
        if self._locked is not None and self.world.has(self._locked):
            self.world.play("unlock", self._locked)
        self._locked = None
