"""Between the readers of the agent's page and the worker."""

from __future__ import annotations

import threading
from collections.abc import Callable

from agent.publish.page_data import PageData

WAIT_S = 3.0  # how long a request waits for the worker, whose loop turns at least once a second


class PageCache:
    """A request waits for the worker to complete a turn.

    Nothing is computed without a request. The inventory belongs to the worker; a reader gets an immutable value, and
    if the worker does not complete a turn, the last one and the reason.
    """

    def __init__(self, unhealthy: Callable[[], str | None]) -> None:
        self._unhealthy = unhealthy
        self._fresh = threading.Condition()
        self.is_asked = False
        self._served = 0
        self._data: PageData | None = None

    def page(self) -> str:
        """Give the page as HTML; called by threads of the server."""
        with self._fresh:
            served = self._served
            self.is_asked = True
            came = self._fresh.wait_for(lambda: self._served > served, WAIT_S)
            data = self._data
        from agent.publish.page import render  # 1 MiB, for those who open it

        trouble = None if came else self._unhealthy() or f"the worker did not answer within {WAIT_S:.0f} s"
        return render(data, trouble)

    def serve(self, make: Callable[[], PageData]) -> None:
        """Answer if there is a request; called by the worker at every turn."""
        if not self.is_asked:
            return
        data = make()
        with self._fresh:
            self._data, self.is_asked = data, False
            self._served += 1
            self._fresh.notify_all()
