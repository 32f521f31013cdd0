"""Places that may not be read: each is a blind interval, until it can be read or is gone."""

from __future__ import annotations

from agent.inventory.blindness import close_blind
from agent.inventory.disk import Unseen
from agent.inventory.model import BlindInterval, Inventory
from agent.layout.paths import StatePath

_REFUSALS = frozenset({Unseen.DENIED, Unseen.UNREADABLE, Unseen.TOO_LARGE})


class Refusals:
    """Begins and ends the blind intervals of places that may not be read."""

    def __init__(self, inventory: Inventory) -> None:
        """Write them down in `inventory`."""
        self._inventory = inventory
        self._open: dict[str, BlindInterval] = {}

    def mind(self, place: StatePath, unseen: Unseen | None, at_us: int) -> None:
        """Take what a look at a place came to; None = it was seen."""
        known = self._open.get(place.path) if self._open else None
        if unseen in _REFUSALS and known is None:
            path = place.path or "the state directory"
            interval = BlindInterval(at_us, f"{unseen}", None, place.application, place.task, f"at {path!r}")
            self._inventory.blind.append(interval)
            self._open[place.path] = interval
        elif unseen not in _REFUSALS and known is not None:
            close_blind(self._inventory, known, at_us)
            del self._open[place.path]
