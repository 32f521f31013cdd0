"""The HTTP server answers scrapes and probes, and gives strangers nothing."""

from __future__ import annotations

import http.client
import logging
import socket
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import agent.publish.http
from agent.errors import ConfigError
from agent.publish.http import Answers, HttpServer


@dataclass
class State:
    """What the server is told."""

    unhealthy: str | None = None
    unready: str | None = None
    broken: bool = False

    def metrics(self, openmetrics: bool) -> tuple[str, bytes]:
        """Give a body that shows what was asked for."""
        if self.broken:
            raise RuntimeError("secret detail")
        return ("application/openmetrics-text", b"om\n") if openmetrics else ("text/plain", b"plain\n")


@pytest.fixture
def state() -> State:
    """Give the state behind the server."""
    return State()


@pytest.fixture
def server(state: State) -> Iterator[HttpServer]:
    """Start a server on a free port of the loopback."""
    answers = Answers(state.metrics, lambda: state.unhealthy, lambda: state.unready, lambda: "<p>\udcff</p>")
    with HttpServer(answers, "127.0.0.1", 0) as running:
        yield running


def ask(
    server: HttpServer, path: str, method: str = "GET", accept: str = ""
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """Send one request."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.request(method, path, headers={"Accept": accept})
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def test_probes_answer_by_their_reason(server: HttpServer, state: State) -> None:
    """200 while there is no reason, 503 with the reason in one line as long as there is one."""
    assert ask(server, "/healthz")[0::2] == (200, b"ok\n")
    assert ask(server, "/readyz")[0::2] == (200, b"ok\n")
    state.unhealthy = "stuck\nfor long"
    assert ask(server, "/healthz")[0::2] == (503, b"stuck for long\n")
    assert ask(server, "/readyz")[0] == 200
    state.unhealthy, state.unready = None, "first scan"
    assert ask(server, "/healthz")[0] == 200
    assert ask(server, "/readyz")[0::2] == (503, b"first scan\n")


def test_metrics_in_the_form_that_was_asked_for(server: HttpServer) -> None:
    """Text by default, OpenMetrics if the scraper accepts it; a query changes nothing."""
    status, headers, body = ask(server, "/metrics?x=1", accept="text/plain")
    assert (status, headers["Content-Type"], body) == (200, "text/plain", b"plain\n")
    accept = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
    assert ask(server, "/metrics", accept=accept)[2] == b"om\n"


def test_head_has_no_body(server: HttpServer) -> None:
    """HEAD answers with the length and without the body."""
    status, headers, body = ask(server, "/metrics", "HEAD")
    assert (status, headers["Content-Length"], body) == (200, "6", b"")


@pytest.mark.parametrize(("path", "code"), [("/", 200), ("/etc/passwd", 404), ("/metrics/x", 404)])
def test_other_paths(server: HttpServer, path: str, code: int) -> None:
    """The page is there; whatever is not known is not found."""
    status, headers, body = ask(server, path)
    assert (status, body) == (code, b"<p>\\udcff</p>" if path == "/" else b"not found\n")
    assert headers["Server"] == "statewarden"


def test_the_page_is_guarded(server: HttpServer) -> None:
    """Whatever slips through escaping may load, run and send nothing."""
    _, headers, _ = ask(server, "/")
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script" not in policy
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS"])
def test_other_methods_are_refused(server: HttpServer, method: str) -> None:
    """Nothing but GET and HEAD is served, and the refusal is plain text."""
    status, headers, body = ask(server, "/metrics", method)
    assert status == 501
    assert b"<" not in body
    assert headers["Content-Type"].startswith("text/plain")


def test_a_failing_answer_tells_the_client_nothing(
    server: HttpServer, state: State, caplog: pytest.LogCaptureFixture
) -> None:
    """An exception is a 500 without detail for the client, a log line for us, and not the server's end."""
    state.broken = True
    with caplog.at_level(logging.ERROR):
        status, _, body = ask(server, "/metrics")
    assert (status, body) == (500, b"internal error, see the log\n")
    assert "HTTP answer failed" in caplog.text
    assert ask(server, "/healthz")[0] == 200


def test_a_flood_of_idle_connections_is_turned_away(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More connections than slots are hung up on at once, however long the others stay idle."""
    monkeypatch.setattr(agent.publish.http._Handler, "timeout", 600)
    idle = [socket.create_connection(("127.0.0.1", server.port), timeout=10) for _ in range(16)]
    try:
        for _ in range(8):
            with socket.create_connection(("127.0.0.1", server.port), timeout=10) as surplus:
                assert surplus.recv(1) == b""
    finally:
        for connection in idle:
            connection.close()


def test_an_overlong_request_line_is_refused(server: HttpServer) -> None:
    """A request line beyond the standard library's limit gets 414."""
    assert ask(server, "/" + "a" * 70_000)[0] == 414


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /healthz\r\n\r\n", 400),
        (b"\xff\x00\r\n\r\n", 400),
        (b"GET /healthz SIP/2.0\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\n" + b"a: b\r\n" * 20_000 + b"\r\n", 431),
        (b"get /healthz HTTP/1.1\r\n\r\n", 501),
        (b"GET /healthz HTTP/1.1\nAccept: x\n\n", 200),
    ],
)
def test_odd_requests_get_a_plain_answer(server: HttpServer, request_bytes: bytes, status: int) -> None:
    """Whatever is no request is refused by its number, in text; bare line ends are forgiven."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(request_bytes)
        answer = connection.recv(1 << 16)
    assert answer.startswith(b"HTTP/1.0 %d " % status)
    assert b"Content-Type: text/plain" in answer
    assert ask(server, "/healthz")[0] == 200


def test_a_connection_without_a_word_is_closed(server: HttpServer) -> None:
    """A port check gets no answer and leaves nothing behind."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""


def test_a_port_in_use_is_a_configuration_error(server: HttpServer, state: State) -> None:
    """The message names the address."""
    answers = Answers(state.metrics, lambda: None, lambda: None, lambda: "")
    with pytest.raises(ConfigError, match=rf"cannot listen on 127\.0\.0\.1:{server.port}"):
        HttpServer(answers, "127.0.0.1", server.port)


def test_stop_frees_the_port_even_if_never_started(state: State) -> None:
    """A server that was only bound can be stopped, and its port bound again."""
    answers = Answers(state.metrics, lambda: None, lambda: None, lambda: "")
    first = HttpServer(answers, "127.0.0.1", 0)
    port = first.port
    first.stop()
    HttpServer(answers, "127.0.0.1", port).stop()


@pytest.mark.timeout(30)
def test_stop_wakes_the_thread(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever stops does not wait for the thread's next look: here it would come in an hour."""
    monkeypatch.setattr(agent.publish.http, "_STOP_POLL_S", 3600.0)
    server = HttpServer(Answers(state.metrics, lambda: None, lambda: None, lambda: ""), "127.0.0.1", 0)
    server.start()
    server.stop()
    assert not server._thread.is_alive()
