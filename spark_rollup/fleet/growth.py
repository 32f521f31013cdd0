"""How much was put into a store between two of its readings: one store at a time, by the agents' own arithmetic.

How many puts a record makes depends on the kind of store; agents send what follows from it (`unsaved_puts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol


class Point(Protocol):
    """A reading: when, and how many puts the store had had by then."""

    @property
    def at_us(self) -> int: ...  # noqa: D102
    @property
    def puts(self) -> int | None: ...  # noqa: D102


Course = list[tuple[int, int]]
"""Readings of one store in order of time: microseconds since the epoch, puts."""


def course(readings: Iterable[Point]) -> Course:
    """Put readings of one store into order; those without puts say nothing."""
    return sorted((x.at_us, x.puts) for x in readings if x.puts is not None)


def growth(readings: Course) -> int | None:
    """Say by how much the last reading is more than the first; None without any.

    The sum of a windowed store's segments shrinks when one expires: then it is less than what was put.
    """
    return readings[-1][1] - readings[0][1] if readings else None


def unsaved_limit(limits: Sequence[int | None]) -> int | None:
    """Return the largest limit that a store's readings name; None where one of them knows none."""
    known = [x for x in limits if x is not None]
    return max(known) if known and len(known) == len(limits) else None


def went_on_unsaved(readings: Course, limit: int | None, commits_us: int) -> bool:
    """Return whether more than 10,000 records were put in, and the store went on when a commit had passed since.

    A standby writes its checkpoint at that commit; one that is frozen writes it when it goes on. `limit`: puts that
    10,000 records make at most; None = not known.
    """
    if limit is None or not readings:
        return False
    first = readings[0][1]
    due = next(((at, puts) for at, puts in readings if puts - first > limit), None)
    return due is not None and any(at >= due[0] + commits_us and puts > due[1] for at, puts in readings)
