"""What may have changed without a transition: the next judgement of it asks everyone. Pure."""

from __future__ import annotations

from agent.inventory.model import Application, Inventory
from agent.inventory.observations import CheckpointReading, Observation
from agent.inventory.transitions import Transition


class Unreported:
    """Paths of tasks, and ids of applications."""

    def __init__(self, inventory: Inventory) -> None:
        """Start with nothing."""
        self._inventory = inventory
        self._keys: set[str] = set()

    def after(self, reading: Observation, changes: list[Transition]) -> list[Transition]:
        """Take a reading with the changes that it reported, and return these.

        One that reports nothing may have changed what has no transition: when a store was read, what of it could not
        be, who tried a lock. Of a checkpoint everything that matters is reported.
        """
        if changes or isinstance(reading, CheckpointReading):
            return changes
        application = self._inventory.applications.get(reading.place.application or "")
        if application is not None:
            self._keys.add(application.id)
            if (task := application.tasks.get(reading.place.task or "")) is not None:
                self._keys.add(task.path)
        return changes

    def note_application(self, application: Application) -> None:
        """Note an application, and all its tasks."""
        self._keys.add(application.id)
        self._keys.update(task.path for task in application.tasks.values())

    def note_everything(self) -> None:
        """Note all applications."""
        for application in self._inventory.applications.values():
            self.note_application(application)

    def __contains__(self, key: str) -> bool:
        """Whether a task or application was noted."""
        return key in self._keys

    def forget(self, key: str) -> None:
        """Forget a task or an application: everyone is asked now."""
        self._keys.discard(key)
