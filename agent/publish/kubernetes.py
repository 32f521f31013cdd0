"""Findings as Kubernetes Events: one when it opens, one whenever it gets worse, one when it ends; off by default."""

from __future__ import annotations

import json
import logging
import ssl
import threading
from collections import deque
from contextlib import closing
from http.client import CONFLICT, TOO_MANY_REQUESTS, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agent.contract.codec import rfc3339
from agent.contract.events import Kind, Origin, Record, Severity, Status
from agent.delivery import KubernetesSettings
from agent.errors import ConfigError
from agent.publish.text import severity_rank

_LOG = logging.getLogger(__name__)
OUTCOMES = ("sent", "failed", "suppressed")
BURST, REFILL_S, WAITING_KEPT, LONGEST_MESSAGE = 10, 30.0, 256, 1_024
TIMEOUT_S, TURN_S, LONGEST_PAUSE_S = 5.0, 1.0, 120.0


class KubernetesEvents(threading.Thread):
    """Takes records on the agent's thread, sends Events with the pod's service account on its own."""

    def __init__(self, settings: KubernetesSettings, origin: Origin) -> None:
        """Read the service account. Raises `ConfigError`: there is none, or no API server."""
        super().__init__(name="kubernetes-events", daemon=True)
        if not settings.api:
            raise ConfigError("kubernetes.events knows no API server: set kubernetes.api outside a pod")
        self._host, self._least = urlsplit(settings.api).netloc, Severity(settings.events).rank
        account = Path(settings.service_account_dir)
        self._origin, self._token, authority = origin, account / "token", account / "ca.crt"
        try:
            self._namespace = origin.namespace or (account / "namespace").read_text("utf-8").strip()
            self._token.read_bytes()
            self._context = ssl.create_default_context(cafile=authority)
        except OSError as error:
            why = f"{error.strerror}; mount the service account's token"
            raise ConfigError(f"cannot read {error.filename or authority}: {why}") from error
        self._known: dict[str, tuple[int, int]] = {}  # open finding -> its worst rank
        self.waiting: deque[dict[str, Any]] = deque()
        self.outcomes = dict.fromkeys(OUTCOMES, 0)
        self._stopping = threading.Event()

    def offer(self, record: Record) -> None:
        """Take a finding that opens, gets worse or ends, if no earlier start of the agent reported it; never waits."""
        if record.kind is not Kind.FINDING:
            return
        id_, rank = str(record.body["finding_id"]), severity_rank(record.body)
        if record.body["status"] != Status.OPEN.value:
            is_news = self._known.pop(id_, None) is not None
        elif is_news := rank[0] >= self._least and rank > self._known.get(id_, (-1, -1)):
            self._known[id_] = rank
            is_news = record.body.get("said_us") is None
        if is_news and len(self.waiting) < WAITING_KEPT:
            self.waiting.append(_event(record, self._origin, self._namespace))
        elif is_news:
            self.outcomes["suppressed"] += 1

    def stop(self, deadline_s: float) -> None:
        """Send what the rate still allows, and end."""
        self._stopping.set()
        self.join(deadline_s)

    def run(self) -> None:
        """Send what waits, oldest first: a burst, then at a steady rate."""
        allowed, pause_s, is_last = float(BURST), TURN_S, False
        while not is_last:
            is_last, is_well = self._stopping.wait(pause_s), True
            allowed = min(BURST, allowed + pause_s / REFILL_S)
            while self.waiting and is_well and allowed >= 1:
                is_well, allowed = self._send(self.waiting[0]), allowed - 1
            pause_s = TURN_S if is_well else min(LONGEST_PAUSE_S, 2 * pause_s)

    def _send(self, event: dict[str, Any]) -> bool:
        """Create the oldest Event that waits; False: the API server is in trouble, try again."""
        name = event["metadata"]["name"]
        try:
            token = self._token.read_text("utf-8").strip()  # each time: it is rotated
            head = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
            with closing(HTTPSConnection(self._host, timeout=TIMEOUT_S, context=self._context)) as api:
                api.request("POST", f"/api/v1/namespaces/{self._namespace}/events", json.dumps(event), head)
                status = api.getresponse().status
            if status == TOO_MANY_REQUESTS or status >= 500:
                raise OSError(f"the API server answers {status}")
        except Exception as error:  # noqa: BLE001 - the fence of this thread
            _LOG.warning("kubernetes: an Event was not sent", extra={"event": name, "reason": str(error)})
            return False
        self.waiting.popleft()
        is_there = status < 300 or status == CONFLICT  # the answer to an earlier attempt was lost
        self.outcomes["sent" if is_there else "failed"] += 1
        if not is_there:
            refused = "kubernetes: the API server refuses an Event; allow create on events"
            _LOG.error(refused, extra={"event": name, "status_code": status})
        return True


def _event(record: Record, origin: Origin, namespace: str) -> dict[str, Any]:
    body, is_open = record.body, record.body["status"] == Status.OPEN.value
    place = "/".join(str(body[x]) for x in ("application_id", "task_id", "store") if body.get(x))
    head = f"[{body['severity']}, {body['confidence']}]" if is_open else "[resolved]"
    message = f"{head} {place}: {body['summary']} Next: {body['next_action']} (finding {body['finding_id']})"
    name = f"{origin.pod[:200]}.{body['finding_id']}.{record.observed_at_us:x}"
    pod = {"apiVersion": "v1", "kind": "Pod", "name": origin.pod, "namespace": namespace}
    at = f"{rfc3339(record.observed_at_us)[:19]}Z"
    return {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": namespace},
        "involvedObject": pod | ({"uid": origin.pod_uid} if origin.pod_uid != origin.pod else {}),
        "reason": "".join(word.capitalize() for word in str(body["detector"]).split("-")),
        "source": {"component": "statewarden", "host": origin.node}, "reportingComponent": "statewarden",
        "reportingInstance": origin.pod, "firstTimestamp": at, "lastTimestamp": at, "count": 1,
        "message": message[:LONGEST_MESSAGE],
        "type": "Warning" if is_open and body["severity"] != Severity.INFO.value else "Normal",
    }  # fmt: skip
