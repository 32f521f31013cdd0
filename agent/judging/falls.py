"""Changelog offsets that fell on the same store, by its checkpoints, with nothing to explain it.

Within one session an offset only grows: a restoration begins behind the one in force and goes up, and so does every
write. It falls where the store was opened again meanwhile (a replay from further back), up to 2.4 where a standby reads
again, and else only if the changelog ends before what the store holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from agent.inventory.model import CLOSES_WITHIN_US, CheckpointFact, Session, Store, Task
from agent.judging.base import TaskCase
from agent.layout.facts import Fact
from agent.layout.profile import Truth

MEANING_CHANGED = 1
"""Up to 2.5 the offset is the next one to read, from 2.6 the last one applied."""
SAME_OPENING_US = 1_000_000
"""The old log of an opening and the reading that found it lie less than a second apart."""


@dataclass(frozen=True, slots=True)
class Fall:
    """An offset that fell.

    Args of the dataclass:
        store: Of this store.
        before: The checkpoint with the higher offset.
        after: The next one.
    """

    store: Store
    before: CheckpointFact
    after: CheckpointFact

    @property
    def old(self) -> int:
        """The higher offset."""
        return self.before.offsets[self.store.name]

    @property
    def new(self) -> int:
        """The lower one."""
        return self.after.offsets[self.store.name]


def checkpoint_falls(case: TaskCase) -> Iterator[Fall]:
    """List where a checkpoint of a task says less of a store than the one before, and nothing else explains it.

    "Unknown" (-4) is no offset.
    """
    task = case.task
    if not case.once(lower_entries, task):
        return
    for before, after in pairwise(task.checkpoints):
        if before.incarnation != after.incarnation:
            continue
        for name, offset in after.offsets.items():
            old = before.offsets.get(name)
            store = task.stores.get(name)
            if old is None or store is None or not 0 <= offset < old - MEANING_CHANGED:
                continue
            if is_same_store(store, before) and not is_put_back(store, before, after):
                fall = Fall(store, before, after)
                if not _is_explained(case, fall):
                    yield fall


def lower_entries(task: Task) -> set[str]:
    """List the stores of which a checkpoint may say less than another one written before; mostly none."""
    highest: dict[str, int] = {}
    found: set[str] = set()
    newest_us = 0
    for fact in task.checkpoints:
        offsets = fact.offsets
        if fact.written_us < newest_us:
            return {name for known in task.checkpoints for name in known.offsets}  # a copy was put back
        newest_us = fact.written_us
        for name in offsets:
            if highest.get(name, 0) > offsets[name]:
                found.add(name)
        highest.update(offsets)
    return found


def is_same_store(store: Store, before: CheckpointFact) -> bool:
    """Return whether a checkpoint was written for the incarnation that is there; of segments nothing is known."""
    born_us = max((x.born_us for x in store.databases.values()), default=0)
    return store.segmented or 0 < born_us < before.written_us


def is_put_back(store: Store, before: CheckpointFact, after: CheckpointFact) -> bool:
    """Return whether a checkpoint may come from a copy: older than the one before, or of a time without a session."""
    session = session_at(store, after.written_us)
    if after.written_us < before.written_us or session is None:
        return True
    return session.released_us is not None and after.written_us > session.released_us + CLOSES_WITHIN_US


def _is_explained(case: TaskCase, fall: Fall) -> bool:
    """Return whether something but a changelog that ends too early may have done it.

    An opening that trusted an offset above the new one, of a store that stayed open since, explains nothing.
    """
    store, before, after = fall.store, fall.before, fall.after
    session = session_at(store, after.written_us)
    trusting = session if session is not None and is_above(session.offset_at_open, fall.new) else None
    if trusting is not None and is_one_opening(store, trusting, after.written_us):
        return False
    # LOG.old.* shows a reopen that was too short for a lock poll to see
    opens = [x.opened_us for x in store.sessions]
    opens += [at_us for x in store.databases.values() for at_us in x.reopened_us]
    reopened = any(before.written_us < at_us <= after.written_us for at_us in opens)
    return reopened or _is_read_again(case, fall) is not Truth.NO


def session_at(store: Store, at_us: int) -> Session | None:
    """The session in which something was written, as far as it is known."""
    return next((x for x in reversed(store.sessions) if x.opened_us <= at_us), None)


def is_above(offset: int | None, other: int) -> bool:
    """Return whether an offset is above another by more than the change of its meaning."""
    return offset is not None and offset - MEANING_CHANGED > other


def is_one_opening(store: Store, session: Session, until_us: int) -> bool:
    """Return whether a store stayed open from the start of a session: a corrupted task is closed and opened again."""
    if session.wiped or not store.all_reopens:
        return False
    since_us = session.opened_us - SAME_OPENING_US
    return all(
        len([x for x in database.reopened_us if since_us < x <= until_us]) <= 1
        for database in store.databases.values()
    )


def _is_read_again(case: TaskCase, fall: Fall) -> Truth:
    """Return whether a standby has read its changelog again from where its session began, and flushed that.

    Source:
        StandbyTask.checkpointedOffsets (2.0.1 to 2.4.1: taken once; 2.5.0: the present ones); seen live at 2.0.1.
    """
    store, before, after = fall.store, fall.before, fall.after
    session = session_at(store, before.written_us)
    began = (session.offset_at_open if session is not None else None) or 0
    grew = store.puts_at(after.written_us) > store.puts_at(before.written_us)
    if not grew or after.offsets[store.name] < began:
        return Truth.NO
    return case.says(Fact.STANDBY_READS_AGAIN)
