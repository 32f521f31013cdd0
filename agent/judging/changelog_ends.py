"""Where the changelog of a store ends before what the store holds: the places where its offsets show it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agent.inventory.model import CheckpointFact, Session, Store, Task
from agent.inventory.openings import segments_of
from agent.inventory.sessions import stored_offset
from agent.inventory.settings import COMMIT_INTERVAL_MS
from agent.judging.base import TaskCase
from agent.judging.dropped_offsets import begins_fixed, drops_from_store, is_dropped_with_checkpoint
from agent.judging.falls import (
    SAME_OPENING_US,
    checkpoint_falls,
    is_above,
    is_one_opening,
    is_same_store,
    lower_entries,
    session_at,
)
from agent.judging.reopening import present_sessions
from agent.judging.segment_loss import changelog_of, speaker_of
from agent.judging.wording import checkpoint_of, where
from agent.layout.checkpoint import UNKNOWN_OFFSET
from agent.layout.facts import Fact
from agent.layout.profile import Truth
from agent.quantities.verdicts import outruns_changelog

UNCHANGED_US = 60_000_000
"""A replay writes a checkpoint at the commit interval while it moves by 10,000 records; one that has not moved for two
intervals, and a minute, is not on its way."""
ENDS_TWICE_WITHIN_US = 1_000_000
"""From 3.9 on the end of a restoration writes the same checkpoint twice (recorded: 30 to 110 ms apart)."""
DROPPED_WITHIN_US = 10_000_000
"""The stores of a revived task are opened one after the other."""
GOES_ON_US = 10_000_000
"""A task that is let go or handed over while it is read writes a checkpoint, too, and is closed right after it."""


_OPEN = "while it was open"
_AGAIN = "after it was read again from its start"
_OUTRUN = "with far more puts since than offsets"
_DROPPED = "then was out of range"


@dataclass(frozen=True, slots=True)
class ShortChangelog:
    """A changelog that ends too early.

    Args of the dataclass:
        held: The offset up to which the store held everything.
        held_us: When it said so.
        ends: The offset that it says now; negative = none, nothing was read or it was out of range.
        ends_us: When it said so.
        place: Where both are.
        how: What became of it since.
        proven: No replay explains it.
        others: Stores of which the same can be true instead: offsets are dropped task by task.
    """

    held: int
    held_us: int
    ends: int
    ends_us: int
    place: str
    how: str
    proven: bool = False
    others: tuple[str, ...] = ()

    @property
    def gave(self) -> str:
        """What the changelog says now."""
        return f"offset {self.ends}" if self.ends >= 0 else "nothing"

    @property
    def wording(self) -> str:
        """What happened, as the end of a sentence."""
        if self.how == _DROPPED:
            return (
                f"it held offset {self.held}, which then was out of range: the offset was removed, and the changelog is"
                " read again from its start over what the store holds"
            )
        return f"it held offset {self.held}, and {self.how} the changelog gave {self.gave}"


def short_changelogs(case: TaskCase, task: Task, store: Store) -> Iterator[ShortChangelog]:
    """List what shows that a store's changelog ends too early, the surest first."""
    yield from _fallen(case, task, store)
    if case.says(Fact.WIPE_UNDER_ALOS) is Truth.NO:
        yield from _left_behind(case, task, store)
        if case.says(Fact.OFFSETS_IN_STORE) is Truth.NO:
            yield from _outrun(case, task, store)


def _fallen(case: TaskCase, task: Task, store: Store) -> Iterator[ShortChangelog]:
    """Offsets that fell while the store was open."""
    place = checkpoint_of(task)
    for fall in checkpoint_falls(case):
        if fall.store is store and fall.after.incarnation == task.incarnation:
            yield ShortChangelog(
                fall.old, fall.before.written_us, fall.new, fall.after.written_us, place, _OPEN, proven=True
            )
    sessions = case.once(present_sessions, store)
    for session in sessions:
        for mark in (session.first, session.last):
            if mark is None or mark.offset < 0 or not is_above(session.offset_at_open, mark.offset):
                continue
            if is_one_opening(store, session, mark.at_us):
                yield ShortChangelog(
                    session.offset_at_open or 0,
                    session.opened_us,
                    mark.offset,
                    mark.at_us,
                    place,
                    _OPEN,
                    proven=True,
                )
    if store.segmented:
        yield from _fallen_speaker(case, task, store, sessions)
        return
    for session in sessions:
        lasts = session.released_us is None
        ends, held = stored_offset(store) if lasts else session.stored_offset, session.stored_offset_at_open
        until_us = case.now_us if session.released_us is None else session.released_us
        if ends is not None and is_above(held, ends) and is_one_opening(store, session, until_us):
            yield ShortChangelog(
                held or 0, session.opened_us, ends, until_us, where(task, store), _OPEN, proven=True
            )


def _fallen_speaker(
    case: TaskCase, task: Task, store: Store, sessions: list[Session]
) -> Iterator[ShortChangelog]:
    """4.3.1: the offset of the segment that answered for a windowed store fell.

    A commit writes its offset into every segment, and what another one held was not trusted: a close that was cut
    leaves more in an older segment than in the newest, and all of them go down to what is replayed from there.
    """
    fixed = case.says(Fact.SEGMENT_ANSWERS_FOR_STORE), case.says(Fact.OLDEST_SEGMENT_OFFSET)
    if not store.openings or not sessions or fixed != (Truth.YES, Truth.NO):
        return
    opening, session = store.openings[-1], sessions[-1]
    changelog = changelog_of(opening.segments, case.application.id, store.name)
    speaker = speaker_of(opening.segments, changelog, oldest=False) if changelog is not None else None
    if changelog is None or speaker is None or opening.at_us < session.opened_us - SAME_OPENING_US:
        return
    now = next((x for x in segments_of(store) or () if x.identity == speaker.identity), None)
    held, ends = speaker.offset(changelog), now.offset(changelog) if now is not None else None
    until_us = case.now_us if session.released_us is None else session.released_us
    if held is None or ends is None or ends < 0 or not is_above(held, ends):
        return
    if is_one_opening(store, session, until_us):
        yield ShortChangelog(held, session.opened_us, ends, until_us, speaker.path, _OPEN, proven=True)


def _left_behind(case: TaskCase, task: Task, store: Store) -> Iterator[ShortChangelog]:
    """Offsets below what the store had, after an opening that trusted none."""
    if case.settings.exactly_once is True:
        return
    for fact in task.checkpoints if store.name in case.once(lower_entries, task) else ():
        offset = fact.offsets.get(store.name)
        if offset is None or fact.incarnation != task.incarnation or (store.segmented and offset < 0):
            continue
        held = _held_before(task, store, fact)
        if held is None or not is_above(held.offsets[store.name], max(offset, 0)):
            continue
        ends = _ends_replay(case, task, store, fact)
        if ends or _unmoved_us(case, store, fact) >= _due_us(case):
            known, place = held.offsets[store.name], checkpoint_of(task)
            proven = ends and is_dropped_with_checkpoint(case, task, store, fact)
            yield ShortChangelog(known, held.written_us, offset, fact.written_us, place, _AGAIN, proven)
    if case.settings.exactly_once is False and begins_fixed(task):
        yield from _dropped(case, task, store)


def _due_us(case: TaskCase) -> int:
    interval_ms = case.settings.number("commit_interval_ms") or COMMIT_INTERVAL_MS[False]
    return max(UNCHANGED_US, 2 * interval_ms * 1_000)


def _unmoved_us(case: TaskCase, store: Store, fact: CheckpointFact) -> int:
    """Return for how long a session's checkpoint was its last one: a replay would have written more."""
    left_us = _held_on_us(case, store, fact)
    return left_us if fact.ended_us is None else min(left_us, fact.ended_us - fact.written_us)


def _held_on_us(case: TaskCase, store: Store, fact: CheckpointFact) -> int:
    """Return how long the store was held after a checkpoint; 0 if it was not, or is not known for the same store."""
    session = session_at(store, fact.written_us)
    if session is None or session.created or session.wiped:
        return 0
    until_us = case.now_us if session.released_us is None else session.released_us
    return max(until_us - fact.written_us, 0)


def _went_on(case: TaskCase, task: Task, store: Store, fact: CheckpointFact) -> bool:
    """Return whether the task was kept after a checkpoint: for long enough, or until its offset had moved further."""
    held_us = _held_on_us(case, store, fact)
    further = any(
        0 < x.written_us - fact.written_us <= held_us
        and x.offsets.get(store.name, 0) > fact.offsets[store.name]
        for x in task.checkpoints
    )
    return held_us >= GOES_ON_US or (held_us > 0 and further)


def _ends_replay(case: TaskCase, task: Task, store: Store, fact: CheckpointFact) -> bool:
    """Return whether a checkpoint was written at the end of a restoration, and the task went on.

    Before the first batch there is nothing to write about, so "unknown" is the end of an empty changelog.
    """
    if not _went_on(case, task, store, fact):
        return False
    if fact.offsets[store.name] < 0:
        return case.says(Fact.CHECKPOINT_AT_RESTORE_END_ALOS) is Truth.YES
    return any(
        x.offsets == fact.offsets and 0 < x.written_us - fact.written_us <= ENDS_TWICE_WITHIN_US
        for x in task.checkpoints
    )


def _held_before(task: Task, store: Store, fact: CheckpointFact) -> CheckpointFact | None:
    """The checkpoint of this incarnation with the highest offset before another one."""
    known = [
        x
        for x in task.checkpoints
        if x.written_us < fact.written_us
        and x.incarnation == fact.incarnation
        and x.offsets.get(store.name, 0) > 0
        and is_same_store(store, x)
    ]
    return max(known, key=lambda x: x.offsets[store.name], default=None)


def _dropped(case: TaskCase, task: Task, store: Store) -> Iterator[ShortChangelog]:
    """4.3+: an offset out of range is removed from the store, and the store is opened again without one.

    A changelog of a key-value store is compacted: its beginning does not move, so only its end can have. How far it has
    grown since says nothing.
    """
    for before, after in drops_from_store(store):
        if after.released_us is None and case.waited_us(after.opened_us) < GOES_ON_US:
            continue
        others = tuple(
            x.name
            for x in task.stores.values()
            if x is not store
            and any(abs(y.opened_us - after.opened_us) <= DROPPED_WITHIN_US for _, y in drops_from_store(x))
        )
        held, place = before.stored_offset_at_open or 0, where(task, store)
        yield ShortChangelog(
            held, before.opened_us, UNKNOWN_OFFSET, after.opened_us, place, _DROPPED, others=others
        )


def _outrun(case: TaskCase, task: Task, store: Store) -> Iterator[ShortChangelog]:
    """An empty changelog that counted as restored, and has grown past the old offset since.

    Asked after a clean close only: before, a flush that was compacted before it was read seems to have come earlier.
    """
    for session in case.once(present_sessions, store):
        mark = session.last
        if mark is None or session.created or session.closed is not True:
            continue
        if not is_one_opening(store, session, mark.at_us):
            continue
        if outruns_changelog(store, case.profile, session) is Truth.YES:
            held, place = session.offset_at_open or 0, checkpoint_of(task)
            yield ShortChangelog(held, session.opened_us, mark.offset, mark.at_us, place, _OUTRUN)
