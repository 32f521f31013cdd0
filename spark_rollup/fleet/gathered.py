"""Applications from the rows of `facts`: which row belongs to which task of which application."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spark_rollup.fleet.application import Application, Pod, Pods, Task
from spark_rollup.fleet.meta import Row
from spark_rollup.fleet.rows import (
    Copy,
    Entry,
    Gap,
    Heard,
    Hold,
    Latest,
    Life,
    Mark,
    Reading,
    Said,
    Saved,
    Settings,
    Sighting,
    Unwatched,
)

OF_TASK: Mapping[str, type[Any]] = {
    "holds": Hold, "marks": Mark, "readings": Reading, "copies": Copy, "latest": Latest, "saved": Saved,
}  # fmt: skip
"""Field of `Task` -> its rows."""

OF_APPLICATION: Mapping[str, type[Any]] = {
    "said": Said,
    "lives": Life,
    "sightings": Sighting,
    "settings": Settings,
}
"""Field of `Application` -> its rows."""

OF_POD: Mapping[str, type[Any]] = {"heard": Heard, "gaps": Gap, "unwatched": Unwatched}
"""Field of `Pod` -> its rows."""

Place = tuple[str, str | None]
"""Namespace and application."""


def row_of(field: str, values: Sequence[Any]) -> Any:
    """Make a row of a field from its values, in the order of its columns.

    An agent of another version may leave parts out. A time that was not watched and has no begin puts all before its
    end in doubt.
    """
    row = {**OF_TASK, **OF_APPLICATION, **OF_POD}[field](*values)
    if field == "said":
        return row._replace(evidence=[Entry(*(part or "" for part in one)) for one in row.evidence or ()])
    if field in ("gaps", "unwatched") and row.from_us is None:
        return row._replace(from_us=0)
    return row


def pods_of(
    members: Iterable[tuple[str, str | None, str]], rows: Iterable[tuple[str, str, Any]]
) -> Mapping[str, Pods]:
    """Put together what is known of pods, by namespace.

    Args:
        members: Namespace, application (None = the pod named none) and pod.
        rows: Namespace, field of `Pod` and row.
    """
    found: dict[str, dict[str, Pod]] = defaultdict(dict)
    for namespace, application, name in members:
        pod = found[namespace].setdefault(name, Pod(name))
        if application is not None:
            pod.applications.add(application)
    for namespace, field, row in rows:
        pod = found[namespace].setdefault(row.pod, Pod(row.pod))
        if field == "heard":
            pod.heard = row
        else:
            getattr(pod, field).append(row)
    return found


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
