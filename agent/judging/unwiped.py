"""Transactional stores (4.4+): what exactly-once would have wiped, and is kept.

With `enable.transactional.statestores` a store without an offset is not wiped but restored from the beginning, over
what is there. Two lives leave uncommitted records in such a store: a kill between the close of a corrupted task, which
puts the open transaction into the store and takes its offset away, and the wipe; and an unclean end without
transactional stores, of whatever release, before they are switched on. The start-up pass opens a store, and neither
wipes nor commits: only who goes on with it has kept it.

Source:
    ProcessorStateManager.initializeStoreOffsets and commit, StateManagerUtil.closeStateManager,
    StateDirectory.initializeStartupStores (4.4.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.inventory.disk import LockState
from agent.inventory.model import Session, Store, Task
from agent.inventory.segments import OPEN
from agent.inventory.sessions import stored_offset
from agent.judging.base import Evidence, Remedy, TaskCase, Truth
from agent.judging.changelogs import has_changelog
from agent.judging.reopening import DEAD_US, SETTLED_US
from agent.judging.role import TaskRole, role_of
from agent.judging.rule import Docket, Loudness, NamedStoreStory, Proof, Rule, derived
from agent.judging.upstream import UNWIPED
from agent.judging.writers import as_of, writer_before
from agent.quantities.changelog import is_real
from agent.quantities.flushed import commits_passed, flushed_beyond

_START_WITHOUT = (
    "BEFORE the next start: keep a copy of the task directory {path}, and start once with"
    " enable.transactional.statestores=false: that start wipes the task if the store has a changelog, and leaves it"
    " alone if it has none. Remove nothing: no offset of the store was ever seen, and nothing may bring it back."
)
_BEFORE_THE_START = (
    "BEFORE the next start: keep a copy of the task directory {path}, remove that directory only, then start: the task"
    " is restored from committed records, and nothing is lost. Or start once with"
    " enable.transactional.statestores=false: that start wipes it. A start with transactional stores keeps uncommitted"
    " records for good."
)


class Unwiped(NamedStoreStory):
    """A store with data and without an offset."""

    since_us: int  # since when it has been so
    after: Session | None  # the session that kept it; None = the next start would
    # What a start would keep is a finding of its own.
    subject = derived(lambda x: f"unwiped{'' if x.after else ' at rest'}, {x.identity}")
    opened_at_us = derived(lambda x: x.after.opened_us if x.after else x.since_us)
    upstream = (UNWIPED.key,)
    affected = Affected.YES


class Corrupted(Unwiped):
    """Its task was corrupted: the open transaction went into the store, and its offset was taken away."""

    free_us: int | None


class SwitchedOn(Unwiped):
    """It was left without transactions; `left` = by which session, None = before the agent was there."""

    left: Session | None

    @property
    def graded(self) -> tuple[TaskRole, Severity]:
        """Role of who left it, and how bad that is."""
        if self.left is not None:
            return _grade(self.case, self.store, self.left)
        if self.after is not None:
            return TaskRole.ASSUMED, Severity.WARNING
        alone = self.case.settings.number("num_standby_replicas") == 0
        role = TaskRole.ASSUMED if alone else TaskRole.UNKNOWN
        return role, Severity.CRITICAL if alone and self.store.all_reopens else Severity.WARNING


def _corrupted(case: TaskCase) -> Iterator[Corrupted]:
    for store in () if case.task.is_global else case.task.stores.values():
        marks = [x.uncommitted_us for x in store.databases.values() if x.uncommitted_us]
        if marks:
            after = _kept_by(case, store, min(marks))
            yield Corrupted(case, store, min(marks), after, _free_since(case, case.task, store))


def _switched_on(case: TaskCase) -> Iterator[SwitchedOn]:
    task = case.task
    for store in () if task.is_global else task.stores.values():
        if case.profile.transactional is not Truth.YES and not store.transactional:
            continue
        left = _left_behind(task, store)
        after = _kept_by(case, store, (left.released_us or 0) if left is not None else 0)
        if after is not None and store.transactional and has_changelog(case.application, task, store.name):
            if (
                not is_real(after.offset_at_open)
                if left is not None
                else _was_left_unseen(case, store, after)
            ):
                yield SwitchedOn(case, store, 0, after, left)
        elif case.profile.transactional is Truth.YES:
            free_us = _free_since(case, task, store)
            if free_us is not None and (left is not None or not store.sessions):
                yield SwitchedOn(case, store, free_us, None, left)


def _kept_by(case: TaskCase, store: Store, since_us: int) -> Session | None:
    """Return the session that went on with a store: it stored an offset, or holds it for longer than a wipe takes."""
    later = [x for x in store.sessions if x.opened_us >= since_us and x.is_of(store.identities)]
    committed = [x for x in later if x.stored_offset is not None]
    if committed:
        return committed[0]
    last = later[-1] if later else None
    if last is None or last.released_us is not None:
        return None
    is_settled = case.waited_us(last.opened_us) >= SETTLED_US and case.profile.transactional is Truth.YES
    return last if is_settled or stored_offset(store) is not None else None


def _left_behind(task: Task, store: Store) -> Session | None:
    """Return the session that left data without an offset and without transactions, in an unclean end."""
    for session in reversed(store.sessions):
        if session.released_us is None or not session.is_of(store.identities):
            continue
        if session.kept_offsets:
            offset_free = session.transactional is False and session.closed_with_offset is None
            left = offset_free and flushed_beyond(session) > 0
        else:
            lacks = not _is_named(task, store, session.released_us)
            left = lacks and not session.closed and flushed_beyond(session) > 0
        if left and not session.outlived and task.names_changelog_of(store.name, lists_all=True):
            return session
    return None


def _is_named(task: Task, store: Store, at_us: int) -> bool:
    """Return whether a checkpoint named a store at a time; 4.2.2 deletes the one that its restoration wrote."""
    fact = task.checkpoint_at(at_us)
    if fact is None or (fact.ended_us is not None and fact.ended_us <= at_us):
        return False
    return is_real(fact.offsets.get(store.name))


def _was_left_unseen(case: TaskCase, store: Store, after: Session) -> bool:
    """Return whether a store of a release before 4.3 was opened without an offset; no earlier life was seen.

    An agent that starts with its pod sees the start-up pass first, and what the pass found.
    """
    first = store.sessions[0]
    is_seen = not (first.attached or first.created) and first.is_of(store.identities)
    is_old = all(x.born_us <= case.application.plain_us for x in store.databases.values())
    found = (x for x in store.sessions if x.opened_us <= after.opened_us)
    lacks = all(not is_real(x.offset_at_open) and x.stored_offset_at_open is None for x in found)
    return is_seen and is_old and lacks and first.puts_at_open > 0


def _holds_an_offset(x: SwitchedOn) -> bool:
    """A checkpoint names it, or it holds an offset, or 4.4 refuses it: what has an offset is not left without."""
    fact = x.task.checkpoint
    named = fact is not None and is_real(fact.offsets.get(x.store.name))
    refused = any(y.offsets is not None and y.offsets.status == OPEN for y in x.store.databases.values())
    return x.after is None and (named or refused or stored_offset(x.store) is not None)


def _was_flushed_last(store: Store) -> bool:
    """Return whether the last process that opened the store flushed to it, as far as one reading shows.

    A store that 4.4 made and did not commit to holds what it was restored from: its status says nothing.
    """
    flushed_us = max((x for one in store.databases.values() for _, x in one.flushed), default=0)
    opened_us = max((x for one in store.databases.values() for x in one.reopened_us), default=0)
    is_dirty = not store.keeps_offsets or all(
        x.offsets is not None and x.offsets.status is not None for x in store.databases.values()
    )
    return is_dirty and (flushed_us > opened_us or not store.all_reopens)


def _free_since(case: TaskCase, task: Task, store: Store) -> int | None:
    """Since when no process has held a store, and none is about to wipe it or to start; None = not so."""
    if store.lock is not LockState.FREE or task.held is True:
        return None
    session = store.sessions[-1] if store.sessions else None
    if session is None:
        return max(x.lock_since_us or x.seen_us for x in store.databases.values())
    is_over = session.released_us is not None and case.waited_us(session.released_us) >= DEAD_US
    return session.released_us if is_over else None


def _grade(case: TaskCase, store: Store, left: Session) -> tuple[TaskRole, Severity]:
    """Grade what a session left: a standby flushes committed records only, and so does who lived on to a commit.

    So does a restoration: critical is only who went on from an offset, or is known to be active.
    """
    role = role_of(as_of(case, writer_before(case, store, left)), store, left)
    if role is TaskRole.STANDBY_LIKE:
        return role, Severity.INFO
    flushed_us = max((x for one in store.databases.values() for _, x in one.flushed), default=left.opened_us)
    released_us = left.released_us or case.now_us
    committed = flushed_us <= released_us and commits_passed(case.settings, released_us - flushed_us)
    went_on = is_real(left.offset_at_open) or is_real(left.stored_offset_at_open)
    active = role is TaskRole.ACTIVE or (role in (TaskRole.ASSUMED, TaskRole.UNLESS_PAUSED) and went_on)
    return role, Severity.CRITICAL if active and not committed else Severity.WARNING


def _loudness_of_corrupted(x: Corrupted, _: Proof | None) -> Loudness:
    if x.after is not None:
        return Loudness(Severity.CRITICAL, Confidence.SUSPECTED)
    sure = x.case.profile.transactional is Truth.YES
    missing = () if sure else ("enable_transactional_statestores",)
    return _before_the_start(x, Severity.CRITICAL if sure else Severity.WARNING, _BEFORE_THE_START, missing)


def _loudness_of_switched_on(x: SwitchedOn, _: Proof | None) -> Loudness:
    role, severity = x.graded
    missing = ("num_standby_replicas",) if role is TaskRole.UNKNOWN else ()
    if x.after is not None:
        return Loudness(severity, Confidence.SUSPECTED, missing_facts=missing)
    if has_changelog(x.case.application, x.task, x.store.name):
        return _before_the_start(x, severity, _BEFORE_THE_START, missing)
    # It may have no changelog: then nothing is to be wiped, and the step must not take it.
    severity = min(severity, Severity.WARNING, key=lambda y: y.rank)
    return _before_the_start(x, severity, _START_WITHOUT, missing)


def _before_the_start(x: Unwiped, severity: Severity, step: str, missing: tuple[str, ...]) -> Loudness:
    remedy = Remedy.OTHER if step is _START_WITHOUT else Remedy.RESTORE
    step = step.format(path=x.task.path)
    return Loudness(severity, Confidence.SUSPECTED, Level.EXPOSURE, step, missing, remedy=remedy)


# What they say


def _evidence_of_corrupted(x: Corrupted, _: Proof | None) -> Iterable[Evidence]:
    taken = "its offset was taken away right behind new records: its task was corrupted"
    yield Evidence(x.since_us, taken, x.place)
    if x.after is not None:
        yield Evidence(x.after.opened_us, "the same incarnation opened again, no wipe", x.place)
    else:
        yield Evidence(max(x.free_us or 0, x.since_us), "not wiped, and no process holds it", x.place)


def _evidence_of_switched_on(x: SwitchedOn, _: Proof | None) -> Iterable[Evidence]:
    if x.after is None:
        yield Evidence(x.since_us, f"{x.store.puts} puts on disk, and no offset", x.place)
        return
    if x.left is None:
        yield Evidence(x.after.opened_us, f"{x.after.puts_at_open} puts on disk, and no offset", x.place)
    else:
        flushed = flushed_beyond(x.left)
        found = f"released without an offset, {flushed} puts flushed in that session"
        yield Evidence(x.left.released_us or 0, found, x.place)
    yield Evidence(x.after.opened_us, "opened with transactional stores, no wipe", x.place)


def _summary(x: Unwiped, what: str) -> str:
    if x.after is None:
        return (
            f"{x.named} holds data without an offset; a start with transactional stores"
            f" does not wipe it, and keeps {what}."
        )
    return f"{x.named} had data and no offset, and transactional stores opened it without a wipe: it keeps {what}."


def _what_was_left(x: SwitchedOn) -> str:
    if x.after is None:
        return "what had not been committed at its unclean end"
    if x.left is None:
        return "what the older release had not committed"
    return f"{flushed_beyond(x.left)} puts that may never have been committed"


CORRUPTED = Rule[Corrupted](
    "a corrupted task was not wiped, its store is transactional",
    innocents={
        "without transactional stores the next start wipes it": lambda x: (
            x.after is None and x.case.profile.transactional is Truth.NO
        )
    },
    unknowns={"a process holds it, or just let it go": lambda x: x.after is None and x.free_us is None},
    loudness=_loudness_of_corrupted,
    summary=lambda x, _: _summary(x, "what its corrupted task had not committed"),
    evidence=_evidence_of_corrupted,
)

SWITCHED_ON = Rule[SwitchedOn](
    "a store without an offset meets transactional stores",
    innocents={
        "it has an offset": _holds_an_offset,
        "nothing is in it": lambda x: x.after is None and x.store.puts <= 0,
        "it holds what was restored, no more": lambda x: (
            (False)
            if (x.after is not None or x.left is not None)
            else (x.store.transactional or not _was_flushed_last(x.store))
        ),
    },
    loudness=_loudness_of_switched_on,
    summary=lambda x, _: _summary(x, _what_was_left(x)),
    evidence=_evidence_of_switched_on,
)

DOCKETS = (Docket(_corrupted, (CORRUPTED,)), Docket(_switched_on, (SWITCHED_ON,)))


def kept_stores(case: TaskCase) -> frozenset[str]:
    """List the stores of which one of these rules speaks."""
    return frozenset(story.store.name for docket in DOCKETS for story, _ in docket.heard(case))
