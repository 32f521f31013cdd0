"""Which detectors need not be asked again: those that said nothing of readings that are as they were. Pure.

A detector is a function of its case. What it asked the case for is noted: one that asked for the time, or for the
application with its other tasks, may speak although nothing of its task was read meanwhile; no other can. And one that
asked neither for releases nor for a setting that possible worlds differ in says nothing in any of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from agent.inventory.model import Inventory
from agent.inventory.settings import Setting
from agent.judging.base import DetectorMeta, TaskCase
from agent.judging.decision import ASKED
from agent.layout.profile import Profile

Around = tuple[object, ...]
"""All that a detector of tasks may read of an inventory beside its application."""

MORE, RELEASES, SETTINGS = 1, 2, 4
"""What a case was asked for: the time, or the application with its other tasks; releases; settings that worlds try."""
ALL = MORE | RELEASES | SETTINGS


class NotedSettings(Mapping[str, Setting]):
    """Settings of a `NotedCase`, which note what it is asked for, in `asked_for`."""

    def __init__(self, values: Mapping[str, Setting]) -> None:
        self._values = values
        self.asked_for = 0

    def __getitem__(self, name: str) -> Setting:
        """Read one."""
        self.asked_for |= SETTINGS if name in ASKED else 0
        return self._values[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Read one that may not be there."""
        self.asked_for |= SETTINGS if name in ASKED else 0
        return self._values.get(name, default)

    def __iter__(self) -> Iterator[str]:
        """Read all."""
        self.asked_for |= SETTINGS
        return iter(self._values)

    def __len__(self) -> int:
        """Count them."""
        self.asked_for |= SETTINGS
        return len(self._values)


class NotedCase(TaskCase):
    """A case whose settings note whether it was asked for more than its own task."""

    __slots__ = ()

    def is_silent(self, meta: DetectorMeta) -> bool:
        """Return whether a detector says nothing here; no note, because who is silent is found anew in each world."""
        noted: Any = self.settings.values
        before = noted.asked_for
        answer = meta.is_silent(self.settings, self.profile)
        noted.asked_for = before
        return answer


class _Noted:
    """A field whose reading is noted."""

    def __init__(self, slot: Any, note: int) -> None:
        self._slot, self._note = slot, note

    def __get__(self, case: NotedCase | None, owner: type) -> Any:
        if case is None:
            return self
        noted: Any = case.settings.values
        noted.asked_for |= self._note
        return self._slot.__get__(case)

    def __set__(self, case: NotedCase, value: object) -> None:
        self._slot.__set__(case, value)


for _name, _note in (("now_us", MORE), ("application", MORE), ("profile", RELEASES)):
    setattr(NotedCase, _name, _Noted(getattr(NotedCase, _name), _note))


def around(inventory: Inventory) -> Around:
    """Give what else of an inventory may decide: where it is, and when something was missed."""
    blind = [(x.started_us, x.ended_us) for x in inventory.blind]
    return inventory.volume, inventory.started_us, inventory.ahead_us, tuple(inventory.slowed), *blind


@dataclass(frozen=True, slots=True)
class Silence:
    """Detectors that said nothing of a task, by id, with what each asked for."""

    asked_for: Mapping[str, int]
    again: Set[str]  # who may speak next time although nothing is read
    elsewhere: Set[str]  # who says nothing in a world with other releases, either
    same: Set[str]  # who says nothing in one with the same releases, either


class Unchanged:
    """Remembers, by task, who said nothing and what they asked for."""

    def __init__(self, readings: Mapping[str, int]) -> None:
        """Tell that something was read of a task by `readings`: path -> how often."""
        self.readings = readings
        self._known: dict[str, tuple[int, Around, Profile, Silence]] = {}
        self._same: dict[tuple[tuple[str, int], ...], Silence] = {}  # ten thousand tasks have the same few

    def silence(self, path: str, known_around: Around, profile: Profile) -> Silence | None:
        """Return who said nothing of a task that is as it was then; None = all are to be asked."""
        known = self._known.get(path)
        if known is None or known[0] != self.readings.get(path) or known[2] is not profile:
            return None
        return known[3] if known[1] == known_around else None

    def note(
        self, path: str, known_around: Around, profile: Profile, asked_for: Mapping[str, int] | None
    ) -> None:
        """Remember what those asked for who said nothing; None = one spoke, or something is open."""
        if asked_for is None or path not in self.readings:
            self._known.pop(path, None)
            return
        key = tuple(asked_for.items())
        silence = self._same.get(key)
        if silence is None:
            again, releases, settings = (
                {x for x, asked in key if asked & what} for what in (MORE, RELEASES, SETTINGS)
            )
            same = asked_for.keys() - settings
            silence = self._same[key] = Silence(asked_for, again, same - releases, same)
        self._known[path] = self.readings[path], known_around, profile, silence
