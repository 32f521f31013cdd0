"""The rows of a snapshot about tasks; a row is recreated only when its task may have changed.

Of ten thousand tasks a few hundred change within a second, and making every row took a twentieth of a core.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent.contract.events import Severity
from agent.engine.pipeline import Pipeline
from agent.engine.rows import Key, TaskRow, task_row, worst_by_task
from agent.publish.finding_rows import gone_row


class TaskTable:
    """Rows of all tasks, kept from one snapshot to the next."""

    def __init__(self, *, with_stores: bool = False) -> None:
        """Start empty.

        `with_stores`: whether there are rows of single stores.
        """
        self._with_stores = with_stores
        self._rows: dict[str, dict[str, TaskRow]] = {}  # by application, by task
        self._worst: Mapping[Key, Severity] = {}
        self._gone: set[Key] = set()
        self._all: tuple[TaskRow, ...] = ()
        self.there: Mapping[str, int] = {}
        """Application -> how many of its task directories are there."""

    def update(self, pipeline: Pipeline, now_us: int) -> tuple[TaskRow, ...]:
        """Bring the rows up to date; takes the list of tasks that were read."""
        found = worst_by_task(pipeline.ledger.open_findings())
        worst = {key: severity for key, severity in found.items() if key[1]}
        judged = {key for key, _ in worst.items() ^ self._worst.items()}
        # a directory that is gone is reported for a while only
        keys = pipeline.looker.pop_read_tasks() | judged | self._gone
        self._worst = worst
        for key in keys:
            self._renew(pipeline, key, now_us)
        if keys:  # else all ten thousand are as they were
            self._all = tuple(row for rows in self._rows.values() for row in rows.values())
            self.there = {name: sum(row.exists for row in rows.values()) for name, rows in self._rows.items()}
        return self._all

    def _renew(self, pipeline: Pipeline, key: Key, now_us: int) -> None:
        application = pipeline.inventory.applications.get(key[0])
        task = application.tasks.get(key[1]) if application is not None else None
        rows = self._rows.setdefault(key[0], {})
        self._gone.discard(key)
        if task is not None and task.exists:
            rows[task.id] = task_row(task, self._worst.get(key), with_stores=self._with_stores)
        elif task is not None and (row := gone_row(task, now_us)) is not None:
            rows[task.id] = row
            self._gone.add(key)
        else:
            rows.pop(key[1], None)
