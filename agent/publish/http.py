"""The agent's HTTP server: metrics, liveness, readiness. Knows callables and nothing of what is behind them.

Bounded on purpose: few connections at a time, one request each, short time limits, no traceback to a client.
"""

from __future__ import annotations

import io
import logging
import socket
import socketserver
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from types import TracebackType
from typing import Self

from agent.errors import ConfigError
from agent.publish import connections

_LOG = logging.getLogger(__name__)
_TEXT = "text/plain; charset=utf-8"
_OPENMETRICS = "application/openmetrics-text"
_STOP_POLL_S = 1.0
"""How often the thread asks whether to stop, unless it is woken."""

_LONGEST_LINE_BYTES = 65_536
"""Of a request line, and of all headers together."""

_METHODS = {"GET": True, "HEAD": False}
"""What is served, and whether it gets a body."""

_PROBES = ("/healthz", "/readyz")
"""What is answered however busy the server is: short, at once, and what the agent's life hangs on."""

_NO_MORE = (b"\r\n", b"\n", b"")
_ALWAYS = (("Server", "statewarden"),)
_HTML = "text/html; charset=utf-8"
_GUARDS = (
    ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; "
     "base-uri 'none'; form-action 'none'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
)  # fmt: skip
"""A page with names from a disk on it: whatever slips through escaping must do nothing."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Where the server gets its answers; each is called on a thread of the server and must not wait.

    Args of the dataclass:
        metrics: Content type and body; the argument says whether OpenMetrics was asked for.
        unhealthy: Why the agent is not alive, in one line; None = it is.
        unready: Why the agent is not ready, in one line; None = it is.
        page: The agent's own page as HTML; the only one that may wait, a few seconds.
    """

    metrics: Callable[[bool], tuple[str, bytes | bytearray]]
    unhealthy: Callable[[], str | None]
    unready: Callable[[], str | None]
    page: Callable[[], str]


class HttpServer:
    """Serves `/metrics`, `/healthz`, `/readyz` and `/` on threads of its own. A context manager."""

    def __init__(self, answers: Answers, host: str = "", port: int = 0) -> None:
        """Bind the port; nothing is answered before `start`.

        Args:
            answers: Where the answers come from.
            host: Address to listen on; empty = all of IPv4, `::` = all.
            port: Port; 0 = any free one, see `port`.

        Raises:
            ConfigError: the address cannot be listened on.
        """
        try:
            self._server = _Server(answers, host, port)
        except (OSError, OverflowError) as error:
            raise ConfigError(
                f"cannot listen on {host or '*'}:{port}: {error}; choose another address"
            ) from error
        serve = partial(self._server.serve_forever, poll_interval=_STOP_POLL_S)
        self._thread = threading.Thread(target=serve, name="http", daemon=True)

    @property
    def port(self) -> int:
        """Port that is listened on."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Stop answering and free the port."""
        if self._thread.is_alive():
            stopper = threading.Thread(target=self._server.shutdown, name="http-stop", daemon=True)
            stopper.start()
            with suppress(OSError):
                self._server.socket.shutdown(socket.SHUT_RDWR)  # wakes the thread: it need not look often
            stopper.join()
            self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()


class _Server(connections.BoundedServer):
    def __init__(self, answers: Answers, host: str, port: int) -> None:
        self.known = answers
        super().__init__(host, port, _Handler)


class _Handler(socketserver.StreamRequestHandler):
    """One request per connection, answered as HTTP/1.0.

    Not `http.server`: importing it brings an HTTP client, a mail parser and OpenSSL into every pod, 8 MiB.
    """

    server: _Server

    def setup(self) -> None:
        """Start the clock: from now on the request has so many seconds to come in, all in all."""
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(connections.InTime(self.connection, connections.ASKING_S))

    def handle(self) -> None:
        """Read one request and answer it."""
        request = self._read()
        self.server.asking.leave(self.connection)
        if isinstance(request, HTTPStatus):
            self._refuse(request)
        elif request is not None:
            self._answer(*request)

    def _read(self) -> tuple[str, str, bool] | HTTPStatus | None:
        """Read the request: path, what `Accept` says, whether a body is wanted; or why it is refused; None = none."""
        line = self.rfile.readline(_LONGEST_LINE_BYTES + 1)
        if not line:
            return None  # hung up without a word
        if len(line) > _LONGEST_LINE_BYTES:
            return HTTPStatus.REQUEST_URI_TOO_LONG
        words = str(line, "latin-1").split()
        accept = self._read_accept()
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return HTTPStatus.BAD_REQUEST
        if accept is None:
            return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        if words[0] not in _METHODS:
            return HTTPStatus.NOT_IMPLEMENTED
        return words[1], accept, _METHODS[words[0]]

    def _read_accept(self) -> str | None:
        """Read the headers; give what `Accept` says, None if they are too long."""
        accept: list[str] = []
        left_bytes = _LONGEST_LINE_BYTES
        while (line := self.rfile.readline(left_bytes + 1)) not in _NO_MORE:
            left_bytes -= len(line)
            if left_bytes < 0:
                return None
            name, _, value = str(line, "latin-1").partition(":")
            if name.strip().lower() == "accept":
                accept.append(value.strip())
        return ",".join(accept)

    def _answer(self, path: str, accept: str, with_body: bool) -> None:
        _LOG.debug("HTTP request", extra={"request": path})
        if path.partition("?")[0] in _PROBES:
            self._give(path, accept, with_body=with_body)
        elif self.server.answers.acquire(blocking=False):
            try:
                self._give(path, accept, with_body=with_body)
            finally:
                self.server.answers.release()
        else:
            self._send(
                HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, b"too many requests at a time\n", with_body=with_body
            )

    def _give(self, path: str, accept: str, *, with_body: bool) -> None:
        try:
            status, content_type, body = self._route(path, accept)
        except Exception:  # noqa: BLE001 - the fence of this thread: the client gets a code, the log the rest
            _LOG.exception("HTTP answer failed", extra={"path": path})
            status, content_type, body = (
                HTTPStatus.INTERNAL_SERVER_ERROR,
                _TEXT,
                b"internal error, see the log\n",
            )
        self._send(status, content_type, body, with_body=with_body)

    def _refuse(self, status: HTTPStatus) -> None:
        self._send(status, _TEXT, f"{status.value} {status.phrase}\n".encode("ascii"), with_body=True)

    def _send(
        self, status: HTTPStatus, content_type: str, body: bytes | bytearray, *, with_body: bool
    ) -> None:
        head = [f"HTTP/1.0 {status.value} {status.phrase}"]
        own = (("Content-Type", content_type), ("Content-Length", f"{len(body)}"), ("Connection", "close"))
        head += [f"{name}: {value}" for name, value in (*_ALWAYS, *own, *_GUARDS)]
        parts = ("\r\n".join([*head, "", ""]).encode("latin-1"), body if with_body else b"")
        connections.send_in_time(self.connection, connections.ANSWERING_S, *parts)

    def _route(self, path: str, accept: str) -> tuple[HTTPStatus, str, bytes | bytearray]:
        answers = self.server.known
        match path.partition("?")[0]:
            case "/metrics":
                content_type, body = answers.metrics(_OPENMETRICS in accept)
                return HTTPStatus.OK, content_type, body
            case "/healthz":
                return _probe(answers.unhealthy())
            case "/readyz":
                return _probe(answers.unready())
            case "/":
                return HTTPStatus.OK, _HTML, answers.page().encode("utf-8", "backslashreplace")
            case _:
                return HTTPStatus.NOT_FOUND, _TEXT, b"not found\n"


def _probe(reason: str | None) -> tuple[HTTPStatus, str, bytes]:
    if reason is None:
        return HTTPStatus.OK, _TEXT, b"ok\n"
    line = " ".join(reason.split())
    return HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, f"{line}\n".encode("utf-8", "backslashreplace")
