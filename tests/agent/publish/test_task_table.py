"""Rows that are kept from one snapshot to the next are those that would be recreated."""

from __future__ import annotations

import pytest

from agent.publish.finding_rows import GONE_SHOWN_US
from agent.publish.task_table import TaskTable
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
