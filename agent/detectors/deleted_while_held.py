"""Detector `deleted-while-held`: a store, or files of it, are deleted under the process that holds it.

A law: it holds on every release, and no known fault is behind it. Who deletes a store in order closes it first, and
the kernel announces that close, also of a process that was killed.
Fires when the `LOCK` of a database, or the whole database, goes while it is held, its close was not announced, and the
process goes on for a second. One finding per database that goes.
Fires, too, when a single file that RocksDB needs goes while `LOCK` stays and is held: no owner does that. Usually
`state.dir` is in a temporary directory that the operating system sweeps by age.
Stays quiet for a wipe (the owner closes the store before), `cleanUp()`, a cleaner that takes what no process holds,
expired segments (closed, then deleted), a rebalance, a thread that is replaced, a killed process whose directory goes
afterwards; for a segment that the start-up pass of its own process left open (`unopenable-task`); for SST files and old
manifests, which a running store drops itself.
Blind spots: a volume that announces nothing (network, FUSE); stores that are not RocksDB or in memory; a directory
that was moved away; a sweep while no process holds the store (`torn-store`).
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from agent.inventory.model import ProcessLife, Task
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict
from agent.judging.refused import GOES_ON_US, leaks

META = DetectorMeta(
    id="deleted-while-held",
    title="Store or files of it deleted under the process that holds it",
    mechanism=Mechanism.OFFSET_WITHOUT_DATA,
    level=Level.DAMAGE,
    severity=Severity.WARNING,
    kind=Kind.EVENT,
    scope=Scope.TASK,
    next_action=(
        "Find out who deleted it: a cleaner of Kafka Streams, a script, another pod on this volume, a sweep of /tmp."
        " The process works on in files without a name until its next flush or open fails. Restart this instance in"
        " order: a store with a changelog is restored in full. Before it, save what has none: a store without a"
        " changelog is lost with the process."
    ),
    consequence=(
        "The store lives in open files only: it is gone with the process, or fails at its next open, and a second owner"
        " may not be kept out."
    ),
    twin=Twin(
        "N14, a fenced owner wiped all its tasks: it closed every store first", "benign-eos-fencing-4.1.2"
    ),
    waits_us=(GOES_ON_US,),
)
SWEPT = (
    "Move state.dir out of the swept directory (default: /tmp/kafka-streams up to 2.7, the JVM's temporary"
    " directory since 2.8) or exempt it from the sweep. The store works until its next open and fails then:"
    " plan an orderly restart with this task directory removed."
)


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        StateManagerUtil.closeStateManager (2.6.0 to 4.3.1: closes, then deletes),
        AbstractSegments.cleanupExpiredSegments (close, then destroy), StateDirectory.cleanRemovedTasks (takes the
        task's lock before); RocksDB's DBImpl keeps `LOCK` open until it is closed (5.7 to 10.1);
        docs/state-format.md#n19.
    """
    yield from _swept(case.task)
    yield from _taken(case)


def _swept(task: Task) -> Iterable[Verdict]:
    """Single files: what else reports damage of the task does not explain who removed them."""
    for at_us, path in task.swept:
        yield Verdict(
            subject=f"{path}@{at_us}",
            opened_at_us=at_us,
            summary=f"Task {task.id}: {path.rpartition('/')[2]} was removed while a process holds the store.",
            evidence=(Evidence(at_us, "gone while LOCK is held; its owner goes on", path),),
            severity=Severity.WARNING,
            confidence=Confidence.SUSPECTED,
            affected=Affected.NO,
            next_action=SWEPT,
            mechanism=Mechanism.DAMAGED_FILES,
            gives_way=False,
        )


def _taken(case: TaskCase) -> Iterable[Verdict]:
    """Whole databases."""
    task = case.task
    life = case.application.lives[-1] if case.application.lives else None
    leaked = {(leak.at_us, leak.path) for leak in leaks(case)}
    for at_us, store, path in task.taken:
        if (at_us, path) in leaked or _is_past(task, store, life, at_us):
            continue
        has_ended = life is not None and life.ended_us is not None and life.ended_us < at_us + GOES_ON_US
        if has_ended or case.waited_us(at_us) < GOES_ON_US:
            continue
        yield Verdict(
            subject=f"{path}@{at_us}",
            opened_at_us=at_us,
            summary=f"Task {task.id}: store {store} was deleted while a process holds it.",
            evidence=(Evidence(at_us, "deleted; it was held, and no close of its LOCK was announced", path),),
            severity=Severity.WARNING,
            confidence=Confidence.SUSPECTED,
            store=store,
            affected=Affected.POSSIBLY,
        )


def _is_past(task: Task, store: str, life: ProcessLife | None, at_us: int) -> bool:
    """A new process took over: how the old one opened a windowed store, and so why it held a segment, is forgotten."""
    known = task.stores.get(store)
    return known is not None and known.segmented and life is not None and at_us < life.started_us
