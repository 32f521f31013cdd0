"""Which findings become Kubernetes Events: news only, once each, no more than the rate allows."""

from __future__ import annotations

from agent.contract.events import Kind, Origin, Record, Severity
from agent.publish.kubernetes import BURST, LONGEST_MESSAGE, REFILL_S, WAITING_KEPT, Event, EventQueue

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


def desk(least: Severity = Severity.WARNING) -> EventQueue:
    return EventQueue(least, ORIGIN, "shop")


def sent(some: EventQueue, now_s: float = 0.0) -> list[Event]:
    """Send all that may be sent now."""
    found = []
    while (ready := some.next(now_s)) is not None:
        some.done(*ready)
        found.append(ready[1])
    return found


def test_an_event_says_what_where_and_what_to_do() -> None:
    """Object, reason, type and message are what `kubectl describe pod` shows."""
    some = desk()
    some.receive(finding())
    (news,) = sent(some, 100.0)
    assert news == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "orders-0.f1", "namespace": "shop"},
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


def test_a_repetition_is_no_news_and_its_end_is() -> None:
    """A restarted agent says again what is open: no Event, until it is resolved or gets worse."""
    some = desk()
    some.receive(finding(said_us=AT_US - 5))
    some.receive(finding("f2", said_us=AT_US - 5))
    assert sent(some, 1e9) == []
    some.receive(finding(status="resolved"))
    some.receive(finding("f2", severity="critical"))
    told = sent(some, 1e9)
    assert [(x["metadata"]["name"], str(x["message"]).split("]")[0]) for x in told] == [
        ("orders-0.f1", "[resolved"), ("orders-0.f2", "[critical, suspected"),
    ]  # fmt: skip


def test_only_news_is_reported() -> None:
    """Opened, louder, resolved; a repetition, something quieter, or what was never told is no news."""
    some, told = desk(), list[Event]()
    for record in (
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
    ):
        some.receive(record)
        told += sent(some, 1e9)
    assert {news["metadata"]["name"] for news in told} == {"orders-0.f1"}
    assert [news["count"] for news in told] == [1, 2, 3, 4]
    assert told[-1]["type"] == "Normal"
    assert str(told[-1]["message"]).startswith("[resolved] ")


def test_what_waits_is_coalesced() -> None:
    """A finding that changes while it waits is told once, as it is now."""
    some = desk()
    some.receive(finding())
    some.receive(finding(severity="critical"))
    (news,) = sent(some)
    assert "[critical, suspected]" in str(news["message"])


def test_the_rate_holds() -> None:
    """A storm costs a burst, then one request per interval; nothing is forgotten meanwhile."""
    some = desk()
    for number in range(50):
        some.receive(finding(f"f{number}"))
    assert len(sent(some, 0.0)) == BURST
    assert sent(some, REFILL_S * 0.9) == []
    assert len(sent(some, REFILL_S * 3.05)) == 3
    assert len(some.waiting) == 50 - BURST - 3


def test_too_many_findings_are_suppressed_and_counted() -> None:
    """The oldest that waits goes first."""
    some = desk()
    for number in range(WAITING_KEPT + 7):
        some.receive(finding(f"f{number}"))
    assert (len(some.waiting), some.suppressed) == (WAITING_KEPT, 7)
    assert sent(some)[0]["metadata"]["name"] == "orders-0.f7"


def test_what_changes_while_it_is_sent_is_sent_again() -> None:
    """`done` forgets the news that was sent, not the newer one."""
    some = desk()
    some.receive(finding())
    ready = some.next(0.0)
    assert ready is not None
    some.receive(finding(severity="critical"))
    some.done(*ready)
    assert len(sent(some)) == 1


def test_the_limits_of_the_api() -> None:
    """A message is cut at its limit; info events are Normal; without a real uid none is given."""
    some = EventQueue(Severity.INFO, Origin("orders-0", "b", "orders-0"), "shop")
    some.receive(finding(severity="info", summary="x" * 5_000))
    (news,) = sent(some)
    assert len(str(news["message"])) == LONGEST_MESSAGE
    assert news["type"] == "Normal"
    assert "uid" not in news["involvedObject"]
