"""The HTTP server answers scrapes and probes, and gives strangers nothing."""

from __future__ import annotations

import http.client
import logging
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import pytest

import agent.publish.http
from agent.errors import ConfigError
from agent.publish.http import MAX_COMPUTED, MAX_CONNECTIONS, Answers, HttpServer

METRICS = b" /metrics HTTP/1.1\r\n\r\n"


@dataclass
class State:
    unhealthy: str | None = None
    unready: str | None = None
    broken: bool = False
    gate: threading.Event | None = None
    asked: int = 0
    size: int = 0

    def was_asked(self, times: int) -> bool:
        """Tell whether metrics were asked for so many times."""
        return self.asked == times

    def metrics(self, accept: str, accept_encoding: str) -> tuple[tuple[tuple[str, str], ...], bytes]:
        """Give a body that shows what was asked for, or one of the wanted size."""
        self.asked += 1
        if self.gate is not None:
            self.gate.wait(300)
        if self.broken:
            raise RuntimeError("secret detail")
        shown = f"{accept}|{accept_encoding}\n".encode()
        return (("Content-Type", "text/x-metrics"),), b"x" * self.size or shown


@pytest.fixture
def state() -> State:
    return State()


@pytest.fixture
def server(state: State, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpServer]:
    """Start a server on a free port of the loopback; it is patient, because the machine may be busy."""
    monkeypatch.setattr(agent.publish.http, "DEADLINE_S", 600.0)
    answers = Answers(
        state.metrics,
        lambda: state.unhealthy,
        lambda: state.unready,
        lambda: "<p>\udcff</p>",
        runbook=lambda name, as_html: ["# x", "<h1>x"][as_html] if name == "detectors/x" else None,
    )
    with HttpServer(answers, "127.0.0.1", 0) as running:
        yield running


def ask(
    server: HttpServer, path: str, method: str = "GET", headers: Mapping[str, str] = MappingProxyType({})
) -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    try:
        connection.request(method, path, headers=dict(headers))
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


SlowClient = Callable[..., socket.socket]


@pytest.fixture
def slow_client(server: HttpServer) -> Iterator[SlowClient]:
    """Give what opens a connection that began to ask; all are closed in the end."""
    with ExitStack() as opened:

        def connect(host: str = "127.0.0.1", more: bytes = b"") -> socket.socket:
            place = ("127.0.0.1", server.port)
            connection = opened.enter_context(socket.create_connection(place, 120, source_address=(host, 0)))
            connection.sendall(b"GET" + more)
            return connection

        yield connect


def read_all(connection: socket.socket) -> bytes:
    """Read until the server hangs up."""
    parts = []
    with suppress(ConnectionResetError):  # it did not read what it was still sent
        while part := connection.recv(1 << 20):
            parts.append(part)
    return b"".join(parts)


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


def test_metrics_hear_what_the_client_reads(server: HttpServer) -> None:
    """What a client says about forms and packing goes to the exposition, in one line; a query changes nothing."""
    status, headers, body = ask(
        server, "/metrics?x=1", headers={"Accept": "text/plain,\r\n text/*", "Accept-Encoding": "gzip"}
    )
    assert (status, headers["Content-Type"], body) == (200, "text/x-metrics", b"text/plain, text/*|gzip\n")
    assert ask(server, "/metrics")[2] == b"|identity\n"


def test_head_has_no_body(server: HttpServer) -> None:
    """HEAD answers with the length and without the body."""
    status, headers, body = ask(server, "/metrics", "HEAD")
    assert (status, headers["Content-Length"], body) == (200, "10", b"")


@pytest.mark.parametrize(
    ("path", "code"), [("/", 200), ("/runbooks/detectors/x", 200), ("/etc/passwd", 404), ("/runbooks/", 404)]
)
def test_other_paths(server: HttpServer, path: str, code: int) -> None:
    """The page is there; whatever is not known is not found."""
    status, headers, body = ask(server, path)
    said = {"/": b"<p>\\udcff</p>", "/runbooks/detectors/x": b"# x"}
    assert (status, body) == (code, said.get(path, b"not found\n"))
    assert headers["Server"] == "statewarden"


@pytest.mark.parametrize(
    ("accept", "kind", "body"),
    [("text/html,*/*;q=0.8", "html", b"<h1>x"), ("*/*", "plain", b"# x"), ("", "plain", b"# x")],
)
def test_a_browser_gets_a_runbook_as_html(server: HttpServer, accept: str, kind: str, body: bytes) -> None:
    """Who follows an alert's link reads it on a phone; who asks with curl reads it on a terminal."""
    status, headers, said = ask(server, "/runbooks/detectors/x", headers={"Accept": accept})
    assert (status, headers["Content-Type"], said) == (200, f"text/{kind}; charset=utf-8", body)


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


def test_a_failing_answer_shows_the_client_nothing(
    server: HttpServer, state: State, caplog: pytest.LogCaptureFixture
) -> None:
    """An exception is a 500 without detail for the client, a log line for us, and not the server's end."""
    state.broken = True
    with caplog.at_level(logging.ERROR):
        status, _, body = ask(server, "/metrics")
    assert (status, body) == (500, b"internal error, see the log\n")
    assert "HTTP answer failed" in caplog.text
    assert ask(server, "/healthz")[0] == 200


def test_a_flood_of_slow_askers_keeps_no_one_out(server: HttpServer, slow_client: SlowClient) -> None:
    """However many connections never finish asking: a probe from the same host gets its answer, the oldest go."""
    slow = [slow_client() for _ in range(2 * MAX_CONNECTIONS)]
    for _ in range(4):
        assert ask(server, "/healthz")[0::2] == (200, b"ok\n")
    assert slow[0].recv(1) == b""


def test_who_has_most_connections_loses_one(slow_client: SlowClient) -> None:
    """A flood from one host takes no place from another host's only connection, even if that came first."""
    other = slow_client("127.0.0.2")
    flood = [slow_client() for _ in range(2 * MAX_CONNECTIONS)]
    assert flood[0].recv(1) == b""
    other.sendall(b" /healthz HTTP/1.1\r\n\r\n")
    assert other.recv(12) == b"HTTP/1.0 200"


def test_slow_answers_do_not_hold_up_probes(
    server: HttpServer, state: State, slow_client: SlowClient, eventually: Callable[..., object]
) -> None:
    """As many long answers as there may be: one more is told to come again, probes are answered."""
    state.gate = threading.Event()
    try:
        waiting = []
        for count in range(1, MAX_COMPUTED + 1):
            waiting.append(slow_client(more=METRICS))
            eventually(partial(state.was_asked, count))
        assert ask(server, "/metrics")[0::2] == (503, b"too many requests at a time\n")
        assert ask(server, "/healthz")[0] == ask(server, "/readyz")[0] == 200
        state.gate.set()
        assert [x.recv(12) for x in waiting] == [b"HTTP/1.0 200"] * len(waiting)
        eventually(lambda: ask(server, "/metrics")[0] == 200)
    finally:
        state.gate.set()


def test_who_takes_no_answer_keeps_no_one_out(
    server: HttpServer, state: State, slow_client: SlowClient, eventually: Callable[..., object]
) -> None:
    """However many clients ask for metrics and never read them: a scraper gets its own whole, the oldest go."""
    state.size = 16 << 20
    deaf = []
    for count in range(1, 2 * MAX_CONNECTIONS + 1):
        deaf.append(slow_client(more=METRICS))
        eventually(partial(state.was_asked, count))
    for _ in range(3):
        assert len(ask(server, "/metrics")[2]) == state.size
    assert ask(server, "/healthz")[0] == 200
    assert len(read_all(deaf[0])) < state.size


def test_a_trickle_has_one_deadline(slow_client: SlowClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every byte in time is not enough: a byte now and then gets no answer but an end."""
    monkeypatch.setattr(agent.publish.http, "DEADLINE_S", 0.2)
    answer, connection = None, slow_client()
    connection.settimeout(0.01)
    while answer is None:
        try:
            connection.sendall(b"x")
            answer = connection.recv(1)
        except TimeoutError:
            continue
        except ConnectionError:  # the end came while a byte was on its way
            answer = b""
    assert answer == b""


def test_an_answer_that_no_one_takes_has_the_same_deadline(
    server: HttpServer, state: State, slow_client: SlowClient, monkeypatch: pytest.MonkeyPatch,
    eventually: Callable[..., object],
) -> None:  # fmt: skip
    """A client that asks and does not read is hung up on; what was on its way is not whole."""
    monkeypatch.setattr(agent.publish.http, "DEADLINE_S", 0.2)
    state.size = 16 << 20
    connection = slow_client(more=METRICS)
    eventually(partial(state.was_asked, 1))
    eventually(lambda: not server._open)
    assert len(read_all(connection)) < state.size


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /healthz\r\n\r\n", 200),
        (b"GET\r\n\r\n", 400),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"\xff\x00\r\n\r\n", 400),
        (b"GET /healthz SIP/2.0\r\n\r\n", 400),
        (b"GET /healthz HTTP/2.0\r\n\r\n", 505),
        (b"GET /healthz HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n", 431),
        (b"GET /healthz HTTP/1.1\r\n" + b"a: " + b"b" * 66_000 + b"\r\n\r\n", 431),
        (b"GET /healthz HTTP/1.1\r\n" + (b"a: " + b"b" * 3_000 + b"\r\n") * 45 + b"\r\n", 431),
        (b"get /healthz HTTP/1.1\r\n\r\n", 501),
        (b"GET /healthz HTTP/1.1\nAccept: x\n\n", 200),
    ],
)
def test_odd_requests_get_a_plain_answer(server: HttpServer, request_bytes: bytes, status: int) -> None:
    """Whatever is no request is refused by its number, in text; bare line ends are forgiven."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as connection:
        connection.sendall(request_bytes)
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.0 %d " % status)
    assert b"Content-Type: text/plain" in answer
    assert ask(server, "/healthz")[0] == 200


def test_a_connection_without_a_word_is_closed(server: HttpServer) -> None:
    """A port check gets no answer and leaves nothing behind."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as connection:
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""


NOTHING = Answers(lambda *_: ((), b""), lambda: None, lambda: None, str)


def test_a_port_in_use_is_a_configuration_error(server: HttpServer) -> None:
    """The message names the address."""
    with pytest.raises(ConfigError, match=rf"cannot listen on 127\.0\.0\.1:{server.port}"):
        HttpServer(NOTHING, "127.0.0.1", server.port)


def test_stop_frees_the_port_even_if_never_started() -> None:
    """A server that was only bound can be stopped, and its port bound again."""
    first = HttpServer(NOTHING, "127.0.0.1", 0)
    first.stop()
    HttpServer(NOTHING, "127.0.0.1", first.port).stop()


def test_stop_wakes_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever stops does not wait for the thread's next look: here it would come in an hour."""
    monkeypatch.setattr(agent.publish.http, "_POLL_S", 3600.0)
    server = HttpServer(NOTHING, "127.0.0.1", 0)
    server.start()
    server.stop()
    assert not server._thread.is_alive()
