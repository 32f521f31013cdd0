"""Which findings become Kubernetes Events, and how these read. Pure; the time is an argument.

One finding is one Event, whose count and message change when the finding escalates or is resolved. What waits is
coalesced by finding, so that a storm of findings costs one request each and no more than the rate allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from agent.contract.codec import rfc3339
from agent.contract.events import Kind, Origin, Record, Severity, Status
from agent.publish.text import severity_rank

BURST, REFILL_S = 10, 30.0
"""Requests at once, and seconds for each further one: the API server is not ours."""

WAITING_KEPT = 256
LONGEST_MESSAGE = 1_024
"""Limit of the API for an Event's message."""


class EventOutcome(StrEnum):
    """What became of an Event."""

    SENT = "sent"
    FAILED = "failed"
    SUPPRESSED = "suppressed"  # too many were waiting


@dataclass(frozen=True, slots=True)
class News:
    """What is to be reported of one finding.

    Args of the dataclass:
        name: Name of the Event object, the same from the opening of the finding to its resolution.
        body: Event as it is created.
        patch: What changes if it is there already.
    """

    name: str
    body: Mapping[str, object]
    patch: Mapping[str, object]


class EventDesk:
    """Takes every record, gives out what may be sent now."""

    def __init__(self, least: Severity, origin: Origin, namespace: str) -> None:
        """Start with nothing reported.

        Args:
            least: Lowest severity that becomes an Event.
            origin: The pod that the Events are about.
            namespace: Namespace of the pod.
        """
        self._least, self._origin, self._namespace = least, origin, namespace
        self._reported: dict[str, tuple[int, int]] = {}
        self._counts: dict[str, int] = {}
        self._first_us: dict[str, int] = {}
        self._waiting: dict[str, News] = {}
        self._tokens, self._refilled_s = float(BURST), 0.0
        self.suppressed = 0

    def receive(self, record: Record) -> None:
        """Take a record; only a finding that opens, escalates or is resolved is news, and no repetition is."""
        if record.kind is not Kind.FINDING:
            return
        body = record.body
        finding_id, severity = str(body["finding_id"]), Severity(str(body["severity"]))
        is_open = body["status"] == Status.OPEN.value
        now = severity_rank(body)
        before = self._reported.get(finding_id)
        if is_open and (severity.rank < self._least.rank or (before is not None and now <= before)):
            return
        if body.get("said_us") is not None:  # an earlier start of the agent reported it
            self._reported[finding_id] = now
            return
        if not is_open and before is None:
            return
        if is_open:
            self._reported[finding_id] = now
        else:
            del self._reported[finding_id]
        self._counts[finding_id] = self._counts.get(finding_id, 0) + 1
        self._first_us.setdefault(finding_id, record.observed_at_us)
        self._waiting.pop(finding_id, None)
        if len(self._waiting) >= WAITING_KEPT:
            del self._waiting[next(iter(self._waiting))]
            self.suppressed += 1
        self._waiting[finding_id] = self._news(finding_id, record, is_open=is_open)
        if not is_open:
            del self._counts[finding_id], self._first_us[finding_id]

    def next(self, now_s: float) -> tuple[str, News] | None:
        """Give what to send now, oldest first; None = nothing waits, or the rate does not allow it yet.

        It stays until `done`.
        """
        self._tokens = min(float(BURST), self._tokens + max(0.0, now_s - self._refilled_s) / REFILL_S)
        self._refilled_s = now_s
        if not self._waiting or self._tokens < 1.0:
            return None
        self._tokens -= 1.0
        return next(iter(self._waiting.items()))

    def done(self, finding_id: str, news: News) -> None:
        """Forget what was sent or refused, unless there is newer news by now."""
        if self._waiting.get(finding_id) is news:
            del self._waiting[finding_id]

    @property
    def waiting(self) -> int:
        """Number of findings that wait to be reported."""
        return len(self._waiting)

    def _news(self, finding_id: str, record: Record, *, is_open: bool) -> News:
        body, origin = record.body, self._origin
        place = "/".join(str(body[x]) for x in ("application_id", "task_id", "store") if body.get(x))
        head = f"{body['severity']}, {body['confidence']}" if is_open else "resolved"
        message = f"[{head}] {place}: {body['summary']} Next: {body['next_action']} (finding {finding_id})"
        is_warning = is_open and Severity(str(body["severity"])) is not Severity.INFO
        fields = {
            "message": message[:LONGEST_MESSAGE],
            "type": "Warning" if is_warning else "Normal",
            "lastTimestamp": _seconds(record.observed_at_us),
            "count": self._counts[finding_id],
        }
        name = f"{origin.pod[:200]}.{finding_id}"
        pod = {"apiVersion": "v1", "kind": "Pod", "name": origin.pod, "namespace": self._namespace}
        if origin.pod_uid != origin.pod:
            pod["uid"] = origin.pod_uid
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": self._namespace},
            "involvedObject": pod,
            "reason": "".join(word.capitalize() for word in str(body["detector"]).split("-")),
            "source": {"component": "statewarden", "host": origin.node},
            "reportingComponent": "statewarden",
            "reportingInstance": origin.pod,
            "firstTimestamp": _seconds(self._first_us[finding_id]),
            **fields,
        }
        return News(name, event, fields)


def _seconds(at_us: int) -> str:
    """Write a time as `metav1.Time` does: whole seconds."""
    return f"{rfc3339(at_us)[:19]}Z"
