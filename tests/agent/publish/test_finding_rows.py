"""Findings by task, as alerts see them, the worst first and bounded; and tasks that are gone."""

from __future__ import annotations

from agent.contract.events import Confidence, Severity
from agent.detectors import overlaid_store, stale_eos_checkpoint
from agent.findings.ledger import Ledger, Place
from agent.inventory.model import PastTask, Task
from agent.inventory.stores import Shape
from agent.judging.base import DetectorMeta, Verdict
from agent.publish.finding_rows import EVENT_SHOWN_US, GONE_SHOWN_US, ROWS_LISTED, gone_row, task_rows

NOW_US = 1_700_000_000_000_000
CONDITION, EVENT = stale_eos_checkpoint.META, overlaid_store.META


def tell(ledger: Ledger, meta: DetectorMeta, task: str | None, severity: Severity = Severity.WARNING) -> None:
    """Have a detector say one thing of a task."""
    verdict = Verdict("now", NOW_US, "it is so", (), severity, Confidence.CONFIRMED)
    ledger.settle(meta, Place(meta.id, "orders", task), [verdict], NOW_US)


def test_open_findings_are_counted_by_task() -> None:
    """One row per task, detector and severity; a finding on the application has no task."""
    ledger = Ledger()
    tell(ledger, CONDITION, "0_0")
    tell(ledger, CONDITION, None, Severity.CRITICAL)
    rows, unlisted = task_rows(ledger, NOW_US)
    assert list(rows.items()) == [
        (("orders", "", CONDITION.id, "critical"), 1),
        (("orders", "0_0", CONDITION.id, "warning"), 1),
    ]
    assert unlisted == 0


def test_a_condition_that_ended_is_gone_at_once() -> None:
    """What was resolved is no longer there; only events linger."""
    ledger = Ledger()
    tell(ledger, CONDITION, "0_0")
    ledger.settle(CONDITION, Place(CONDITION.id, "orders", "0_0"), [], NOW_US + 1)
    assert task_rows(ledger, NOW_US + 1) == ({}, 0)


def test_an_event_is_shown_for_an_hour() -> None:
    """An event is over when it is told; an alert still gets to see it."""
    ledger = Ledger()
    tell(ledger, EVENT, "0_0")
    assert ledger.open_findings() == []
    assert [key[2] for key in task_rows(ledger, NOW_US + EVENT_SHOWN_US)[0]] == [EVENT.id]
    assert task_rows(ledger, NOW_US + EVENT_SHOWN_US + 1)[0] == {}


def test_rows_are_bounded_and_the_worst_stay() -> None:
    """However many tasks are exposed, the list ends, the loudest are on it, and the rest is counted."""
    ledger = Ledger()
    for number in range(ROWS_LISTED + 5):
        tell(ledger, CONDITION, f"0_{number}")
    tell(ledger, CONDITION, "9_9", Severity.CRITICAL)
    rows, unlisted = task_rows(ledger, NOW_US)
    assert (len(rows), next(iter(rows))[1], unlisted) == (ROWS_LISTED, "9_9", 6)


def test_what_was_reported_is_counted_with_the_newest_id() -> None:
    """Two findings of one kind count twice; told again without news they do not."""
    ledger = Ledger()
    tell(ledger, CONDITION, "0_0")
    tell(ledger, CONDITION, "0_1")
    tell(ledger, CONDITION, "0_1")
    assert ledger.reported()["orders", CONDITION.id, Severity.WARNING] == (2, ledger.findings()[-1].id)


def test_a_gone_task_is_reported_for_a_bounded_time() -> None:
    """When a vanished directory was last seen is told for an hour, then forgotten; a living one is not told here."""
    gone = Task("orders", "0_0", "orders/0_0")
    gone.past += (PastTask(1, NOW_US, NOW_US, next(iter(Shape)), {}, None, False, False),)
    row = gone_row(gone, NOW_US + GONE_SHOWN_US)
    assert row is not None
    assert (row.task_id, row.last_seen_at_us, row.exists) == ("0_0", NOW_US, False)
    assert gone_row(gone, NOW_US + GONE_SHOWN_US + 1) is None
    assert gone_row(Task("orders", "0_1", "orders/0_1", True), NOW_US) is None
