"""How fields of the inventory are declared: a short history with a bound, small while it is empty."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any, TypeVar

T = TypeVar("T")

KEPT = "kept"
"""Name under which a field's metadata say how long its history may get."""


def history(kept: int) -> Any:
    """Declare a history of at most `kept` entries: a tuple, which costs nothing while it is empty.

    A task has seven of them; as lists they took 5 MiB of nothing at ten thousand tasks.
    """
    return field(default=(), metadata={KEPT: kept})


def recent(known: tuple[T, ...], entry: T, kept: int) -> tuple[T, ...]:
    """Give a history with its newest entry; the oldest one goes when there is no more room."""
    return (*known[-kept + 1 :], entry) if kept > 1 else (entry,)


def same_or_new(known: T, new: T) -> T:
    """Give the value that is kept already, if the new one is equal: six sessions of one store have one set of ids."""
    return known if known == new else new


def share_numbers(records: Iterable[object]) -> None:
    """Let equal numbers in fields of records (with slots) be one object each; sessions repeat the same few."""
    first_met: dict[int, int] = {}
    for record in records:
        for name in type(record).__slots__:  # type: ignore[attr-defined]
            value = getattr(record, name)
            if type(value) is int:
                setattr(record, name, first_met.setdefault(value, value))


class Recent(list[T]):
    """A list that keeps its newest entries; grow it by `append` only. For the one that is changed in place."""

    __slots__ = ("maxlen",)

    def __init__(self, maxlen: int) -> None:
        """Start empty, with room for `maxlen` entries."""
        super().__init__()
        self.maxlen = maxlen

    def append(self, entry: T) -> None:
        """Add the newest entry; the oldest one goes when there is no more room."""
        super().append(entry)
        if len(self) > self.maxlen:
            del self[0]
