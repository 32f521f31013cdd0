"""Detector `interrupted-wipe`: a task was closed with a fresh offset just before the process was killed.

Under exactly-once a corrupted task is closed with a checkpoint (4.3: an offset) right before its wipe. A kill in
between leaves uncommitted data that the next start trusts. Fires when a task was closed so, alone, its siblings died
with the process before the wipe could have started on this volume, and the same store was opened again.
Never more than suspected: a task that was committed, or revoked at that very moment, looks the same; only the
aborted transactions in the changelog can show it. Only information where a revocation or an orderly stop explains the
close better (`Close.doubt`).
An orderly stop whose commit failed does the same to all tasks of a thread: it has written their offsets, and wipes them
one by one. It is told by a task that it wiped after it had written this one.

Source:
    TaskManager.handleCorruption, closeDirtyAndRevive, tryCloseCleanActiveTasks, handleRevocation and
    StateManagerUtil.closeStateManager (3.9.1, 4.3.1). A corrupted task is suspended, its offset written, closed and
    wiped before the next one is touched. An orderly stop, and a revocation, write the offsets of all their tasks, then
    close them one by one, both in the order of their ids (a TreeSet). Recorded as `corrupt-kill-*`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.inventory.model import CLOSES_WITHIN_US, PastDatabase, ProcessLife, Session, Shape, Store, Task
from agent.judging.base import DetectorMeta, Evidence, Fact, Mechanism, Remedy, TaskCase, Truth, Twin, seconds
from agent.judging.reopening import eos_reopenings
from agent.judging.rule import Docket, Loudness, Proof, Rule, StoreStory, derived, detector, worst_of
from agent.judging.upstream import INTERRUPTED_STOP, INTERRUPTED_WIPE
from agent.judging.wording import most_affected
from agent.layout import names

META = DetectorMeta(
    id="interrupted-wipe",
    title="Process killed between the close of a task and its wipe",
    mechanism=Mechanism.UNCOMMITTED_DATA,
    severity=Severity.WARNING,
    needs=("processing_guarantee", "kafka_streams_version"),
    upstream=(INTERRUPTED_WIPE, INTERRUPTED_STOP),
    exactly_once=True,
    remedy=Remedy.CHECK_FIRST,
    next_action=(
        "Check for an aborted transaction of this instance that ends right before the kill (kafka-dump-log on the"
        " changelog partition, or `task corrupted` in the application's log). If there is one: stop cleanly, keep"
        " a copy, remove this task directory only, start again. What the task wrote since stays wrong until it is"
        " reprocessed."
    ),
    consequence="Uncommitted records may have been kept; the disk alone cannot show it.",
    twin=Twin("N14, a lost membership wiped all active tasks at once", "benign-eos-fencing-4.1.2"),
)

KILLED_WITHIN_US = 5_000_000
"""No source: a corrupted task's wipe begins within milliseconds of its close; seconds later the task was revoked."""
WIPE_BEGINS_US = 100_000
"""From the last close of a corrupted task to the first removal of its wipe (40 recorded wipes: 4 to 40 ms); the time of
one unlink on this volume comes on top, for a removal shows when it is done."""
POLL_SLACK_US = 300_000  # an unannounced end is found by the next lock poll, 250 ms later at most
SLOWEST_UNLINK_US = 2_000_000
"""Two removals that lie further apart are two occasions, and show nothing about the volume."""
BEFORE_THE_KILL_US = 8_000
"""A kill lets go of everything at once; the recorded closes came 10 and 59 ms before it."""
SAME_END_US = 1_000_000
"""No source: a kill lets go of everything at once, and its ends are seen by notifications or a poll (250 ms)."""
STOPS_WITHIN_US = 10_000_000
"""How long an orderly stop may flush the stores of all tasks before it closes the first of them; no source."""


class Close(StoreStory):
    """A store that was let go, its process ended after that, and the same incarnation was opened again."""

    issues = (INTERRUPTED_WIPE,)
    before: Session
    after: Session
    life: ProcessLife
    subject = derived(lambda x: f"kill@{x.ended_us}")
    opened_at_us = derived(lambda x: x.after.opened_us)

    @property
    def released_us(self) -> int:
        """When the store was let go."""
        return self.before.released_us or 0

    @property
    def ended_us(self) -> int:
        """When the process was gone."""
        return self.life.ended_us or 0

    @property
    def offset_us(self) -> int | None:
        """When the offset was written; up to 4.2 the checkpoint. None = in the store."""
        return self.before.last.at_us if self.before.last is not None else None

    @cached_property
    def let_go(self) -> list[Session]:
        """Sessions of the whole task that ended before the kill."""
        since_us = self.ended_us - KILLED_WITHIN_US
        sessions = (x for store in self.task.stores.values() for x in store.sessions)
        return [
            x for x in sessions if x.released_us is not None and since_us <= x.released_us <= self.ended_us
        ]

    @property
    def closed_us(self) -> int:
        """When the last store of the task was let go before the kill."""
        latest_us = self.ended_us - BEFORE_THE_KILL_US
        return max([self.released_us, *(y for x in self.let_go if (y := x.released_us or 0) <= latest_us)])

    @property
    def due_us(self) -> int:
        """How long after that the wipe would have been seen, as the task's own files show of the volume."""
        unlinks = (x.unlink_us for x in self.let_go if 0 < x.unlink_us <= SLOWEST_UNLINK_US)
        return WIPE_BEGINS_US + min(unlinks, default=0)

    @cached_property
    def others(self) -> list[tuple[Task, Store, Session]]:
        """What the process held beside it and let go; the global state proves nothing, a stop lets go of it last."""
        return [
            (task, store, session)
            for task in self.case.application.tasks.values()
            if task is not self.task and not task.is_global
            for store in task.stores.values()
            for session in store.sessions
            if session.opened_us < self.ended_us and session.released_us is not None
        ]

    @cached_property
    def died_open(self) -> list[Task]:
        """Other tasks that were held after this one was closed, up to the end, and neither closed nor stopped."""
        return [
            task
            for task, _, session in self.others
            if abs((session.released_us or 0) - self.ended_us) <= SAME_END_US
            and (session.released_us or 0) - self.closed_us >= BEFORE_THE_KILL_US
            and session.closed is False
            and not _was_stopped(self, task, session)
        ]

    @cached_property
    def doubt(self) -> str:
        """What speaks against a corrupted close; empty: nothing."""
        if _was_closed_with_others(self):
            return "other tasks were closed with it"
        return self.overdue or ("a stop closes this task first" if _is_first_of_a_stop(self) else "")

    @property
    def overdue(self) -> str:
        """That its wipe should have been seen before the kill; empty: it need not have been."""
        is_late = self.ended_us - self.closed_us - (0 if self.life.announced else POLL_SLACK_US) > self.due_us
        return f"its wipe would have started within {self.due_us / 1_000_000:.1f} s" if is_late else ""


class Stop(Close):
    """The same, and a stop had written its offset that wiped another task afterwards."""

    issues = (INTERRUPTED_STOP,)


def _closes(case: TaskCase) -> Iterator[Close]:
    if case.task.is_global or most_affected(case, (INTERRUPTED_WIPE, INTERRUPTED_STOP)) is Affected.NO:
        return
    for store in case.task.stores.values():
        for before, after in eos_reopenings(case, store):
            released_us = before.released_us or 0
            lives = [
                x for x in case.application.lives if x.ended_us is not None and x.ended_us >= released_us
            ]
            if not lives:
                continue
            close = Close(case, store, before, after, min(lives, key=lambda x: x.ended_us or 0))
            if case.affected(INTERRUPTED_STOP) is not Affected.NO and _was_stopped_in_vain(close):
                yield Stop(case, store, before, after, close.life)
            elif case.affected(INTERRUPTED_WIPE) is not Affected.NO:
                yield close


def _was_stopped_in_vain(x: Close) -> bool:
    """Return whether an orderly stop wrote this task's offset and another's, and wiped the other: its commit failed.

    A corrupted task is written, closed, wiped and opened again before the next one is touched. A stop goes on to the
    next one at once: a wipe long before the kill was none of it. From 4.3 on an offset is on disk once its task is
    closed; there the other rule looks at corrupted tasks, too, as long as they keep it.
    """
    if (in_store := x.offset_us is None) and x.case.affected(INTERRUPTED_WIPE) is not Affected.NO:
        return False
    since_us = x.offset_us or x.released_us - STOPS_WITHIN_US
    closed = bool(x.before.closed and x.before.closed_with_offset)
    if not (closed if in_store else _is_of_a_stop(x, x.task, x.before)):
        return False
    return any(
        y.identity in session.final_identities
        and since_us <= (session.released_us or 0) <= y.ended_us
        and (in_store or (session.opened_us < since_us and _is_of_a_stop(x, task, session)))
        and not any(y.ended_us < again.opened_us < x.ended_us for again in store.sessions)
        for task, store, y in _wiped(x, x.ended_us - STOPS_WITHIN_US, x.ended_us + SAME_END_US)
        for session in store.sessions
    )


def _wiped(x: Close, since_us: int, until_us: int) -> Iterator[tuple[Task, Store, PastDatabase]]:
    """List what of other tasks its owner wiped in a time."""
    for task in x.case.application.tasks.values():
        for store in task.stores.values() if task is not x.task and not task.is_global else ():
            for y in store.past:
                if y.shape is Shape.OWNER_WALK and since_us <= y.ended_us <= until_us:
                    yield task, store, y


def _is_of_a_stop(x: Close, task: Task, session: Session) -> bool:
    """Return whether a task was written together with this one, and not at the end of its restoration."""
    written = _written(task, session, session.released_us or 0)
    least = 0 if x.case.says(Fact.CHECKPOINT_AT_RESTORE_END_EOS) is Truth.NO else 1
    return len(written) > least and abs(max(written) - (x.offset_us or 0)) <= STOPS_WITHIN_US


def _was_let_go_open(x: Close) -> bool:
    """On a slow volume a store is let go later than `closed` allows for: a close removes files, too."""
    took_us = 0 if x.offset_us is None else x.released_us - x.offset_us
    return not x.before.closed and not CLOSES_WITHIN_US < took_us <= CLOSES_WITHIN_US + x.due_us


def _was_stopped(x: Close, other: Task, session: Session) -> bool:
    """An orderly stop writes the checkpoints of all tasks of a thread, then closes them one by one.

    Under exactly-once a task that runs writes none: the first of its session is that of its restoration.
    """
    written = _written(other, session, x.ended_us)
    newest_us = max(written, default=0)
    if x.offset_us is not None and newest_us >= x.offset_us:
        return True
    return len(written) > 1 and newest_us > x.closed_us - STOPS_WITHIN_US


def _written(task: Task, session: Session, until_us: int) -> set[int]:
    marks = {y.at_us for y in (session.first, session.last) if y is not None}
    facts = {y.written_us for y in task.checkpoints}
    return {y for y in marks | facts if session.opened_us <= y <= until_us}


def _was_closed_with_others(x: Close) -> bool:
    """Return whether another task was closed after this one's offset was written (4.3+: shortly before), and kept."""
    since_us = x.closed_us - STOPS_WITHIN_US if x.offset_us is None else x.offset_us
    return any(
        session.closed is True
        and since_us <= (session.released_us or 0) <= x.ended_us
        and not any(
            y.identity in session.final_identities
            and y.shape is Shape.OWNER_WALK
            and y.ended_us <= x.ended_us + SAME_END_US
            for y in store.past
        )
        for _, store, session in x.others
    )


def _is_first_of_a_stop(x: Close) -> bool:
    """Return whether an orderly stop of the tasks that died open would have closed this one first, and wrote no more.

    Up to 4.2 it writes the checkpoints of all tasks before the first close; from 4.3 on the offsets of the others are
    in memory then, and only the order is left. Corrupted tasks are closed by id, too: only one that comes after a task
    that was not corrupted, or after one that was wiped, cannot be the first of a stop.
    """
    wiped_before = any(_wiped(x, x.closed_us - STOPS_WITHIN_US, x.ended_us))
    in_order = all(_order(other) > _order(x.task) for other in x.died_open)
    return x.offset_us is None and not wiped_before and in_order


def _order(task: Task) -> tuple[str, list[int]]:
    """Named topology, if any (`__one__/0_2`), sub-topology and partition: TaskId.compareTo."""
    topology, _, numbers = task.id.rpartition("/")
    return topology, [int(x) for x in numbers.split("_")]


def _loudness(_: Close, proof: Proof | None) -> Loudness:
    if proof is not None:
        return _SUSPECTED
    return Loudness(Severity.INFO, Confidence.UNKNOWN, Level.EVENT, _NOTHING, _SUSPECTED.missing_facts)


# What it says


def _summary(x: Close, proof: Proof | None) -> str:
    means = (
        "if it was closed as corrupted, uncommitted data is in it"
        if proof is not None
        else f"a revocation or an orderly stop, most likely ({x.doubt})"
    )
    return (
        f"Task {x.task.id} was closed with a fresh offset {seconds(x.ended_us - x.closed_us)} before its process was"
        f" killed, and was reopened without a wipe: {means}."
    )


def _evidence(x: Close, _: Proof | None) -> Iterable[Evidence]:
    yield Evidence(x.before.opened_us, f"store {x.store.name} opened", x.place)
    if isinstance(x, Stop):
        what = "its offset written by a stop, which wiped another task afterwards"
        yield Evidence(x.offset_us or x.released_us, what, x.task.path)
    else:
        closed = "closed, with an offset written right before; its siblings were held"
        yield Evidence(x.closed_us, closed, x.task.path)
    lock = f"{x.case.application.id}/{names.LOCK_FILE}"
    yield Evidence(x.ended_us, "the process ended, its other tasks without a close", lock)
    yield Evidence(x.after.opened_us, "the same incarnation opened again, no wipe", x.place)


_SUSPECTED = Loudness(
    Severity.WARNING, Confidence.SUSPECTED, missing_facts=("aborted transactions in the changelog",)
)
_NOTHING = "Nothing, unless the application's log names this task as corrupted right before the kill."

STOP = Rule[Stop](
    "a stop wrote a task's offset, wiped another one because its commit had failed, and was killed before this one",
    about=Stop,
    innocents={
        "revoked seconds before the kill": lambda x: x.ended_us - x.released_us > KILLED_WITHIN_US,
        "closed by the stop, and kept": lambda x: bool(x.overdue),
    },
    loudness=lambda x, _: _SUSPECTED,
    summary=lambda x, _: (
        f"Task {x.task.id} was written by an orderly stop that wiped another task afterwards, so its commit had failed;"
        " it was killed before it wiped this one, which was reopened: uncommitted data may be in it."
    ),
    evidence=_evidence,
)

RULE = Rule[Close](
    "a task was closed with a fresh offset right before a kill, and not wiped",
    innocents={
        "its process lived on to open it again": lambda x: x.after.opened_us < x.ended_us,
        "revoked seconds before the kill": lambda x: x.ended_us - x.released_us > KILLED_WITHIN_US,
        "killed open": lambda x: x.before.closed is False and _was_let_go_open(x),
        # From 4.3 on a close without an offset is a false clean, another matter.
        "closed without an offset (4.3+)": lambda x: (
            x.case.says(Fact.OFFSETS_IN_STORE) is Truth.YES and x.before.closed_with_offset is not True
        ),
        "an orderly stop: no other task died open": lambda x: not x.died_open,
    },
    unknowns={
        "held too briefly to tell how it ended": lambda x: x.before.closed is None and _was_let_go_open(x)
    },
    proofs=(
        lambda x: None if x.doubt else Proof("closed alone, before a wipe would have started", certain=False),
    ),
    loudness=_loudness,
    summary=_summary,
    evidence=_evidence,
)

DETECTOR = detector(META, Docket(_closes, (STOP, RULE), worst_of(lambda x: x.opened_at_us)))
