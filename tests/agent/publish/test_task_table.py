"""Rows that are kept from one snapshot to the next are those that would be recreated."""

from __future__ import annotations

import pytest

from agent.contract.events import Confidence, Severity
from agent.detectors import overlaid_store, stale_eos_checkpoint
from agent.findings.ledger import Ledger, Place
from agent.judging.base import DetectorMeta, Verdict
from agent.publish.rows import EVENT_SHOWN_US, GONE_SHOWN_US, ROWS_LISTED, TaskTable, task_rows
from tests.agent.engine.playing import Run, application, checkpoint, deletion, opening, operations_of, sets_of


def all_again(run: Run) -> set[object]:
    """Make every row, with a table that knows nothing."""
    for one in run.pipeline.inventory.applications.values():
        run.pipeline.looker._read_tasks |= {(one.id, task) for task in one.tasks}
    return set(TaskTable(with_stores=True).update(run.pipeline, run.now_us))


@pytest.mark.parametrize("scenario", ["benign-move-3.9.2", "torn-clean-3.9.2"])
def test_kept_rows_are_right_all_along(scenario: str) -> None:
    """Over a recorded run, at every tenth operation: what is kept equals what is recreated."""
    operations = operations_of(scenario, "pod-a")
    run = Run(operations[0].at_us, sets_of(scenario))
    table = TaskTable(with_stores=True)
    shown = 0
    for number, operation in enumerate(operations):
        run.play(operation)
        if number % 10 == 0 or number == len(operations) - 1:
            kept = set(table.update(run.pipeline, run.now_us))
            assert kept == all_again(run)
            shown += len(kept)
    assert shown


def test_only_what_was_read_is_recreated() -> None:
    """Of two tasks the one that nobody looked at keeps its row, the very same one."""
    run = Run()
    run.play(*application(1))
    run.play(*opening(2, "app/0_0"))
    run.play(*opening(3, "app/0_1"))
    table = TaskTable()
    run.rest(1_000_000)
    before = {row.task_id: row for row in table.update(run.pipeline, run.now_us)}
    run.play(*checkpoint(5, 7, "app/0_1"))
    after = {row.task_id: row for row in table.update(run.pipeline, run.now_us)}
    assert after["0_0"] is before["0_0"]
    assert after["0_1"].checkpoint_offset == 7


def test_a_task_that_is_gone_is_reported_for_a_while() -> None:
    """Its row stays for an hour though nobody looks at it any more."""
    run = Run()
    run.play(*application(1))
    run.play(*opening(2))
    run.play(*deletion(10))
    table = TaskTable()
    (row,) = table.update(run.pipeline, run.now_us)
    assert not row.exists
    assert table.update(run.pipeline, run.now_us + GONE_SHOWN_US // 2) == (row,)
    assert table.update(run.pipeline, run.now_us + 2 * GONE_SHOWN_US) == ()


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
