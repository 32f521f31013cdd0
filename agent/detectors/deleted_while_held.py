"""Detector `deleted-while-held`: a store, or files of it, are deleted under the process that holds it.

A law: it holds on every release, and no known fault is behind it. Who deletes a store in order closes it first, and
the kernel announces that close, also of a process that was killed.
Fires when the `LOCK` of a database, or the whole database, goes while it is held, its close was not announced, and the
process goes on for a second. One finding per database that goes.
Fires, too, when a single file that RocksDB needs goes while `LOCK` stays and is held: no owner does that. Usually
`state.dir` is in a temporary directory that the operating system sweeps by age.
Stays quiet for whoever closes first, and for SST files and old manifests, which a running store drops itself.

Source:
    StateManagerUtil.closeStateManager (2.6.0 to 4.3.1: closes, then deletes), AbstractSegments.cleanupExpiredSegments
    (close, then destroy), StateDirectory.cleanRemovedTasks (takes the task's lock before); RocksDB's DBImpl keeps
    `LOCK` open until it is closed (5.7 to 10.1); docs/state-format.md#n19.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent.contract.events import Affected, Confidence, Severity
from agent.inventory.model import ProcessLife
from agent.judging.base import DetectorMeta, Evidence, Kind, Mechanism, TaskCase, Twin
from agent.judging.refused import GOES_ON_US, leaks
from agent.judging.rule import Docket, Loudness, Rule, TaskStory, derived, detector

META = DetectorMeta(
    id="deleted-while-held",
    title="Files of a store deleted while a process has them open",
    mechanism=Mechanism.OFFSET_WITHOUT_DATA,
    severity=Severity.WARNING,
    kind=Kind.EVENT,
    next_action=(
        "Find out who deleted it: a cleaner of Kafka Streams, a script, another pod on this volume, a sweep of /tmp."
        " The process keeps writing to unlinked files until its next flush or open fails. First save any store that has"
        " no changelog: it is lost with the process. Then restart this instance cleanly: stores with a changelog are"
        " restored in full."
    ),
    consequence=(
        "The store exists only in the process's open files. It is lost when the process ends, and a second process can"
        " open the directory."
    ),
    twin=Twin(
        "N14, a fenced owner wiped all its tasks: it closed every store first", "benign-eos-fencing-4.1.2"
    ),
)
SWEPT = (
    "Move state.dir out of the swept directory (default: /tmp/kafka-streams up to 2.7, the JVM's temporary"
    " directory since 2.8) or exempt it from the sweep. The store works until its next open and fails then:"
    " plan a clean stop, keep a copy of this task directory, and remove it before the start."
)


class Gone(TaskStory):
    """Something of a store went while a process held it."""

    at_us: int
    path: str
    subject = derived(lambda x: f"{x.path}@{x.at_us}")
    opened_at_us = derived(lambda x: x.at_us)


class Swept(Gone):
    """A single file, while `LOCK` stayed: what else reports damage of the task does not explain who removed it."""

    affected = Affected.NO
    mechanism = Mechanism.DAMAGED_FILES


class Taken(Gone):
    """A whole database; `is_leak` = its own process had left it open, see `agent.judging.refused`."""

    store: str
    is_leak: bool
    names_store = derived(lambda x: x.store)

    @property
    def life(self) -> ProcessLife | None:
        """The newest process."""
        lives = self.case.application.lives
        return lives[-1] if lives else None


def _swept(case: TaskCase) -> Iterator[Swept]:
    return (Swept(case, at_us, path) for at_us, path in case.task.swept)


def _taken(case: TaskCase) -> Iterator[Taken]:
    leaked = {(leak.at_us, leak.path) for leak in leaks(case)}
    for at_us, store, path in case.task.taken:
        yield Taken(case, at_us, path, store, (at_us, path) in leaked)


def _has_ended(x: Taken) -> bool:
    ended_us = x.life.ended_us if x.life else None
    return ended_us is not None and ended_us < x.at_us + GOES_ON_US


def _is_forgotten(x: Taken) -> bool:
    """A new process took over: how the old one opened a windowed store is forgotten, and so why it held a segment."""
    known = x.task.stores.get(x.store)
    return known is not None and known.segmented and x.life is not None and x.at_us < x.life.started_us


SWEPT_FILE = Rule[Swept](
    "a file that RocksDB needs was removed under the process that holds the store",
    loudness=lambda _x, _: Loudness(
        Severity.WARNING, Confidence.SUSPECTED, next_action=SWEPT, gives_way=False
    ),
    summary=lambda x, _: (
        f"Task {x.task.id}: {x.path.rpartition('/')[2]} was removed while a process holds the store."
    ),
    evidence=lambda x, _: (Evidence(x.at_us, "gone while LOCK is held; its owner goes on", x.path),),
)

TAKEN = Rule[Taken](
    "a database was deleted under the process that holds it",
    innocents={
        "a segment that its start-up pass left open (unopenable-task)": lambda x: x.is_leak,
        "its owner was killed: the end is heard of later": _has_ended,
    },
    unknowns={
        "why an earlier process held that segment is forgotten": _is_forgotten,
        "the end of its owner may be heard of yet": lambda x: x.case.waited_us(x.at_us) < GOES_ON_US,
    },
    summary=lambda x, _: f"Task {x.task.id}: store {x.store} was deleted while a process holds it.",
    evidence=lambda x, _: (
        Evidence(x.at_us, "deleted; it was held, and no close of its LOCK was announced", x.path),
    ),
)

DETECTOR = detector(META, Docket(_swept, (SWEPT_FILE,)), Docket(_taken, (TAKEN,)))
