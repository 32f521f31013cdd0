"""Connections of the HTTP server: how many, for how long, and who must go first when there are too many.

A probe and a scraper must get through however slow others are. So whoever is slow to ask, or to take the answer, is
turned away for a newcomer, and everybody has one time limit for asking and one for taking, however the bytes trickle.
"""

from __future__ import annotations

import io
import logging
import socket
import socketserver
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler
from typing import Any

from agent.clock import Clock, SystemClock

_LOG = logging.getLogger(__name__)

MAX_ASKING = 16
"""Connections that have not finished asking, at most."""

MAX_COMPUTED = 8
"""Long answers (metrics, the page) in the making, at most. Probes take none of these places."""

MAX_TAKING = 8
"""Connections to which a long answer is on its way, at most."""

ASKING_S = 5.0
TAKING_S = 5.0

LONGEST_REQUEST_BYTES = 131_072
"""Of the request line and all headers together; the standard library limits each line and the number of headers."""

_CLOCK: Clock = SystemClock()


class Places:
    """Connections in one phase of their life, oldest first."""

    def __init__(self, most: int) -> None:
        """Start with none of so many."""
        self._most = most
        self._lock = threading.Lock()
        self._open: dict[socket.socket, str] = {}

    def enter(self, connection: socket.socket, host: str) -> None:
        """Take in a connection; if there are too many, hang up on the oldest of whoever has most."""
        with self._lock:
            self._open[connection] = host
            if len(self._open) <= self._most:
                return
            hosts = Counter(self._open.values())
            most = max(hosts.values())
            oldest = next(x for x, its_host in self._open.items() if hosts[its_host] == most)
            del self._open[oldest]
            with suppress(OSError):  # it has just ended by itself
                oldest.shutdown(socket.SHUT_RDWR)

    def leave(self, connection: socket.socket) -> None:
        """Let a connection go: this phase is over, or it ended."""
        with self._lock:
            self._open.pop(connection, None)

    @contextmanager
    def place(self, connection: socket.socket, host: str) -> Iterator[None]:
        """Hold a place for as long as something is done."""
        self.enter(connection, host)
        try:
            yield
        finally:
            self.leave(connection)


class BoundedServer(socketserver.ThreadingTCPServer):
    """The standard library's server with one thread per connection, and the bounds above.

    Not its `HTTPServer`, which asks the name service for this host's name before it listens.
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 4 * MAX_ASKING
    block_on_close = False  # a client that dawdles must not hold up the agent's end

    def __init__(self, host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> None:
        """Bind the port."""
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.asking, self.taking = Places(MAX_ASKING), Places(MAX_TAKING)
        self.computing = threading.BoundedSemaphore(MAX_COMPUTED)
        super().__init__((host, port), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Hand the connection to a thread."""
        self.asking.enter(request, str(client_address[0]))
        try:
            super().process_request(request, client_address)
        except BaseException:
            self.asking.leave(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, then forget the connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.asking.leave(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Note a broken connection quietly instead of printing a traceback."""
        _LOG.debug("HTTP connection failed", exc_info=True)


class InTime(io.RawIOBase):
    """One direction of a connection, with one time limit for everything that comes or goes."""

    def __init__(self, connection: socket.socket, limit_s: float) -> None:
        """Start the clock."""
        self._connection = connection
        self._until_s = _CLOCK.monotonic_s() + limit_s
        self._left_bytes = LONGEST_REQUEST_BYTES

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def writable(self) -> bool:
        """Say that it can be written."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is there.

        Raises:
            TimeoutError: the time is up.
            HTTPException: more came than a request may have.
        """
        self._connection.settimeout(self._left_s())
        size = self._connection.recv_into(buffer)
        self._left_bytes -= size
        if self._left_bytes < 0:
            raise HTTPException("the request is too long")
        return size

    def write(self, data: Any) -> int:
        """Send all of it.

        Raises:
            OSError: the time is up, or nobody listens.
        """
        self._connection.settimeout(self._left_s())
        self._connection.sendall(data)  # its time limit is for all of the data
        return len(data)

    def _left_s(self) -> float:
        left_s = self._until_s - _CLOCK.monotonic_s()
        if left_s <= 0:
            raise TimeoutError("the time for this request is up")
        return left_s
