"""Clients that send their request byte by byte and never end: nobody's probe may wait for them."""

from __future__ import annotations

import socket
import time
import urllib.request
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

BYTE_EVERY_S = 3.0
PROBE_TIMEOUT_S = 3.0


def probe_while_trickling(url: str, clients: int, seconds: float) -> list[str]:
    """Keep connections open, one byte now and then, and ask `/healthz` in between.

    Args:
        url: Of the agent.
        clients: How many connections.
        seconds: For how long.

    Returns:
        Probes that got no answer, one sentence each.
    """
    place = urlsplit(url)
    faults = []
    with ExitStack() as stack:
        connections = [
            stack.enter_context(socket.create_connection((place.hostname, place.port)))
            for _ in range(clients)
        ]
        for connection in connections:
            connection.sendall(b"GET ")
        for turn in range(1, int(seconds / BYTE_EVERY_S) + 1):
            time.sleep(BYTE_EVERY_S)
            for connection in connections:
                with suppress(OSError):  # the agent may hang up on it
                    connection.sendall(b"x")
            if (problem := _probe(url)) is not None:
                faults.append(f"/healthz after {turn * BYTE_EVERY_S:.0f} s of trickling: {problem}")
    return faults


def _probe(url: str) -> str | None:
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=PROBE_TIMEOUT_S) as answer:
            answer.read()
    except OSError as error:
        return str(error)
    return None
