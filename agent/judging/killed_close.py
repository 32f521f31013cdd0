"""The close of a task right before its process was killed: when it was, and who was closed or killed with it.

Source: TaskManager.handleCorruption, closeDirtyAndRevive, tryCloseCleanActiveTasks, handleRevocation and
StateManagerUtil.closeStateManager (3.9.1, 4.3.1). A corrupted task is suspended, its offset written, closed and wiped
before the next one is touched. An orderly stop, and a revocation, write the offsets of all their tasks, then close them
one by one, both in the order of their ids.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agent.inventory.model import Application, ProcessLife, Session, Shape, Store, Task

KILLED_WITHIN_US = 5_000_000
"""What was released longer before the end of its process was revoked: nothing is said."""
WIPE_BEGINS_US = 100_000
"""From the last close of a corrupted task to the first removal of its wipe (40 recorded wipes: 4 to 40 ms); the time of
one unlink on this volume comes on top, for a removal shows when it is done."""
POLL_SLACK_US = 300_000
"""An unannounced end is found by the next lock poll, 250 ms later at most."""
SLOWEST_UNLINK_US = 2_000_000
"""Two removals that lie further apart are two occasions, and show nothing about the volume."""
BEFORE_THE_KILL_US = 8_000
"""A kill lets go of everything at once; the recorded closes came 10 and 59 ms before it."""
SAME_END_US = 1_000_000
STOPS_WITHIN_US = 10_000_000
"""How long an orderly stop may flush the stores of all tasks before it closes the first of them."""


@dataclass(frozen=True, slots=True)
class KillClose:
    """The close of a task before a kill.

    Args of the dataclass:
        life: The process that was killed.
        offset_us: When the offset was written; up to 4.2 the checkpoint. None = in the store.
        closed_us: When the last store was let go before the kill.
        due_us: How long after that the wipe would have been seen.
        slack_us: How much earlier than seen the process may have ended.
    """

    life: ProcessLife
    offset_us: int | None
    closed_us: int
    due_us: int
    slack_us: int

    @property
    def ended_us(self) -> int:
        """When the process was gone."""
        return self.life.ended_us or 0

    @property
    def is_in_time(self) -> bool:
        """Whether the kill came before a wipe would have been seen."""
        return self.ended_us - self.closed_us - self.slack_us <= self.due_us


def killed_life(application: Application, before: Session, after: Session) -> ProcessLife | None:
    """The process that ended right after the release; None, too, where it lived to open the store again."""
    released_us = before.released_us or 0
    for life in application.lives:
        if life.ended_us is None or after.opened_us < life.ended_us:
            continue
        if 0 <= life.ended_us - released_us <= KILLED_WITHIN_US:
            return life
    return None


def close_of(task: Task, before: Session, life: ProcessLife) -> KillClose:
    """Return when the task was closed as a whole, and what its own files show about the volume."""
    ended_us, released_us = life.ended_us or 0, before.released_us or 0
    sessions = [
        x
        for store in task.stores.values()
        for x in store.sessions
        if x.released_us is not None and ended_us - KILLED_WITHIN_US <= x.released_us <= ended_us
    ]
    let_go = [x.released_us or 0 for x in sessions]
    closed_us = max([x for x in let_go if x <= ended_us - BEFORE_THE_KILL_US], default=released_us)
    unlinks = [x.unlink_us for x in sessions if 0 < x.unlink_us <= SLOWEST_UNLINK_US]
    offset_us = before.last.at_us if before.last is not None else None
    due_us = WIPE_BEGINS_US + min(unlinks, default=0)
    slack_us = 0 if life.announced else POLL_SLACK_US
    return KillClose(life, offset_us, max(closed_us, released_us), due_us, slack_us)


def siblings_killed(application: Application, task: Task, close: KillClose) -> bool:
    """Other tasks were held after this one was closed, to the end of the process, and neither closed nor stopped.

    The global state proves nothing: an orderly stop lets go of it last, after all tasks of the stream threads.
    """
    return any(_died_open(application, task, close))


def is_first_of_a_stop(application: Application, task: Task, close: KillClose) -> bool:
    """Return whether an orderly stop of the tasks that died open would have closed this one first, and wrote no more.

    Up to 4.2 it writes the checkpoints of all tasks before the first close; from 4.3 on the offsets of the others are
    in memory then, and only the order is left. Corrupted tasks are closed by id, too: only one that comes after a task
    that was not corrupted, or after one that was wiped, cannot be the first of a stop.

    Source:
        TaskManager.tryCloseCleanActiveTasks and handleCorruption (both a TreeSet by id; branch 4.3).
    """
    if close.offset_us is not None or _wiped_before(application, task, close):
        return False
    return all(_order(other) > _order(task) for other in _died_open(application, task, close))


def _wiped_before(application: Application, task: Task, close: KillClose) -> bool:
    return any(
        x.shape is Shape.OWNER_WALK and close.closed_us - STOPS_WITHIN_US <= x.ended_us <= close.ended_us
        for other in application.tasks.values()
        if other is not task and not other.is_global
        for store in other.stores.values()
        for x in store.past
    )


def _died_open(application: Application, task: Task, close: KillClose) -> Iterable[Task]:
    for other, _, session in _others(application, task, close):
        released_us = session.released_us or 0
        with_it = abs(released_us - close.ended_us) <= SAME_END_US
        later = released_us - close.closed_us >= BEFORE_THE_KILL_US
        if with_it and later and session.closed is False and not _was_stopped(other, session, close):
            yield other


def _order(task: Task) -> tuple[int, ...]:
    """Sub-topology, partition: TaskId.compareTo."""
    return tuple(int(number) for number in task.id.split("_"))


def _was_stopped(other: Task, session: Session, close: KillClose) -> bool:
    """An orderly stop writes the checkpoints of all tasks of a thread, then closes them one by one.

    Under exactly-once a task that runs writes none: the first of its session is that of its restoration.
    """
    marks = {x.at_us for x in (session.first, session.last) if x is not None}
    facts = {x.written_us for x in other.checkpoints}
    written = {x for x in marks | facts if session.opened_us <= x <= close.ended_us}
    newest_us = max(written, default=0)
    if close.offset_us is not None and newest_us >= close.offset_us:
        return True
    return len(written) > 1 and newest_us > close.closed_us - STOPS_WITHIN_US


def closed_with(application: Application, task: Task, close: KillClose) -> bool:
    """Return whether another task was closed after this one's offset was written (4.3+: shortly before), and kept."""
    since_us = close.closed_us - STOPS_WITHIN_US if close.offset_us is None else close.offset_us
    return any(
        session.closed is True
        and since_us <= (session.released_us or 0) <= close.ended_us
        and not _was_wiped(store, session, close)
        for _, store, session in _others(application, task, close)
    )


def _was_wiped(store: Store, session: Session, close: KillClose) -> bool:
    return any(
        x.identity in session.final_identities
        and x.shape is Shape.OWNER_WALK
        and x.ended_us <= close.ended_us + SAME_END_US
        for x in store.past
    )


def _others(application: Application, task: Task, close: KillClose) -> Iterable[tuple[Task, Store, Session]]:
    for other in application.tasks.values():
        if other is task or other.is_global:
            continue
        for store in other.stores.values():
            for session in store.sessions:
                if session.opened_us < close.ended_us and session.released_us is not None:
                    yield other, store, session
