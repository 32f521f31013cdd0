"""An HTTP server on the loopback for tests: a function says what it answers."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple


class Request(NamedTuple):
    """What a client sent."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Answer = tuple[int, Mapping[str, str], bytes]
"""Status, headers, body."""


@contextmanager
def answering(
    answer: Callable[[Request], Answer], certificate: Path | None = None, key: Path | None = None
) -> Iterator[str]:
    """Answer until the block ends, at the address that is given; with a certificate over TLS."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def take(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            status, headers, text = answer(Request(self.command, self.path, dict(self.headers), body))
            self.send_response(status)
            for name, value in {"Content-Length": str(len(text)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PUT = do_PATCH = take  # noqa: N815 - the names that the base class calls

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """A client that was killed in the middle of its request is what some tests want."""

    server, scheme = Server(("127.0.0.1", 0), Handler), "http"
    if certificate is not None and key is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        scheme = "https"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"{scheme}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
