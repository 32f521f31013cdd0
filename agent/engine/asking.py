"""Whom a judgement asks: the detectors whose verdict can have changed since they were asked last. Pure.

Three things leave a detector out, all by its own metadata: it is silent for an application with these settings and
releases; what changed decides nothing of its verdict; only time has passed, and longer than it ever waits. A detector
with something open is asked by every judgement, and so are all that declare nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from agent.contract.events import Change
from agent.inventory.settings import ApplicationSettings
from agent.judging.base import DetectorMeta, Judge
from agent.layout.profile import Profile

ANYTHING = -1
"""Changes as one number, a bit each; this one has all of them: something changed that no transition reports."""

_BITS = {change: 1 << number for number, change in enumerate(Change)}


def bit_of(change: Change) -> int:
    """Return a change as a bit."""
    return _BITS[change]


@dataclass(slots=True)
class DetectorStats:
    """How a detector fared: its own health is a metric."""

    runs: int = 0
    failures: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A detector, at hand for the loop over all of them."""

    id: str
    meta: DetectorMeta
    judge: Judge
    stats: DetectorStats


@dataclass(frozen=True, slots=True)
class Selection:
    """Detectors to ask, in their order, and their ids."""

    asked: tuple[Asked, ...]
    ids: frozenset[str]

    @staticmethod
    def of(asked: Iterable[Asked]) -> Selection:
        """Make one."""
        chosen = tuple(asked)
        return Selection(chosen, frozenset(x.id for x in chosen))


class Plan:
    """Whom to ask of one scope, for applications with the same settings and releases."""

    def __init__(self, all_of_them: Sequence[Asked], settings: ApplicationSettings, profile: Profile) -> None:
        """Leave out those that are silent there.

        Args:
            all_of_them: Every detector of the scope, in the order in which they are judged.
            settings: Of the application.
            profile: Of the application.
        """
        self._all = all_of_them
        self.everyone = Selection.of(x for x in all_of_them if not x.meta.is_silent(settings, profile))
        self.laws = Selection.of(x for x in self.everyone.asked if x.meta.is_law)
        self._after: dict[int, Selection] = {}
        self._later: dict[int, Selection] = {}

    def after(self, changes: int) -> Selection:
        """Return whom to ask when there were changes: bits of them, or `ANYTHING`."""
        known = self._after.get(changes)
        if known is None:
            known = self._after[changes] = self._where(lambda meta: bool(changes & ~_unmoved(meta)))
        return known

    def later(self, passed_us: int) -> Selection:
        """Return whom to ask when nothing changed since all were asked who wait no longer than so."""
        known = self._later.get(passed_us)
        if known is None:
            known = self._later[passed_us] = self._where(lambda meta: meta.may_wait_beyond(passed_us))
        return known

    def with_open(self, chosen: Selection, ids: Collection[str]) -> Selection:
        """Add those that have something open."""
        return Selection.of(x for x in self._all if x.id in chosen.ids or x.id in ids)

    def _where(self, is_asked: Callable[[DetectorMeta], bool]) -> Selection:
        return Selection.of(x for x in self.everyone.asked if is_asked(x.meta))


def _unmoved(meta: DetectorMeta) -> int:
    return sum(map(bit_of, meta.unmoved_by))
