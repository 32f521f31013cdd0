"""Applications from their rows: which row belongs to which task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spark_rollup.fleet.application import Application, Pods, Task
from spark_rollup.fleet.meta import Row
from spark_rollup.fleet.rows import Copy, Hold, Latest, Mark, Reading, Saved

OF_TASK: Mapping[str, type[Any]] = {
    "holds": Hold, "marks": Mark, "readings": Reading, "copies": Copy, "latest": Latest, "saved": Saved,
}  # fmt: skip
"""Field of `Task` -> its rows."""

Place = tuple[str, str | None]
"""Namespace and application."""


def application_of(
    place: Place,
    rows: Iterable[tuple[str, Any]],
    pods: Pods,
    as_of_us: int,
    since_us: int,
    proofs: list[Row] | None,
) -> Application:
    """Put together what is known of an application.

    Args:
        place: Which.
        rows: Field of `Task` or `Application`, and row.
        pods: Those of its namespace.
        as_of_us: The audit's time.
        since_us: When the look-back began.
        proofs: What `verify` found.
    """
    app = Application(*place, as_of_us, since_us, pods, proofs=proofs)
    for field, row in rows:
        if field in OF_TASK:
            getattr(_task(app, row.task_id), field).append(row)
        elif field == "settings":
            app.settings = row
        else:
            getattr(app, field).append(row)
            if field == "said" and row.task_id is not None:
                _task(app, row.task_id).said.append(row)
    return app


def _task(app: Application, task_id: str) -> Task:
    if task_id not in app.tasks:
        app.tasks[task_id] = Task(task_id)
    return app.tasks[task_id]
