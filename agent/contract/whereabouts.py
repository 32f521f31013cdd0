"""Where a store is by now whose pod has ended: on another one that got its volume. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Protocol

SKEW_US = 10_000_000
"""Clocks of two pods differ by less than this (microseconds): what is shorter says nothing about their order."""


class Shown(Protocol):
    """A pod showed a store from then to then (microseconds)."""

    @property
    def pod(self) -> str: ...  # noqa: D102
    @property
    def from_us(self) -> int: ...  # noqa: D102
    @property
    def to_us(self) -> int: ...  # noqa: D102


def heir(pod: str, seen: Iterable[Shown], last_us: int) -> tuple[str, int] | None:
    """Find the pod that shows a store since the last word of its own, and until when; None = none does.

    Two pods that show it at one time have copies.
    """
    heirs: dict[str, list[Shown]] = defaultdict(list)
    for x in seen:
        if x.pod != pod:
            heirs[x.pod].append(x)
    until = [
        (max(x.to_us for x in own), name)
        for name, own in heirs.items()
        if min(x.from_us for x in own) > last_us - SKEW_US
    ]
    return max(until)[::-1] if until else None
