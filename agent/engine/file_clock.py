"""Compares the clock that file times come from with the clock of this node, and lets the inventory have one."""

from __future__ import annotations

from agent.inventory.file_times import ClockDifference, move_file_times
from agent.inventory.hints import Hint, HintKind
from agent.inventory.model import Inventory
from agent.layout.paths import PathRole, classify
from agent.observe.observer import Observer

_ONCE = frozenset({PathRole.SST, PathRole.OPTIONS, PathRole.IDENTITY})
"""Written once: whatever time it takes to follow the announcement, the file still has the time of its writing."""
_IS_WHOLE = frozenset({HintKind.WRITTEN, HintKind.MOVED_IN})


class FileClock:
    """Measures on volumes of a file server (`SERVED_VOLUMES`); of others it is told nothing."""

    def __init__(self, inventory: Inventory, observer: Observer) -> None:
        """Keep `inventory`, and what `observer` reads, on the clock of this node."""
        self._inventory, self._observer = inventory, observer
        self._difference = ClockDifference()

    def resume(self, known: Inventory) -> None:
        """Go on with the difference that an earlier agent measured: what is known was dated with it."""
        self._inventory.ahead_us, self._observer.ahead_us = known.ahead_us, known.ahead_us or 0

    def note(self, hint: Hint) -> None:
        """Take an announcement; what is known moves if the difference is another one than was thought."""
        inventory, observer = self._inventory, self._observer
        if hint.kind not in _IS_WHOLE:
            return
        place = classify(hint.path)
        if place.role not in _ONCE:
            return
        written_us = observer.written_us(place.path)
        if written_us is None:
            return
        ahead_us = self._difference.note(written_us + observer.ahead_us, hint.at_us)
        if ahead_us is None:
            return
        inventory.ahead_us = ahead_us
        if by_us := observer.ahead_us - ahead_us:
            observer.ahead_us = ahead_us
            move_file_times(inventory, by_us)
