"""The agent's HTTP server: metrics, liveness, readiness, the page. Knows callables and nothing of what is behind them.

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
from http import HTTPStatus
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, Self

from agent.clock import SystemClock
from agent.errors import ConfigError

_LOG = logging.getLogger(__name__)
MAX_CONNECTIONS, MAX_COMPUTED = 16, 8
"""Connections, and long answers (metrics, the page) in the making, at most. Probes take none of these places."""
DEADLINE_S = 10.0
"""From the first byte of the request to the last one of the answer, however the bytes trickle."""
LONGEST_REQUEST_BYTES = 131_072
"""Of the request line and all headers together; the standard library limits each line and the number of headers."""
_POLL_S = 1.0  # how often the thread checks deadlines, and whether to stop unless it is woken for that
_GUARDS = (
    ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; "
     "base-uri 'none'; form-action 'none'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
)  # fmt: skip
"""A page with names from a disk on it: whatever slips through escaping must do nothing."""

Headers = tuple[tuple[str, str], ...]
_LINES = (("Content-Type", "application/jsonl; charset=utf-8"),)
_TEXT, _HTML = ((("Content-Type", f"text/{x}; charset=utf-8"),) for x in ("plain", "html"))
_RUNBOOKS = "/runbooks/"
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True)
class Answers:
    """Where the server gets its answers; each is called on a thread of the server, and no probe may wait."""

    metrics: Callable[[str, str], tuple[Headers, bytes | bytearray]]
    """Headers and body; the arguments are what the client says in `Accept` and `Accept-Encoding`. It may wait."""
    unhealthy: Callable[[], str | None]  # why the agent is not alive, in one line; None = it is
    unready: Callable[[], str | None]  # why the agent is not ready, in one line; None = it is
    page: Callable[[], str]  # the agent's own page as HTML; it may wait, a few seconds
    findings: Callable[[], str | None] = str
    """Lines of the event contract; it may wait as long; None = not known now."""
    runbook: Callable[[str, bool], str | None] = lambda *_: None
    """Id, whether as HTML -> what `statewarden explain` prints; None = there is none."""


class HttpServer(ThreadingHTTPServer):
    """Serves `/metrics`, `/healthz`, `/readyz`, `/findings`, `/runbooks/ID`, `/`: a thread each. A context manager."""

    daemon_threads = True
    block_on_close = False  # a client that dawdles must not hold up the agent's end
    request_queue_size = 4 * MAX_CONNECTIONS

    def __init__(self, answers: Answers, host: str = "", port: int = 0) -> None:
        """Bind the port, 0 = any free one; an empty host is all of IPv4, `::` all. Nothing is answered before `start`.

        Raises `ConfigError`: the address cannot be listened on.
        """
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.timeout, self.known = _POLL_S, answers
        self.computing = threading.BoundedSemaphore(MAX_COMPUTED)
        self._lock, self._stopping = threading.Lock(), False
        self._open: dict[socket.socket, tuple[str, float]] = {}
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)
        self.start = self._thread.start
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            where = f"{host or '*'}:{port}"
            raise ConfigError(f"cannot listen on {where}: {error}; choose another address") from error
        self.port = int(self.server_address[1])

    def stop(self) -> None:
        """Stop answering and free the port."""
        self._stopping = True
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # wakes the thread: it need not poll often
        if self._thread.is_alive():
            self._thread.join()
        self.server_close()

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()

    def _run(self) -> None:
        while not self._stopping:
            self.handle_request()
            now_s = _CLOCK.monotonic_s()
            with self._lock:
                for connection in [x for x, (_, until_s) in self._open.items() if until_s <= now_s]:
                    self._hang_up(connection)

    def _hang_up(self, connection: socket.socket) -> None:
        del self._open[connection]
        with suppress(OSError):  # it has just ended by itself
            connection.shutdown(socket.SHUT_RDWR)  # wakes its thread

    def server_bind(self) -> None:
        """Bind, without asking the name service for this host's name."""
        TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take a connection in; if there are too many, hang up on the oldest of the client that has most."""
        with self._lock:
            if len(self._open) >= MAX_CONNECTIONS:
                hosts = Counter(host for host, _ in self._open.values())
                most = max(hosts.values())
                self._hang_up(next(x for x, (host, _) in self._open.items() if hosts[host] == most))
            self._open[request] = str(client_address[0]), _CLOCK.monotonic_s() + DEADLINE_S
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget a connection that ends."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Note a broken connection quietly instead of printing a traceback."""
        _LOG.debug("HTTP connection failed", exc_info=True)


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

    server: HttpServer
    default_request_version = "HTTP/1.0"  # a request without a version gets headers like any other
    wbufsize = -1

    def setup(self) -> None:
        super().setup()
        self.rfile = _Request(self.rfile)  # type: ignore[assignment]

    def do_GET(self) -> None:
        path, answers = self.path.partition("?")[0], self.server.known
        if path in ("/healthz", "/readyz"):  # short, at once, and what the agent's life hangs on
            why = answers.unhealthy() if path == "/healthz" else answers.unready()
            self._say(HTTPStatus.SERVICE_UNAVAILABLE if why else HTTPStatus.OK, why or "ok")
        elif not self.server.computing.acquire(blocking=False):
            self._say(HTTPStatus.SERVICE_UNAVAILABLE, "too many requests at a time")
        else:
            try:
                answer = self._compute(path)
            except Exception:  # noqa: BLE001 - the fence of this thread: the client gets a code, the log the rest
                _LOG.exception("HTTP answer failed", extra={"path": path})
                answer = None
            finally:
                self.server.computing.release()
            if answer is None:
                self._say(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error, see the log")
            else:
                self._send(*answer)

    do_HEAD = do_GET  # noqa: N815 - as above

    def _compute(self, path: str) -> tuple[HTTPStatus, Headers, bytes | bytearray]:
        if path == "/metrics":
            said = (self.headers.get_all(x, ()) for x in ("Accept", "Accept-Encoding"))
            return HTTPStatus.OK, *self.server.known.metrics(*(" ".join(",".join(x).split()) for x in said))
        if path == "/":
            return HTTPStatus.OK, _HTML, self.server.known.page().encode("utf-8", "backslashreplace")
        if path == "/findings":
            lines = self.server.known.findings()
            if lines is None:
                return (
                    HTTPStatus.SERVICE_UNAVAILABLE,
                    _TEXT,
                    b"the worker does not answer, or the first walk goes on\n",
                )
            return HTTPStatus.OK, _LINES, lines.encode("utf-8", "backslashreplace")
        as_html = "text/html" in self.headers.get("Accept", "")  # a browser says so, curl does not
        known, name = self.server.known, path.removeprefix(_RUNBOOKS)
        runbook = known.runbook(name, as_html) if name != path else None
        if runbook is not None:
            return HTTPStatus.OK, _HTML if as_html else _TEXT, runbook.encode("utf-8", "backslashreplace")
        return HTTPStatus.NOT_FOUND, _TEXT, b"not found\n"

    def _say(self, status: HTTPStatus, line: str) -> None:
        self._send(status, _TEXT, f"{' '.join(line.split())}\n".encode("utf-8", "backslashreplace"))

    def _send(self, status: HTTPStatus, headers: Headers, body: bytes | bytearray) -> None:
        self.send_response(status)
        for name, value in (*headers, ("Content-Length", f"{len(body)}"), ("Connection", "close"), *_GUARDS):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        self._say(HTTPStatus(code), f"{code:d} {HTTPStatus(code).phrase}")  # without a word of what it said

    def version_string(self) -> str:
        return "statewarden"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the standard library's name
        _LOG.debug("HTTP: %s", format % args)
