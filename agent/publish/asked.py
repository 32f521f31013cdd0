"""What the worker makes at the end of a turn, when a thread of the server asks for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Asked(Generic[T]):
    """A request waits for the worker to complete a turn; nothing is made without a request."""

    def __init__(self, first: T) -> None:
        """Begin with a value that nobody made."""
        self._fresh = threading.Condition()
        self._value, self._served = first, 0
        self.is_asked = False

    def ask(self, wait_s: float) -> tuple[T, bool]:
        """Return the value, and whether it was made for this request; for any thread but the worker's."""
        with self._fresh:
            served = self._served
            self.is_asked = True
            is_fresh = self._fresh.wait_for(lambda: self._served > served, wait_s)
            return self._value, is_fresh

    def serve(self, make: Callable[[], T]) -> None:
        """Answer if there is a request; called by the worker at every turn."""
        if not self.is_asked:
            return
        value = make()
        with self._fresh:
            self._value, self.is_asked = value, False
            self._served += 1
            self._fresh.notify_all()
