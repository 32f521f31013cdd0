"""Changelog offsets that fell on the same store while it was open: its changelog ends before what it holds.

Within one session an offset only grows: a restoration begins behind the one in force and goes up, and so does every
write. It falls where the store was opened again meanwhile (a replay from further back), up to 2.4 where a standby reads
again, and else only if the changelog ends before what the store holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

from agent.contract.events import Affected, Confidence, Severity
from agent.inventory.model import CLOSES_WITHIN_US, CheckpointFact, Session, Store, Task
from agent.inventory.openings import segments_of
from agent.inventory.sessions import stored_offset
from agent.judging.base import Evidence, Fact, TaskCase, Truth
from agent.judging.reopening import present_sessions
from agent.judging.rule import Docket, Loudness, NamedStoreStory, Proof, Rule, derived
from agent.judging.segment_loss import changelog_of, speaker_of
from agent.judging.wording import checkpoint_of, where

MEANING_CHANGED = 1  # up to 2.5 the offset is the next one to read, from 2.6 the last one applied
SAME_OPENING_US = 1_000_000
"""The old log of an opening and the reading that found it lie less than a second apart."""


class Short(NamedStoreStory):
    """A store of which an offset is too low."""

    held: int  # the offset up to which the store held everything
    held_us: int  # when it said so
    ends: int  # the offset that it says now; negative = none, nothing was read or it was out of range
    ends_us: int  # when it said so
    source: str  # where both are
    affected = Affected.YES
    subject = derived(lambda x: f"incarnation {x.task.incarnation}.{x.store.incarnation}")
    opened_at_us = derived(lambda x: x.ends_us)

    @property
    def gave(self) -> str:
        """What the changelog says now."""
        return f"offset {self.ends}" if self.ends >= 0 else "nothing"

    @property
    def others(self) -> tuple[str, ...]:
        """Stores of which the same can be true instead."""
        return ()


class OfCheckpoints(Short):
    """Two checkpoints in a row, of which the later one says less."""

    before: CheckpointFact
    after: CheckpointFact

    @cached_property
    def session(self) -> Session | None:
        """In which the later one was written."""
        return session_at(self.store, self.after.written_us)

    @property
    def trusted_more(self) -> bool:
        """An opening that trusted an offset above the new one, of a store that stayed open since, explains nothing."""
        session = self.session if self.session and is_above(self.session.offset_at_open, self.ends) else None
        return session is not None and is_one_opening(self.store, session, self.ends_us)


class OfOpening(Short):
    """What an opening trusted, and what the store said in the same session."""

    session: Session


def _of_checkpoints(case: TaskCase) -> Iterator[OfCheckpoints]:
    """List where a checkpoint says less of a store than the one before; "unknown" (-4) is no offset."""
    task = case.task
    facts = list(task.checkpoints) if not task.is_global and case.once(lower_entries, task) else []
    for before, after in pairwise(facts):
        for name, ends in after.offsets.items() if before.incarnation == after.incarnation else ():
            held, store = before.offsets.get(name), task.stores.get(name)
            if (
                held is not None
                and store is not None
                and 0 <= ends < held
                and after.incarnation == task.incarnation
            ):
                said = held, before.written_us, ends, after.written_us, checkpoint_of(task)
                yield OfCheckpoints(case, store, *said, before, after)


def _of_openings(case: TaskCase) -> Iterator[OfOpening]:
    task = case.task
    for store in () if task.is_global else task.stores.values():
        sessions = case.once(present_sessions, store)
        for session in sessions:
            for mark in (session.first, session.last):
                held = session.offset_at_open
                if held is not None and mark is not None and 0 <= mark.offset < held:
                    said = held, session.opened_us, mark.offset, mark.at_us, checkpoint_of(task)
                    yield OfOpening(case, store, *said, session)
        yield from (
            _of_speaker(case, store, sessions) if store.segmented else _of_stored(case, store, sessions)
        )


def _of_stored(case: TaskCase, store: Store, sessions: list[Session]) -> Iterator[OfOpening]:
    """4.3+: the offset in the store."""
    for session in sessions:
        ends = stored_offset(store) if session.released_us is None else session.stored_offset
        held = session.stored_offset_at_open
        if held is not None and ends is not None and ends < held:
            said = held, session.opened_us, ends, _until_us(case, session), where(case.task, store)
            yield OfOpening(case, store, *said, session)


def _of_speaker(case: TaskCase, store: Store, sessions: list[Session]) -> Iterator[OfOpening]:
    """4.3.1: the offset of the segment that answered for a windowed store.

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
    if held is not None and ends is not None and 0 <= ends < held:
        said = held, session.opened_us, ends, _until_us(case, session), speaker.path
        yield OfOpening(case, store, *said, session)


def _until_us(case: TaskCase, session: Session) -> int:
    return case.now_us if session.released_us is None else session.released_us


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
    """Return whether a checkpoint was written for the incarnation that is there; of segments no age is known."""
    born_us = max((x.born_us for x in store.databases.values()), default=0)
    return born_us > 0 and (store.segmented or born_us < before.written_us)


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


def _is_put_back(x: OfCheckpoints) -> bool:
    """A checkpoint may come from a copy: older than the one before, or of a time without a session."""
    if x.after.written_us < x.before.written_us or x.session is None:
        return True
    released_us = x.session.released_us
    return released_us is not None and x.after.written_us > released_us + CLOSES_WITHIN_US


def _is_replayed(x: OfCheckpoints) -> bool:
    """It was opened again meanwhile; LOG.old.* shows a reopen that was too short for a lock poll to see."""
    opens = [y.opened_us for y in x.store.sessions]
    opens += [at_us for y in x.store.databases.values() for at_us in y.reopened_us]
    return not x.trusted_more and any(x.held_us < at_us <= x.ends_us for at_us in opens)


def _is_read_again(x: OfCheckpoints) -> bool:
    """A standby has read its changelog again from where its session began, and flushed that.

    Source:
        StandbyTask.checkpointedOffsets (2.0.1 to 2.4.1: taken once; 2.5.0: the present ones); seen live at 2.0.1.
    """
    session = session_at(x.store, x.held_us)
    began = (session.offset_at_open if session is not None else None) or 0
    grew = x.store.puts_at(x.ends_us) > x.store.puts_at(x.held_us)
    may_be = grew and x.ends >= began and x.case.says(Fact.STANDBY_READS_AGAIN) is not Truth.NO
    return may_be and not x.trusted_more


def no_replay(_: Short) -> Proof:
    """Within one opening nothing lowers an offset."""
    return Proof("no replay explains it")


def loudness(x: Short, proof: Proof | None) -> Loudness:
    """Say that it is critical where no replay explains it, nor a recorder that is stale, nor an empty store."""
    sure = proof is not None and x.case.says(Fact.STALE_RECORDER_OFFSETS) is Truth.NO and x.store.puts > 0
    severity = Severity.CRITICAL if sure else Severity.WARNING
    return Loudness(severity, Confidence.SUSPECTED, missing_facts=("end offset of the changelog",))


# What it says


def summary(x: Short, how: str) -> str:
    """Say what the store held, and how it shows that the changelog does not."""
    return (
        f"Task {x.task.id}: the changelog of store {' or '.join((x.store.name, *x.others))} ends before what the"
        f" store holds: it held offset {x.held}, {how}."
    )


def evidence(x: Short, _: Proof | None) -> Iterator[Evidence]:
    """Both offsets."""
    yield Evidence(x.held_us, f"offset {x.held}", x.source)
    yield Evidence(x.ends_us, f"{x.gave}, the same store, not wiped", x.source)


def _while_open(x: Short, _: Proof | None) -> str:
    return summary(x, f"and while it was open the changelog gave {x.gave}")


BY_ONE = "the offset's meaning changed by one, from 2.5 to 2.6"

FELL = Rule[OfCheckpoints](
    "a checkpoint says less than the one before",
    innocents={
        BY_ONE: lambda x: not is_above(x.held, x.ends),
        "the store was made since": lambda x: not is_same_store(x.store, x.before),
        "an older copy of the checkpoint was put back": _is_put_back,
        "the store was opened again, and is replayed": _is_replayed,
        "a standby of up to 2.4 has read the same records again": _is_read_again,
    },
    proofs=(no_replay,),
    loudness=loudness,
    summary=_while_open,
    evidence=evidence,
)

FELL_OPEN = Rule[OfOpening](
    "an offset is below the one that the opening trusted",
    innocents={
        BY_ONE: lambda x: not is_above(x.held, x.ends),
        "the store was opened again meanwhile, and is replayed": lambda x: (
            not is_one_opening(x.store, x.session, x.ends_us)
        ),
    },
    proofs=(no_replay,),
    loudness=loudness,
    summary=_while_open,
    evidence=evidence,
)

DOCKETS = (Docket(_of_checkpoints, (FELL,)), Docket(_of_openings, (FELL_OPEN,)))
