"""Replay a trace through the pipeline, on the trace's own clock, as fast as it goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agent.contract.events import Kind, Record
from agent.engine.pipeline import Pipeline
from agent.inventory.hints import WATCHED_EVENTS, Hint, HintKind
from agent.layout.paths import classify
from agent.replay.memory_disk import MemoryDisk
from agent.replay.trace import OPERATIONS, Operation, read_trace

_SIMPLE = {
    "mkdir": HintKind.CREATED,
    "create": HintKind.CREATED,
    "rmdir": HintKind.DELETED,
    "unlink": HintKind.DELETED,
    "close_w": HintKind.WRITTEN,
}
_SILENT = OPERATIONS - _SIMPLE.keys() - {"rename"}


class Player:
    """Turns operations into hints by the same table from which the kernel watch derives its masks.

    The end of a process raises nothing here: a kill is found by polling the locks, as with a kernel that
    closes the descriptors of a dead process only after a while.
    """

    def __init__(self) -> None:
        self._asked: dict[str, frozenset[HintKind]] = {}

    def hints(self, operation: Operation) -> tuple[Hint, ...]:
        """List the hints that one operation raises, in kernel order."""
        if operation.nameless or operation.op in _SILENT:
            return ()
        if operation.op == "rename":
            pairs = ((HintKind.MOVED_OUT, operation.path), (HintKind.MOVED_IN, operation.to))
            return tuple(
                Hint(path, kind, operation.at_us) for kind, path in pairs if kind in self._events(path)
            )
        kind = _SIMPLE[operation.op]
        if kind not in self._events(operation.path):
            return ()
        is_directory = operation.op in ("mkdir", "rmdir")
        return (Hint(operation.path, kind, operation.at_us, is_directory),)

    def _events(self, path: str) -> frozenset[HintKind]:
        parent = path.rpartition("/")[0]
        events = self._asked.get(parent)
        if events is None:
            events = self._asked[parent] = WATCHED_EVENTS.get(classify(parent).role, frozenset())
        return events


def replay(
    trace: Path,
    pipeline: Pipeline,
    disk: MemoryDisk,
    quiet_us: int,
    *,
    show_process: bool = False,
    delays: Iterator[int] | None = None,
) -> int:
    """Play a trace into a pipeline that reads `disk`.

    `pipeline`: made with `disk` and the trace's first time as its start. `disk`: the disk that the operations are
    played onto. `quiet_us`: how long the clock keeps running after the last operation: rules that wait can fire.
    `show_process`: let the pipeline see that a process exists and its release. `delays`: microseconds until the
    next bunch of notifications is followed, as in an agent that is busy or throttled; None = each is followed at
    once. Gives number of operations played. Raises `TraceError`: the trace is unreadable or truncated.
    """
    player = Player()
    waiting: list[Hint] = []
    count, now_us, due_us = 0, pipeline.started_us, None
    pipeline.scan(now_us)
    next_us = pipeline.next_us()  # changes only when something is done: most operations raise no hint
    for operation in read_trace(trace):
        if due_us is not None and due_us <= operation.at_us:
            pipeline.run_until(due_us)
            next_us = _follow(pipeline, waiting, due_us)
            due_us = None
        if next_us < operation.at_us:
            next_us = pipeline.run_until(operation.at_us)
        now_us = max(now_us, operation.at_us)
        disk.apply(operation, show_process=show_process)
        waiting += player.hints(operation)
        if waiting and delays is None:
            next_us = _follow(pipeline, waiting, now_us)
        elif waiting and due_us is None and delays is not None:
            due_us = now_us + next(delays)
        count += 1
    if waiting and due_us is not None:
        pipeline.run_until(due_us)
        _follow(pipeline, waiting, due_us)
    pipeline.run_until(now_us + quiet_us)
    pipeline.emit(Record(Kind.LIFECYCLE, now_us + quiet_us, {"phase": "stopping", "reason": "end of trace"}))
    return count


def _follow(pipeline: Pipeline, waiting: list[Hint], now_us: int) -> int:
    pipeline.handle(waiting, now_us)
    waiting.clear()
    return pipeline.next_us()


def first_time_us(trace: Path) -> int:
    """Time of a trace's first operation. Raises `TraceError`: the trace is unreadable or empty."""
    operation: Operation = next(iter(read_trace(trace)))
    return operation.at_us
