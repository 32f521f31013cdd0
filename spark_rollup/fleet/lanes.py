"""The table `timelines`: what happened to every task on every pod, as lanes of intervals and marks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from agent.contract.events import Change
from spark_rollup.fleet.application import Application, Task
from spark_rollup.fleet.meta import Row
from spark_rollup.fleet.rows import Gap, Mark, Reading, Saved
from spark_rollup.fleet.sizes import Point

_MARK_LANES = {
    Change.CHECKPOINT_WRITTEN.value: "checkpoint",
    Change.TASK_CREATED.value: "created",
    Change.STORE_CREATED.value: "created",
    Change.TASK_DELETED.value: "deleted",
    Change.STORE_DELETED.value: "deleted",
    Change.CHECKPOINT_DELETED.value: "checkpoint-deleted",
}

_LIVES = (Change.STORE_CREATED.value, Change.STORE_DELETED.value, Change.STORE_OPENED.value)

_REST = ("store", "identity", "offset", "puts", "bytes", "detail")


def _row(
    namespace: str, application: str | None, task: str | None, pod: str, lane: str, from_us: int,
    to_us: int | None = None, **rest: object,
) -> Row:  # fmt: skip
    row = {
        "namespace": namespace, "application_id": application, "task_id": task, "pod": pod, "lane": lane,
        "from_us": from_us, "to_us": to_us,
    }  # fmt: skip
    return row | {name: rest.get(name) for name in _REST}


def gaps(namespace: str, unseen: Iterable[Gap]) -> Iterator[Row]:
    """Draw the times that no agent watched."""
    for x in unseen:
        yield _row(
            namespace, x.application_id, x.task_id, x.pod, "unknown", x.from_us, x.to_us, detail=x.cause
        )


def timelines(app: Application, asked: Collection[str], points: Iterable[Point]) -> Iterator[Row]:
    """Put all of an application on one table: lanes of intervals and marks.

    Lanes: holder, cleaner, process, incarnation (intervals); checkpoint, created, deleted, checkpoint-deleted, size
    (marks). Checkpoints and sizes of tasks that are not in question (`asked`) are thinned out: one per slot of
    `sizes.SLOT_US`.
    """
    yield from _once(_row(*app.where, None, x.pod, "process", x.from_us, x.to_us) for x in app.lives)
    for task in app.tasks.values():
        yield from _once(_of_task((*app.where, task.id), task, thinned=task.id not in asked))
    yield from _once(_size((*app.where, x.task_id), x) for x in points if x.task_id not in asked)


def _of_task(where: tuple[str, str | None, str], task: Task, *, thinned: bool) -> Iterator[Row]:
    for x in task.holds:
        lane, detail = "cleaner" if x.cleaner else "holder", "lasting" if x.lasting else None
        yield _row(*where, x.pod, lane, x.from_us, x.to_us, detail=detail)
    marks: Sequence[Mark | Saved] = [*task.marks, *task.saved] if thinned else task.marks
    yield from (row for x in marks if (row := _mark(where, x)))
    yield from _incarnations(where, task.marks)
    yield from (_size(where, x) for x in task.readings)


def _once(rows: Iterable[Row]) -> Iterator[Row]:
    """Leave out repeats. Rows of a task in question are many: none of them is kept, only what it says."""
    seen: set[tuple[object, ...]] = set()
    for row in rows:
        said = tuple(row.values())
        if said not in seen:
            seen.add(said)
            yield row


def _mark(where: tuple[str, str | None, str], x: Mark | Saved) -> Row | None:
    if isinstance(x, Saved):
        change = Change.CHECKPOINT_WRITTEN.value
        return _row(*where, x.pod, _MARK_LANES[change], x.at_us, offset=x.offset, detail=change)
    if x.change not in _MARK_LANES:
        return None
    offset = x.offset_before if x.offset_after is None else x.offset_after
    note = " ".join(part for part in (x.change, x.shape) if part is not None)
    return _row(
        *where, x.pod, _MARK_LANES[x.change], x.at_us, store=x.store, identity=x.identity, offset=offset,
        puts=x.puts, bytes=x.bytes, detail=note if x.detail is None else x.detail,
    )  # fmt: skip


def _size(where: tuple[str, str | None, str], x: Reading | Point) -> Row:
    known = x.puts is not None and x.offset is not None
    return _row(
        *where, x.pod, "size", x.at_us, store=x.store, identity=getattr(x, "identity", None), offset=x.offset,
        puts=x.puts, bytes=x.bytes, detail=f"{x.puts} puts at offset {x.offset}" if known else None,
    )  # fmt: skip


def _incarnations(where: tuple[str, str | None, str], marks: Iterable[Mark]) -> Iterator[Row]:
    """Find the life of each store identity on a pod: from its creation or first sight to the next one or its end."""
    stores: dict[tuple[object, ...], list[Mark]] = defaultdict(list)
    for x in marks:
        if x.change in _LIVES:
            stores[x.pod, x.store, x.segment].append(x)
    for own in stores.values():
        own.sort(key=lambda x: (x.at_us, x.sequence or 0))
        steps: list[tuple[str | None, Mark]] = []
        for x in own:
            key = None if x.change == Change.STORE_DELETED.value else x.identity
            if key != (steps[-1][0] if steps else None):
                steps.append((key, x))
        for (key, x), after in zip(steps, [*steps[1:], None], strict=False):
            if key is not None:
                yield _row(
                    *where, x.pod, "incarnation", x.at_us, after[1].at_us if after else None, store=x.store,
                    identity=x.identity, puts=x.puts, bytes=x.bytes, detail=f"identity {key}",
                )  # fmt: skip
