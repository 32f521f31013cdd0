"""Rows for the tests of the page."""

from __future__ import annotations

from agent.contract.audited import gather
from spark_rollup.report.page import PageData

START_US = 1_795_000_000_000_000


def finding(**given: object) -> dict[str, object]:
    """Make a row of the table of findings."""
    row: dict[str, object] = {
        "id": "f1", "detector": "resurrected-checkpoint", "level": "damage", "severity": "critical",
        "confidence": "confirmed", "status": "open", "namespace": "shop", "application_id": "orders", "task_id": "0_0",
        "store": "s", "pod": "pod-a", "opened_at": "2026-11-18T11:08:01.000000Z", "upstream": ["KAFKA-8187"],
        "affected": "yes", "missing_facts": [], "summary": "broken", "next_action": "restart pod-a",
        "evidence": [{"at": "2026-11-18T11:08:00.000000Z", "what": "deleted", "where": "orders/0_0"}],
        "pods": ["pod-a", "pod-b"], "confirms": ["local-1"], "refutes": [], "explains": [],
        "reported_by": "fleet",
    }  # fmt: skip
    return row | given


def lane(
    lane: str, from_s: float, to_s: float | None = None, pod: str = "pod-a", **given: object
) -> dict[str, object]:
    """Make a row of the table of timelines; seconds count from the start."""
    row: dict[str, object] = {
        "namespace": "shop", "application_id": "orders", "task_id": "0_0", "pod": pod, "lane": lane,
        "from_us": START_US + round(from_s * 1e6), "to_us": None if to_s is None else START_US + round(to_s * 1e6),
        "store": None, "identity": None, "offset": None, "puts": None, "bytes": None, "detail": lane,
    }  # fmt: skip
    return row | given


def answer(**given: object) -> dict[str, object]:
    """Make a row of the table of restarts."""
    row: dict[str, object] = {
        "namespace": "shop", "application_id": "orders", "task_id": "0_0", "pod": "pod-a", "answer": "restore",
        "kinds": ["restore"], "follow": [], "first_action": None, "healthy_elsewhere": [], "ill_elsewhere": [],
        "restore_bytes": None, "unclean_stop": "the store is wiped", "doubt": None,
    }  # fmt: skip
    return row | given


def page(**given: object) -> PageData:
    """Make the data of a whole page: one pod, one finding."""
    values: dict[str, object] = {
        "as_of_us": START_US + 900_000_000, "version": "1", "findings": [finding()],
        "coverage": [
            {
                "namespace": "shop", "pod": "pod-a", "first_seen": "2026-11-18T11:06:40.000000Z",
                "last_seen": "2026-11-18T11:21:40.000000Z", "boots": 1, "events": 10, "lost_events": 0,
                "missed_criticals": 0, "missed_warnings": 0,
                "span_seconds": 900.0, "unknown_seconds": 45.0, "watched_ratio": 0.95,
            }
        ],
        "pods": [
            {
                "namespace": "shop", "pod": "pod-a", "pod_uid": "u", "node": "n", "agent_version": "1",
                "agent_state": "watching", "last_seen": "2026-11-18T11:21:40.000000Z", "applications": ["orders"],
                "tasks_held": 1,
            }
        ],
        "timelines": [
            lane("holder", 10, 60), lane("deleted", 70.5), lane("created", 80),
            lane("checkpoint", 81, offset=2000, puts=0),
            lane("size", 120, offset=2050, puts=50), lane("holder", 5, 900, pod="pod-b", detail="lasting"),
            lane("unknown", 72, 78, task_id=None, application_id=None, detail="queue-overflow"),
        ],
        "quarantine": {},
    }  # fmt: skip
    values |= given
    if "incidents" not in values:
        values["incidents"] = gather(values["findings"])  # type: ignore[arg-type]
    known = [{"doubt": None, "gone": False} | row for row in values["pods"]]  # type: ignore[attr-defined]
    return PageData(**({"known_pods": known} | values))  # type: ignore[arg-type]
