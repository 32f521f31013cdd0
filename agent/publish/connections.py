"""Connections of the HTTP server: how many, for how long, and who must go first when there are too many.

A probe must get through however slow others are. So whoever has not finished asking can be turned away for a
newcomer, and everybody has one time limit for asking and one for taking the answer, however the bytes trickle.
"""

from __future__ import annotations

import io
import logging
import socket
import socketserver
import threading
from collections import Counter
from contextlib import suppress
from typing import Any

from agent.clock import Clock, SystemClock

_LOG = logging.getLogger(__name__)

MAX_ASKING = 16
"""Connections that have not finished asking, at most."""

MAX_ANSWERED = 8
"""Long answers (metrics, the page) at a time, at most. Probes take none of these places."""

ASKING_S = 5.0
ANSWERING_S = 5.0
_CLOCK: Clock = SystemClock()


class Asking:
    """Connections whose request is not there yet, oldest first."""

    def __init__(self) -> None:
        """Start with none."""
        self._lock = threading.Lock()
        self._open: dict[socket.socket, str] = {}

    def enter(self, connection: socket.socket, host: str) -> None:
        """Take in a connection; if there are too many, hang up on the oldest of whoever has most."""
        with self._lock:
            self._open[connection] = host
            if len(self._open) <= MAX_ASKING:
                return
            hosts = Counter(self._open.values())
            most = max(hosts.values())
            oldest = next(x for x, its_host in self._open.items() if hosts[its_host] == most)
            del self._open[oldest]
            with suppress(OSError):  # it has just ended by itself
                oldest.shutdown(socket.SHUT_RDWR)

    def leave(self, connection: socket.socket) -> None:
        """Let a connection go: it has asked, or it ended."""
        with self._lock:
            self._open.pop(connection, None)


class BoundedServer(socketserver.ThreadingTCPServer):
    """One thread per connection, with the bounds above."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 4 * MAX_ASKING
    block_on_close = False  # a client that dawdles must not hold up the agent's end

    def __init__(self, host: str, port: int, handler: type[socketserver.BaseRequestHandler]) -> None:
        """Bind the port."""
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.asking = Asking()
        self.answers = threading.BoundedSemaphore(MAX_ANSWERED)
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
    """What comes from a connection until the time for asking is up, however slowly it comes."""

    def __init__(self, connection: socket.socket, limit_s: float) -> None:
        """Start the clock."""
        self._connection = connection
        self._until_s = _CLOCK.monotonic_s() + limit_s

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is there.

        Raises:
            TimeoutError: the time is up.
        """
        left_s = self._until_s - _CLOCK.monotonic_s()
        if left_s <= 0:
            raise TimeoutError("the request was not complete in time")
        self._connection.settimeout(left_s)
        return self._connection.recv_into(buffer)


def send_in_time(connection: socket.socket, limit_s: float, *parts: bytes | bytearray) -> None:
    """Send everything within one time limit.

    Raises:
        OSError: the time is up, or nobody listens.
    """
    until_s = _CLOCK.monotonic_s() + limit_s
    for part in parts:
        connection.settimeout(max(0.001, until_s - _CLOCK.monotonic_s()))
        connection.sendall(part)  # its time limit is for the whole part
