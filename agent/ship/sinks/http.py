"""The HTTP sink: CloudEvents batches to a collector, with TLS and a bearer token from a file. Standard library only.

Source:
    CloudEvents HTTP protocol binding 1.0.2, section 3.3 (batched content mode).
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from agent.delivery import ShipSettings, Target
from agent.errors import ConfigError, PermanentShipError, RetryableShipError
from agent.ship.sinks.base import FIX_DELAY_S, read_text

BATCH_TYPE = "application/cloudevents-batch+json; charset=utf-8"
BATCH_EVENTS = 500
BATCH_BYTES = 512 * 1024

LONGEST_RETRY_AFTER_S = 300.0
_TOO_LARGE = 413
_NEVER = frozenset({400, 415, 422})
"""The collector read these events and will never take them; everything else is fixed or passes."""

_FIXABLE = frozenset({401, 403, 404, 405, 407, 410})


class HttpSink:
    """Posts the events of a segment in batches; every batch must be answered with 2xx."""

    def __init__(self, target: Target, settings: ShipSettings) -> None:
        """Prepare; nothing is sent. Raises `ConfigError`: certificates or token cannot be read."""
        self._url = urlsplit(target.url)
        self._settings = settings
        self._context: ssl.SSLContext | None = None
        if self._url.scheme == "https":
            self._context = _context(settings.ca_file)
        if settings.token_file:
            read_text(settings.token_file)

    def put(self, name: str, payload: bytes) -> None:
        """Post a segment; see `Sink.put`. A batch that is too large is halved until single events remain.

        Raises `RetryableShipError`: the collector cannot be reached, or may take it later. Raises
        `PermanentShipError`: it will never take one of the events.
        """
        connection = self._connection()
        try:
            waiting = batches(payload.splitlines())[::-1]
            while waiting:
                batch = waiting.pop()
                status, retry_after_s = self._post(connection, batch)
                if status == _TOO_LARGE and len(batch) > 1:
                    middle = len(batch) // 2
                    waiting += [batch[middle:], batch[:middle]]
                elif not 200 <= status < 300:
                    raise _refusal(name, status, retry_after_s)
        except (OSError, http.client.HTTPException) as error:
            raise RetryableShipError(f"{name}: {type(error).__name__}: {error}") from error
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        host, port, timeout_s = self._url.hostname or "", self._url.port, self._settings.timeout_seconds
        if self._context is not None:
            return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=self._context)
        return http.client.HTTPConnection(host, port, timeout=timeout_s)

    def _post(self, connection: http.client.HTTPConnection, batch: Sequence[bytes]) -> tuple[int, float]:
        headers = {"Content-Type": BATCH_TYPE, "User-Agent": "statewarden"}
        if self._settings.token_file:
            try:
                headers["Authorization"] = f"Bearer {read_text(self._settings.token_file)}"
            except ConfigError as error:
                raise RetryableShipError(str(error), FIX_DELAY_S) from error
        connection.request("POST", self._url.path or "/", b"[" + b",".join(batch) + b"]", headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status, _seconds(answer.headers.get("Retry-After", ""))


def make(target: Target, settings: ShipSettings, state_directory: Path | None) -> HttpSink:
    """Make the sink of a target; see `Make`."""
    return HttpSink(target, settings)


def batches(lines: Sequence[bytes]) -> list[list[bytes]]:
    """Cut lines into batches, in order, by number and size; a line that is larger is its own batch."""
    found: list[list[bytes]] = []
    size = 0
    for line in lines:
        if not found or len(found[-1]) >= BATCH_EVENTS or size + len(line) > BATCH_BYTES:
            found.append([])
            size = 0
        found[-1].append(line)
        size += len(line) + 1
    return found


def _refusal(name: str, status: int, retry_after_s: float) -> PermanentShipError | RetryableShipError:
    text = f"{name}: the collector answered {status} {http.client.responses.get(status, '')}".rstrip()
    if status in _NEVER or status == _TOO_LARGE:
        return PermanentShipError(text)
    return RetryableShipError(text, FIX_DELAY_S if status in _FIXABLE else max(1.0, retry_after_s))


def _seconds(retry_after: str) -> float:
    """Read `Retry-After` in seconds; a date, or nothing, is 0: the shipper has its own delay."""
    return min(float(retry_after), LONGEST_RETRY_AFTER_S) if retry_after.isdecimal() else 0.0


def _context(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"ship.ca_file {ca_file}: no certificates can be read from it: {error}") from error
