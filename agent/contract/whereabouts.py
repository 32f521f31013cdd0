"""Where a store is by now whose pod has ended: on another one that got its volume. Pure."""

from __future__ import annotations

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


def heirs(pod: str, seen: Iterable[Shown], last_us: int) -> list[tuple[str, int]]:
    """Find the pods that show a store since the last word of its own, and until when, the last of them first.

    Two pods that show it at one time have copies, and both may be heirs; who had it before another one has it no more.
    """
    spans: dict[str, tuple[int, int]] = {}
    for x in seen:
        if x.pod != pod:
            from_us, to_us = spans.get(x.pod, (x.from_us, x.to_us))
            spans[x.pod] = min(from_us, x.from_us), max(to_us, x.to_us)
    later = {name: x for name, x in spans.items() if x[0] > last_us - SKEW_US}
    newest_us = max((from_us for from_us, _ in later.values()), default=0)
    found = [(to_us, name) for name, (_, to_us) in later.items() if to_us > newest_us - SKEW_US]
    return [(name, to_us) for to_us, name in sorted(found, reverse=True)]
