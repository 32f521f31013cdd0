"""Which detectors need not be asked again: those that said nothing of readings that are as they were. Pure.

A detector is a function of its case. What it asked the case for is noted: one that asked for the time, or for the
application with its other tasks, may speak although nothing of its task was read meanwhile; no other can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent.inventory.model import Inventory
from agent.judging.base import Detector, TaskCase
from agent.layout.profile import Profile

Around = tuple[object, ...]
"""All that a detector of tasks may read of an inventory beside its application."""


class NotedCase(TaskCase):
    """A case that notes whether it was asked for more than its own task, settings and releases."""

    __slots__ = ("is_asked",)
    is_asked: bool


class _Noted:
    """A field whose reading is noted."""

    def __init__(self, slot: Any) -> None:
        self._slot = slot

    def __get__(self, case: NotedCase | None, owner: type) -> Any:
        if case is None:
            return self
        set_asked(case, True)
        return self._slot.__get__(case)

    def __set__(self, case: NotedCase, value: object) -> None:
        self._slot.__set__(case, value)


_ASKED: Any = NotedCase.__dict__["is_asked"]
set_asked: Callable[[NotedCase, bool], None] = _ASKED.__set__
"""Sets whether a case was asked for more: around `__setattr__`, because a case is frozen."""
for _name in ("now_us", "application"):
    setattr(NotedCase, _name, _Noted(getattr(NotedCase, _name)))


def around(inventory: Inventory) -> Around:
    """Give what else of an inventory may decide: where it is, and when something was missed."""
    blind = [(x.started_us, x.ended_us) for x in inventory.blind]
    return inventory.volume, inventory.started_us, inventory.ahead_us, tuple(inventory.slowed), *blind


class Unchanged:
    """Remembers, by task, who is to be asked again while nothing is read."""

    def __init__(self, readings: Mapping[str, int]) -> None:
        """Tell that something was read of a task by `readings`: path -> how often."""
        self._readings = readings
        self._known: dict[str, tuple[int, Around, Profile, tuple[Detector, ...]]] = {}
        self._same: dict[tuple[int, ...], tuple[Detector, ...]] = {}

    def to_ask(self, path: str, known_around: Around, profile: Profile) -> tuple[Detector, ...] | None:
        """Return who is to be asked of a task; None = all."""
        known = self._known.get(path)
        if known is None or known[0] != self._readings.get(path) or known[2] is not profile:
            return None
        return known[3] if known[1] == known_around else None

    def note(
        self, path: str, known_around: Around, profile: Profile, again: Iterable[Detector] | None
    ) -> None:
        """Remember who may speak next time; None = all, because one spoke or something is open."""
        if again is None or path not in self._readings:
            self._known.pop(path, None)
            return
        asked = tuple(again)
        asked = self._same.setdefault(tuple(map(id, asked)), asked)  # ten thousand tasks have the same few
        self._known[path] = self._readings[path], known_around, profile, asked
