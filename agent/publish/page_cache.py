"""Between the readers of the agent's page and findings and the worker."""

from __future__ import annotations

import threading
from collections.abc import Callable

from agent.contract.codec import Encoder
from agent.contract.events import Kind, Origin, Record
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
        data, trouble = self._fetch()
        from agent.publish.page import render  # 1 MiB, for those who open it

        return render(data, trouble)

    def findings(self, origin: Origin) -> str | None:
        """Give what was found as lines of the event contract; called by threads of the server.

        None = it is not known now: the worker does not answer, or has not finished its first walk.
        """
        data, trouble = self._fetch()
        if data is None or trouble or not data.ready:
            return None
        encoder = Encoder(origin)
        records = (Record(Kind.FINDING, data.at_us, x.body()) for x in data.findings)
        return "".join(f"{encoder.encode(record, n)}\n" for n, record in enumerate(records, 1))

    def _fetch(self) -> tuple[PageData | None, str | None]:
        """Ask the worker; return what there is, and why it is not of now."""
        with self._fresh:
            served = self._served
            self.is_asked = True
            came = self._fresh.wait_for(lambda: self._served > served, WAIT_S)
            data = self._data
        trouble = None if came else self._unhealthy() or f"the worker did not answer within {WAIT_S:.0f} s"
        return data, trouble

    def serve(self, make: Callable[[], PageData]) -> None:
        """Answer if there is a request; called by the worker at every turn."""
        if not self.is_asked:
            return
        data = make()
        with self._fresh:
            self._data, self.is_asked = data, False
            self._served += 1
            self._fresh.notify_all()
