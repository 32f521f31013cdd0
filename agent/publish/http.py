"""The agent's HTTP server: metrics, liveness, readiness. Knows callables and nothing of what is behind them.

Bounded on purpose: few connections at a time, one request each, short time limits, no traceback to a client.
"""

from __future__ import annotations

import io
import logging
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, Self

from agent.errors import ConfigError
from agent.publish import connections

_LOG = logging.getLogger(__name__)
_STOP_POLL_S = 1.0
"""How often the thread asks whether to stop, unless it is woken."""

_PROBES = ("/healthz", "/readyz")
"""What is answered however busy the server is: short, at once, and what the agent's life hangs on."""

_GUARDS = (
    ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; "
     "base-uri 'none'; form-action 'none'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
)  # fmt: skip
"""A page with names from a disk on it: whatever slips through escaping must do nothing."""

Headers = tuple[tuple[str, str], ...]
"""Names and values."""

_TEXT: Headers = (("Content-Type", "text/plain; charset=utf-8"),)
_HTML: Headers = (("Content-Type", "text/html; charset=utf-8"),)


@dataclass(frozen=True, slots=True)
class Answers:
    """Where the server gets its answers; each is called on a thread of the server and must not wait.

    Args of the dataclass:
        metrics: Headers and body; the arguments are what the client says in `Accept` and `Accept-Encoding`.
        unhealthy: Why the agent is not alive, in one line; None = it is.
        unready: Why the agent is not ready, in one line; None = it is.
        page: The agent's own page as HTML; the only one that may wait, a few seconds.
    """

    metrics: Callable[[str, str], tuple[Headers, bytes | bytearray]]
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


class _Handler(BaseHTTPRequestHandler):
    """One request per connection, answered as HTTP/1.0."""

    server: _Server
    default_request_version = "HTTP/1.0"  # a request without a version gets headers like any other

    def setup(self) -> None:
        """Start the clock: from now on the request has so many seconds to come in, all in all."""
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(connections.InTime(self.connection, connections.ASKING_S))

    def do_GET(self) -> None:
        """Answer a request that came in whole."""
        self.server.asking.leave(self.connection)
        path = self.path.partition("?")[0]
        if path in _PROBES:
            self._send(*self._find(path))
        elif self.server.computing.acquire(blocking=False):
            try:
                answer = self._find(path)
            finally:
                self.server.computing.release()
            with self.server.taking.place(self.connection, str(self.client_address[0])):
                self._send(*answer)
        else:
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, b"too many requests at a time\n")

    do_HEAD = do_GET  # noqa: N815 - as above

    def _find(self, path: str) -> tuple[HTTPStatus, Headers, bytes | bytearray]:
        answers = self.server.known
        try:
            match path:
                case "/metrics":
                    return HTTPStatus.OK, *answers.metrics(
                        self._said("Accept"), self._said("Accept-Encoding")
                    )
                case "/healthz":
                    return _probe(answers.unhealthy())
                case "/readyz":
                    return _probe(answers.unready())
                case "/":
                    return HTTPStatus.OK, _HTML, answers.page().encode("utf-8", "backslashreplace")
                case _:
                    return HTTPStatus.NOT_FOUND, _TEXT, b"not found\n"
        except Exception:  # noqa: BLE001 - the fence of this thread: the client gets a code, the log the rest
            _LOG.exception("HTTP answer failed", extra={"path": path})
            return HTTPStatus.INTERNAL_SERVER_ERROR, _TEXT, b"internal error, see the log\n"

    def _said(self, header: str) -> str:
        return " ".join(",".join(self.headers.get_all(header, ())).split())

    def _send(self, status: HTTPStatus, headers: Headers, body: bytes | bytearray) -> None:
        self.wfile = io.BufferedWriter(connections.InTime(self.connection, connections.TAKING_S))
        self.send_response(status)
        for name, value in (*headers, ("Content-Length", f"{len(body)}"), ("Connection", "close"), *_GUARDS):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is no request that is served here, without a word of what it said."""
        status = HTTPStatus(code)
        self._send(status, _TEXT, f"{status.value} {status.phrase}\n".encode("ascii"))

    def version_string(self) -> str:
        """Name the server, and no versions."""
        return "statewarden"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the standard library's name
        """Log for debugging only."""
        _LOG.debug("HTTP: %s", format % args)


def _probe(reason: str | None) -> tuple[HTTPStatus, Headers, bytes]:
    if reason is None:
        return HTTPStatus.OK, _TEXT, b"ok\n"
    line = " ".join(reason.split())
    return HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, f"{line}\n".encode("utf-8", "backslashreplace")
