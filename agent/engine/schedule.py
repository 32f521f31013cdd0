"""What is due when: a small heap of (time, key). Deterministic; knows no clock."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def in_turn(all_of_them: Sequence[T], first: int, count: int) -> tuple[list[T], int]:
    """Take the next `count` of a list that is gone through in circles.

    `all_of_them`: may be another list at every call. `first`: what the last call gave; 0 at the beginning. `count`:
    how many, at most. Gives what was taken, and where to go on.
    """
    if not all_of_them:
        return [], 0
    first %= len(all_of_them)
    last = first + min(count, len(all_of_them))
    return [*all_of_them[first:last], *all_of_them[: max(0, last - len(all_of_them))]], last


class Schedule:
    """Keys with the time at which each is due; a key is due once, at its earliest wish."""

    def __init__(self) -> None:
        self.due: dict[str, int] = {}  # key -> when it is due; to read only
        self._heap: list[tuple[int, str]] = []

    def schedule(self, key: str, at_us: int) -> None:
        """Make a key due at a time, or earlier if it was wanted earlier."""
        known = self.due.get(key)
        if known is not None and known <= at_us:
            return
        self.due[key] = at_us
        heapq.heappush(self._heap, (at_us, key))

    def drop(self, key: str) -> None:
        """Forget a key."""
        self.due.pop(key, None)

    def below(self, prefix: str) -> list[str]:
        """List the keys that begin so, in no particular order of time."""
        return [key for key in self.due if key.startswith(prefix)]

    def next_us(self) -> int | None:
        """When the next key is due; None = nothing waits."""
        while self._heap and self.due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def shift(self, by_us: int) -> None:
        """Move every time: the clock was set."""
        self.due = {key: at_us + by_us for key, at_us in self.due.items()}
        self._heap = [(at_us, key) for key, at_us in self.due.items()]
        heapq.heapify(self._heap)

    def pop_due(self, now_us: int) -> list[str]:
        """Take every key that is due."""
        taken: list[str] = []
        while self._heap and self._heap[0][0] <= now_us:
            at_us, key = heapq.heappop(self._heap)
            if self.due.get(key) == at_us:
                del self.due[key]
                taken.append(key)
        return taken


class Rechecks:
    """Keys that are due again and again at fixed distances after their latest change.

    A change is one dictionary entry; the heap holds each key once, at a time that is never too late. A task that
    changes several times a second would otherwise leave thousands of outdated entries behind.
    """

    def __init__(self, distances_us: tuple[int, ...]) -> None:
        """Make a key due at each of `distances_us` (ascending) after its change."""
        self._distances_us = distances_us
        self._since: dict[str, tuple[int, int]] = {}  # key -> time of the change, next distance
        self._wakes = Schedule()

    @property
    def first_us(self) -> int:
        """The first distance."""
        return self._distances_us[0]

    def restart(self, key: str, now_us: int) -> None:
        """Note a change: all distances count from now."""
        self._since[key] = (now_us, 0)
        self._wakes.schedule(key, now_us + self._distances_us[0])

    def next_us(self) -> int | None:
        """When to ask `pop_due` at the latest; None = nothing waits."""
        return self._wakes.next_us()

    def shift(self, by_us: int) -> None:
        """Move every time: the clock was set."""
        self._since = {key: (at_us + by_us, stage) for key, (at_us, stage) in self._since.items()}
        self._wakes.shift(by_us)

    def pop_due(self, now_us: int) -> list[str]:
        """Take every key that is due; one that missed several distances is due once."""
        taken: list[str] = []
        for key in self._wakes.pop_due(now_us):
            since_us, stage = self._since[key]
            if since_us + self._distances_us[stage] <= now_us:
                taken.append(key)
                while stage < len(self._distances_us) and since_us + self._distances_us[stage] <= now_us:
                    stage += 1
            if stage == len(self._distances_us):
                del self._since[key]
            else:
                self._since[key] = (since_us, stage)
                self._wakes.schedule(key, since_us + self._distances_us[stage])
        return taken
