"""What had been flushed, and when, as two numbers each: a pair of Python's takes eight times the memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import overload

_LARGEST = (1 << 63) - 1

Flushed = tuple[int, int]
"""Puts that were on disk, and when they were, microseconds since the epoch."""


class Timeline(Sequence[Flushed]):
    """Pairs in their order; does not change. 16 bytes each: 48 of them took 6 KB as tuples."""

    __slots__ = ("_numbers",)

    def __init__(self, pairs: Iterable[Flushed] = ()) -> None:
        """Keep pairs; of a number that no file can rightly hold, the largest that fits."""
        numbers = [*chain.from_iterable(pairs)]
        try:
            self._numbers = array("q", numbers)
        except OverflowError:
            self._numbers = array("q", [max(-_LARGEST, min(x, _LARGEST)) for x in numbers])

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self._numbers) // 2

    def __iter__(self) -> Iterator[Flushed]:
        """Give each pair."""
        numbers = iter(self._numbers)
        return zip(numbers, numbers, strict=True)

    @overload
    def __getitem__(self, index: int) -> Flushed: ...

    @overload
    def __getitem__(self, index: slice) -> Timeline: ...

    def __getitem__(self, index: int | slice) -> Flushed | Timeline:
        """Give one pair, or some of them."""
        if isinstance(index, slice):
            return Timeline([*self][index])
        first = 2 * range(len(self))[index]
        return self._numbers[first], self._numbers[first + 1]

    def __add__(self, later: Iterable[Flushed]) -> Timeline:
        """Give one that goes on."""
        return Timeline((*self, *later))

    def __eq__(self, other: object) -> bool:
        """Compare pair by pair."""
        return isinstance(other, Timeline) and self._numbers == other._numbers

    def __hash__(self) -> int:
        """Agree with `==`."""
        return hash(self._numbers.tobytes())

    def __repr__(self) -> str:
        """Show the pairs."""
        return f"Timeline({[*self]!r})"


NOTHING_FLUSHED = Timeline()
