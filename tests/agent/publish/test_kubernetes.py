"""Which findings become Kubernetes Events: news only, once each, no more than fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.contract.events import Kind, Origin, Record
from agent.delivery import KubernetesSettings
from agent.publish.kubernetes import LONGEST_MESSAGE, WAITING_KEPT, KubernetesEvents

ORIGIN = Origin("uid-1", "boot", "orders-0", node="node-1")
AT_US = 1_700_000_000_000_000


def finding(
    finding_id: str = "f1", severity: str = "warning", status: str = "open", **more: object
) -> Record:
    body: dict[str, object] = {
        "finding_id": finding_id, "detector": "stale-eos-checkpoint", "severity": severity, "status": status,
        "confidence": "suspected", "application_id": "orders", "task_id": "0_1", "summary": "It is stale.",
        "next_action": "Look.", "level": "exposure", "opened_at_us": AT_US, "upstream": [], "affected": "yes",
        "missing_facts": [], "evidence": [],
    }  # fmt: skip
    return Record(Kind.FINDING, AT_US, {**body, **more})


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., KubernetesEvents]:
    """Make what takes findings; nothing is sent."""
    (tmp_path / "token").touch()
    (tmp_path / "namespace").write_text("shop\n")
    monkeypatch.setattr("ssl.create_default_context", lambda cafile: None)

    def make(least: str = "warning", origin: Origin = ORIGIN) -> KubernetesEvents:
        settings = KubernetesSettings(least, "https://example.com", str(tmp_path))
        return KubernetesEvents(settings, origin)

    return make


def taken(some: KubernetesEvents, *records: Record) -> list[dict[str, Any]]:
    """Offer records; give what waits to be sent then, and take it away."""
    for record in records:
        some.offer(record)
    found = list(some.waiting)
    some.waiting.clear()
    return found


def test_an_event_says_what_where_and_what_to_do(desk: Callable) -> None:
    """Object, reason, type and message are what `kubectl describe pod` shows."""
    (news,) = taken(desk(), finding())
    assert news == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"orders-0.f1.{AT_US:x}", "namespace": "shop"},
        "involvedObject": {
            "apiVersion": "v1", "kind": "Pod", "name": "orders-0", "namespace": "shop", "uid": "uid-1",
        },
        "reason": "StaleEosCheckpoint",
        "source": {"component": "statewarden", "host": "node-1"},
        "reportingComponent": "statewarden",
        "reportingInstance": "orders-0",
        "firstTimestamp": "2023-11-14T22:13:20Z",
        "message": "[warning, suspected] orders/0_1: It is stale. Next: Look. (finding f1)",
        "type": "Warning",
        "lastTimestamp": "2023-11-14T22:13:20Z",
        "count": 1,
    }  # fmt: skip


def test_a_repetition_is_no_news_and_its_end_is(desk: Callable) -> None:
    """A restarted agent says again what is open: no Event, until it is resolved or gets worse."""
    some = desk()
    assert taken(some, finding(said_us=AT_US - 5), finding("f2", said_us=AT_US - 5)) == []
    told = taken(some, finding(status="resolved"), finding("f2", severity="critical"))
    assert [x["message"].split("]")[0] for x in told] == ["[resolved", "[critical, suspected"]
    assert [x["metadata"]["name"].split(".")[1] for x in told] == ["f1", "f2"]


def test_only_news_is_reported(desk: Callable) -> None:
    """Opened, louder, resolved; a repetition, something quieter, or what was never told is no news."""
    told = taken(
        desk(),
        finding(),
        finding(),
        finding(severity="critical"),
        finding(severity="warning"),
        finding(severity="critical", confidence="confirmed"),
        finding(status="resolved"),
        finding(status="resolved"),
        finding("f2", "info"),
        finding("f2", "info", "resolved"),
        Record(Kind.HEARTBEAT, AT_US, {}),
    )
    assert {news["metadata"]["name"].split(".")[1] for news in told} == {"f1"}
    assert [(news["message"].split("]")[0], news["type"]) for news in told] == [
        ("[warning, suspected", "Warning"), ("[critical, suspected", "Warning"),
        ("[critical, confirmed", "Warning"), ("[resolved", "Normal"),
    ]  # fmt: skip


def test_too_many_findings_are_suppressed_and_counted(desk: Callable) -> None:
    """What waits already is kept."""
    some = desk()
    told = taken(some, *(finding(f"f{number}") for number in range(WAITING_KEPT + 7)))
    assert (len(told), some.outcomes["suppressed"]) == (WAITING_KEPT, 7)


def test_the_limits_of_the_api(desk: Callable) -> None:
    """A message is cut at its limit; info events are Normal; without a real uid none is given."""
    some = desk("info", Origin("orders-0", "b", "orders-0"))
    (news,) = taken(some, finding(severity="info", summary="x" * 5_000))
    assert len(news["message"]) == LONGEST_MESSAGE
    assert news["type"] == "Normal"
    assert "uid" not in news["involvedObject"]
