"""A collector that takes CloudEvents batches, and answers as a test wants."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.answering import Answer, Request, answering


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
        self.requests.append(headers)
        status = self.answers.pop(0) if self.answers else (413 if len(body) > self.most_bytes else 202)
        if status == 202:
            self.events += json.loads(body)
        return status


@contextmanager
def collecting(certificate: Path | None = None, key: Path | None = None) -> Iterator[Collector]:
    """Run a collector; with a certificate it speaks TLS."""
    collector = Collector()

    def take(request: Request) -> Answer:
        return (
            collector.answer({**request.headers, "path": request.path}, request.body),
            collector.headers,
            b"",
        )

    with answering(take, certificate, key) as address:
        collector.url = f"{address}/v1/events"
        yield collector
