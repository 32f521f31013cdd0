"""Sends Events to the Kubernetes API with the pod's service account; optional, off by default.

Needs `create` and `patch` on `events` in the pod's own namespace, and nothing else. Nothing that goes wrong here
touches the audit: what is unknown is counted.
"""

from __future__ import annotations

import http.client
import json
import logging
import ssl
import threading
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from agent.clock import Clock
from agent.contract.events import Origin, Record, Severity
from agent.delivery import KubernetesSettings
from agent.errors import ConfigError
from agent.publish.event_desk import EventDesk, EventOutcome, News

_LOG = logging.getLogger(__name__)
TIMEOUT_S = 5.0
TURN_S = 1.0
LONGEST_PAUSE_S = 120.0
MERGE_PATCH = "application/merge-patch+json"
_CONFLICT, _GONE, _TOO_MANY = 409, 404, 429


class KubernetesEvents:
    """Takes records on the agent's thread, sends Events on its own."""

    def __init__(self, settings: KubernetesSettings, origin: Origin, clock: Clock) -> None:
        """Read the service account; nothing is sent before `start`.

        Raises:
            ConfigError: there is no API server to talk to, or no service account.
        """
        if not settings.api:
            raise ConfigError(
                "kubernetes.events is on, but no API server is known: set kubernetes.api outside a pod"
            )
        self._account, self._clock = Path(settings.service_account_dir), clock
        self._url = urlsplit(settings.api)
        self._namespace = origin.namespace or self._read("namespace")
        self._read("token")
        try:
            self._context = ssl.create_default_context(cafile=str(self._account / "ca.crt"))
        except OSError as error:
            raise ConfigError(f"cannot read certificates from {self._account / 'ca.crt'}: {error}") from error
        self._desk = EventDesk(Severity(settings.events), origin, self._namespace)
        self._mutex, self._stopping = threading.Lock(), threading.Event()
        self._sent = self._failed = 0
        self._failures_in_a_row = 0
        self._thread = threading.Thread(target=self._run, name="kubernetes-events", daemon=True)

    def offer(self, record: Record) -> None:
        """Take a record; never waits for the network."""
        with self._mutex:
            self._desk.receive(record)

    def outcomes(self) -> Mapping[str, int]:
        """Count Events by outcome."""
        return {
            EventOutcome.SENT.value: self._sent,
            EventOutcome.FAILED.value: self._failed,
            EventOutcome.SUPPRESSED.value: self._desk.suppressed,
        }

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self, deadline_s: float) -> None:
        """Send what the rate still allows, and end."""
        self._stopping.set()
        self._thread.join(deadline_s)

    def _run(self) -> None:
        pause_s = TURN_S
        while not self._stopping.wait(pause_s):
            pause_s = self._turn()
        self._turn()

    def _turn(self) -> float:
        """Send what may be sent; return how long to wait."""
        while True:
            with self._mutex:
                ready = self._desk.next(self._clock.monotonic_s())
            if ready is None:
                return TURN_S
            finding_id, news = ready
            try:
                settled = self._send(news)
            except Exception as error:  # noqa: BLE001 - the fence of this thread
                settled = False
                _LOG.warning(
                    "kubernetes: an Event was not sent", extra={"event": news.name, "reason": str(error)}
                )
            if not settled:
                self._failures_in_a_row += 1
                return min(LONGEST_PAUSE_S, TURN_S * 2.0 ** min(self._failures_in_a_row, 10))
            self._failures_in_a_row = 0
            with self._mutex:
                self._desk.done(finding_id, news)

    def _send(self, news: News) -> bool:
        """Create the Event, or change the one that is there; say whether it is settled, for better or worse."""
        events = f"/api/v1/namespaces/{self._namespace}/events"
        first_time = news.patch["count"] == 1
        status = _CONFLICT
        if first_time:
            status = self._request("POST", events, "application/json", news.body)
        if status == _CONFLICT:
            status = self._request("PATCH", f"{events}/{news.name}", MERGE_PATCH, news.patch)
            if status == _GONE:  # the API server forgets Events after an hour
                status = self._request("POST", events, "application/json", news.body)
        if 200 <= status < 300:
            self._sent += 1
            return True
        if status == _TOO_MANY or status >= 500:
            return False
        self._failed += 1
        _LOG.error(
            "kubernetes: the API server refuses an Event; allow create and patch on events",
            extra={"event": news.name, "status_code": status},
        )
        return True

    def _request(self, method: str, path: str, content_type: str, body: Mapping[str, object]) -> int:
        connection = http.client.HTTPSConnection(
            self._url.hostname or "", self._url.port, timeout=TIMEOUT_S, context=self._context
        )
        try:
            headers = {"Content-Type": content_type, "Authorization": f"Bearer {self._read('token')}"}
            connection.request(method, path, json.dumps(body), headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status
        finally:
            connection.close()

    def _read(self, name: str) -> str:
        """Read a file of the service account; the token is rotated, so it is read each time.

        Raises:
            ConfigError: it cannot be read.
        """
        try:
            return (self._account / name).read_text("utf-8").strip()
        except OSError as error:
            raise ConfigError(
                f"cannot read {self._account / name}: {error.strerror}; mount the service account's token"
            ) from error
