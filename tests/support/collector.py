"""A collector that takes CloudEvents batches, and answers as a test wants."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class Collector:
    """What was posted, and what to answer."""

    answers: list[int] = field(default_factory=list)  # status codes for the next requests, in order; then 202
    headers: dict[str, str] = field(default_factory=dict)  # added to every answer
    most_bytes: int = 1 << 30  # longest body; above it the answer is 413
    url: str = ""
    requests: list[dict[str, str]] = field(default_factory=list)  # headers of every request
    # Events of every request that was answered with 202
    events: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, headers: dict[str, str], body: bytes) -> int:
        """Take one request."""
        self.requests.append(headers)
        status = self.answers.pop(0) if self.answers else (413 if len(body) > self.most_bytes else 202)
        if status == 202:
            self.events += json.loads(body)
        return status


@contextmanager
def collecting(certificate: Path | None = None, key: Path | None = None) -> Iterator[Collector]:
    """Run a collector; with a certificate it speaks TLS."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(collector.answer({**dict(self.headers), "path": self.path}, body))
            for name, value in {"Content-Length": "0", **collector.headers}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that was killed in the middle of its request is what some tests want."""

    server = Server(("127.0.0.1", 0), Handler)
    scheme = "http"
    if certificate is not None and key is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        scheme = "https"
    collector.url = f"{scheme}://127.0.0.1:{server.server_port}/v1/events"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
