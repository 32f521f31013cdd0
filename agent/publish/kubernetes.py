"""Findings as Kubernetes Events, sent with the pod's service account; off by default, failures are counted.

One finding is one Event, changed when the finding escalates or is resolved; what waits is coalesced by finding.
"""

from __future__ import annotations

import http.client
import json
import logging
import ssl
import threading
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agent.clock import Clock
from agent.contract.codec import rfc3339
from agent.contract.events import Kind, Origin, Record, Severity, Status
from agent.delivery import KubernetesSettings
from agent.errors import ConfigError
from agent.publish.text import severity_rank

_LOG = logging.getLogger(__name__)
OUTCOMES = ("sent", "failed", "suppressed")
BURST, REFILL_S, WAITING_KEPT, LONGEST_MESSAGE = 10, 30.0, 256, 1_024
TIMEOUT_S, TURN_S, LONGEST_PAUSE_S = 5.0, 1.0, 120.0
CHANGES = ("message", "type", "lastTimestamp", "count")
Event = dict[str, Any]


class EventQueue:
    """Decides which findings become Events, and when. No clock, no network."""

    def __init__(self, least: Severity, origin: Origin, namespace: str) -> None:
        self._least, self._origin, self._namespace = least, origin, namespace
        # finding -> its rank, Events so far, time of the first
        self._known: dict[str, tuple[tuple[int, int], int, int]] = {}
        self.waiting: dict[str, Event] = {}
        self.suppressed = 0
        self._tokens, self._refilled_s = float(BURST), 0.0

    def receive(self, record: Record) -> None:
        """Keep a finding that opens, escalates or is resolved, unless an earlier start of the agent reported it."""
        if record.kind is not Kind.FINDING:
            return
        body, rank = record.body, severity_rank(record.body)
        id_, is_open = str(body["finding_id"]), body["status"] == Status.OPEN.value
        known = self._known.get(id_)
        if is_open and (rank[0] < self._least.rank or (known is not None and rank <= known[0])):
            return
        count, since_us = known[1:] if known and known[1] else (0, record.observed_at_us)
        if body.get("said_us") is not None:
            self._known[id_] = rank, count, since_us
            return
        if is_open:
            self._known[id_] = rank, count + 1, since_us
        elif self._known.pop(id_, None) is None:
            return
        self.waiting.pop(id_, None)
        if len(self.waiting) >= WAITING_KEPT:
            del self.waiting[next(iter(self.waiting))]
            self.suppressed += 1
        self.waiting[id_] = _event(record, self._origin, self._namespace, count + 1, since_us)

    def next(self, now_s: float) -> tuple[str, Event] | None:
        """Return the oldest Event that waits; it stays until `done`. None: there is none, or the rate is reached."""
        self._tokens = min(float(BURST), self._tokens + max(0.0, now_s - self._refilled_s) / REFILL_S)
        self._refilled_s = now_s
        if not self.waiting or self._tokens < 1.0:
            return None
        self._tokens -= 1.0
        return next(iter(self.waiting.items()))

    def done(self, id_: str, event: Event) -> None:
        """Forget what was sent or refused, unless the finding has changed since."""
        if self.waiting.get(id_) is event:
            del self.waiting[id_]


class KubernetesEvents:
    """Takes records on the agent's thread, sends Events on its own."""

    def __init__(self, settings: KubernetesSettings, origin: Origin, clock: Clock) -> None:
        """Read the service account; nothing is sent before `start`.

        Raises `ConfigError`: there is no service account, or no API server.
        """
        if not settings.api:
            raise ConfigError(
                "kubernetes.events is on, but no API server is known: set kubernetes.api outside a pod"
            )
        self._url, self._account = urlsplit(settings.api), Path(settings.service_account_dir)
        self._clock = clock
        self._namespace = origin.namespace or self._read("namespace")
        self._read("token")
        try:
            self._context = ssl.create_default_context(cafile=str(self._account / "ca.crt"))
        except OSError as error:
            raise ConfigError(f"cannot read certificates from {self._account / 'ca.crt'}: {error}") from error
        self._desk = EventQueue(Severity(settings.events), origin, self._namespace)
        self._counts = dict.fromkeys(OUTCOMES, 0)
        self._mutex, self._stopping = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="kubernetes-events", daemon=True)

    def offer(self, record: Record) -> None:
        """Take a record; never waits for the network."""
        with self._mutex:
            self._desk.receive(record)

    def outcomes(self) -> Mapping[str, int]:
        """Count Events by outcome."""
        return {**self._counts, "suppressed": self._desk.suppressed}

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self, deadline_s: float) -> None:
        """Send what the rate still allows, and end."""
        self._stopping.set()
        self._thread.join(deadline_s)

    def _run(self) -> None:
        failures, is_last = 0, False
        while not is_last:
            is_last = self._stopping.wait(min(LONGEST_PAUSE_S, TURN_S * 2.0 ** min(failures, 10)))
            failures = 0 if self._send_all() else failures + 1

    def _send_all(self) -> bool:
        """Send what the rate allows, oldest first; False: the API server is in trouble, try again."""
        while True:
            with self._mutex:
                ready = self._desk.next(self._clock.monotonic_s())
            if ready is None:
                return True
            id_, event = ready
            about = {"event": event["metadata"]["name"]}
            try:
                status = self._send(event)
            except Exception as error:  # noqa: BLE001 - the fence of this thread
                _LOG.warning("kubernetes: an Event was not sent", extra={**about, "reason": str(error)})
                return False
            if status == http.client.TOO_MANY_REQUESTS or status >= 500:
                return False
            self._counts["sent" if status < 300 else "failed"] += 1
            if status >= 300:
                refused = "kubernetes: the API server refuses an Event; allow create and patch on events"
                _LOG.error(refused, extra={**about, "status_code": status})
            with self._mutex:
                self._desk.done(id_, event)

    def _send(self, event: Mapping[str, Any]) -> int:
        """Change the Event, or create it: the API server may have forgotten it."""
        place, patch = f"/{event['metadata']['name']}", {name: event[name] for name in CHANGES}
        status = http.client.NOT_FOUND if event["count"] == 1 else self._request("PATCH", place, patch)
        if status == http.client.NOT_FOUND:
            status = self._request("POST", "", event)
        return self._request("PATCH", place, patch) if status == http.client.CONFLICT else status

    def _request(self, method: str, place: str, body: Mapping[str, Any]) -> int:
        kind = "merge-patch+json" if method == "PATCH" else "json"
        head = {"Content-Type": f"application/{kind}", "Authorization": f"Bearer {self._read('token')}"}
        path = f"/api/v1/namespaces/{self._namespace}/events{place}"
        where = self._url.hostname or "", self._url.port
        with closing(
            http.client.HTTPSConnection(*where, timeout=TIMEOUT_S, context=self._context)
        ) as connection:
            connection.request(method, path, json.dumps(body), head)
            return connection.getresponse().status

    def _read(self, name: str) -> str:
        """Read a file of the service account; the token is rotated, so it is read each time."""
        try:
            return (self._account / name).read_text("utf-8").strip()
        except OSError as error:
            advice = "mount the service account's token"
            raise ConfigError(f"cannot read {self._account / name}: {error.strerror}; {advice}") from error


def _event(record: Record, origin: Origin, namespace: str, count: int, since_us: int) -> dict[str, Any]:
    body, is_open = record.body, record.body["status"] == Status.OPEN.value
    place = "/".join(str(body[x]) for x in ("application_id", "task_id", "store") if body.get(x))
    head = f"{body['severity']}, {body['confidence']}" if is_open else "resolved"
    message = (
        f"[{head}] {place}: {body['summary']} Next: {body['next_action']} (finding {body['finding_id']})"
    )
    pod = {"apiVersion": "v1", "kind": "Pod", "name": origin.pod, "namespace": namespace}
    return {
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": f"{origin.pod[:200]}.{body['finding_id']}", "namespace": namespace},
        "involvedObject": pod | ({"uid": origin.pod_uid} if origin.pod_uid != origin.pod else {}),
        "reason": "".join(word.capitalize() for word in str(body["detector"]).split("-")),
        "source": {"component": "statewarden", "host": origin.node}, "reportingComponent": "statewarden",
        "reportingInstance": origin.pod, "firstTimestamp": f"{rfc3339(since_us)[:19]}Z",
        "lastTimestamp": f"{rfc3339(record.observed_at_us)[:19]}Z", "message": message[:LONGEST_MESSAGE],
        "type": "Warning" if is_open and body["severity"] != Severity.INFO.value else "Normal", "count": count,
    }  # fmt: skip
