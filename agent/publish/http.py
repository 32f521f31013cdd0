"""The agent's HTTP server: metrics, liveness, readiness. Knows callables and nothing of what is behind them.

Bounded on purpose: few connections at a time, one request and one deadline each, no traceback to a client. A probe and
a scraper must get through however slow others are: where there are too many, the one that has waited longest goes.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from types import TracebackType
from typing import Any, Self

from agent.clock import Clock, SystemClock
from agent.errors import ConfigError

_LOG = logging.getLogger(__name__)
MAX_CONNECTIONS = 16
MAX_COMPUTED = 8
"""Long answers (metrics, the page) in the making, at most. Probes take none of these places."""

DEADLINE_S = 10.0
"""From the first byte of the request to the last one of the answer, however the bytes trickle."""

LONGEST_REQUEST_BYTES = 131_072
"""Of the request line and all headers together; the standard library limits each line and the number of headers."""

_POLL_S = 1.0
"""How often the thread checks deadlines, and whether to stop unless it is woken for that."""

_CLOCK: Clock = SystemClock()

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
    """Serves `/metrics`, `/healthz`, `/readyz` and `/` on its own threads. A context manager."""

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
        serve = partial(self._server.serve_forever, poll_interval=_POLL_S)
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
                self._server.socket.shutdown(socket.SHUT_RDWR)  # wakes the thread: it need not poll often
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


class _Server(ThreadingHTTPServer):
    """The standard library's server with one thread per connection, and bounds."""

    daemon_threads = True
    request_queue_size = 4 * MAX_CONNECTIONS
    block_on_close = False  # a client that dawdles must not hold up the agent's end

    def __init__(self, answers: Answers, host: str, port: int) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.known = answers
        self.computing = threading.BoundedSemaphore(MAX_COMPUTED)
        self._lock = threading.Lock()
        self._open: dict[socket.socket, tuple[str, float]] = {}
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Bind, without asking the name service for this host's name."""
        TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take a connection in; if there are too many, hang up on the oldest of the client that has most."""
        with self._lock:
            if len(self._open) >= MAX_CONNECTIONS:
                hosts = Counter(host for host, _ in self._open.values())
                most = max(hosts.values())
                _hang_up(next(x for x, (host, _) in self._open.items() if hosts[host] == most), self._open)
            self._open[request] = str(client_address[0]), _CLOCK.monotonic_s() + DEADLINE_S
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Hang up on each connection whose time is over."""
        now_s = _CLOCK.monotonic_s()
        with self._lock:
            for connection in [x for x, (_, until_s) in self._open.items() if until_s <= now_s]:
                _hang_up(connection, self._open)

    def shutdown_request(self, request: Any) -> None:
        """Forget a connection that ends."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Note a broken connection quietly instead of printing a traceback."""
        _LOG.debug("HTTP connection failed", exc_info=True)


def _hang_up(connection: socket.socket, among: dict[socket.socket, tuple[str, float]]) -> None:
    """Wake the thread of a connection with its end."""
    del among[connection]
    with suppress(OSError):  # it has just ended by itself
        connection.shutdown(socket.SHUT_RDWR)


class _Request:
    """What a client says, as far as it may."""

    def __init__(self, file: Any) -> None:
        self._file, self._left_bytes = file, LONGEST_REQUEST_BYTES
        self.close = file.close

    def readline(self, size: int = -1) -> bytes:
        line: bytes = self._file.readline(size)
        self._left_bytes -= len(line)
        if self._left_bytes < 0:
            raise HTTPException("the request is too long")
        return line


class _Handler(BaseHTTPRequestHandler):
    """One request per connection, answered as HTTP/1.0."""

    server: _Server
    default_request_version = "HTTP/1.0"  # a request without a version gets headers like any other
    wbufsize = -1

    def setup(self) -> None:
        """Limit what is read."""
        super().setup()
        self.rfile = _Request(self.rfile)  # type: ignore[assignment]

    def do_GET(self) -> None:
        """Answer a request that came in whole."""
        path = self.path.partition("?")[0]
        if path in _PROBES:
            self._send(*self._find(path))
        elif self.server.computing.acquire(blocking=False):
            try:
                answer = self._find(path)
            finally:
                self.server.computing.release()
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
