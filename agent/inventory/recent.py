"""A short history with a bound, small while it is empty."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


class Recent(list[T]):
    """A list that keeps its newest entries; grow it by `append` only.

    An empty `deque` takes 760 bytes and a task has seven of them: at ten thousand tasks 50 MiB of nothing.
    """

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
