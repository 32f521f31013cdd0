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

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.inventory.disk import LockState
from agent.inventory.model import Session, Store, Task
from agent.inventory.segments import OPEN
from agent.inventory.sessions import stored_offset
from agent.judging.base import Evidence, TaskCase, Verdict
from agent.judging.changelogs import has_changelog
from agent.judging.reopening import DEAD_US, SETTLED_US
from agent.judging.upstream import UNWIPED
from agent.judging.wording import where
from agent.judging.writers import writer_before
from agent.layout.profile import Truth
from agent.quantities.changelog import is_real
from agent.quantities.flushed import commits_passed, flushed_beyond
from agent.quantities.role import TaskRole, role_of

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


def corrupted_and_kept(case: TaskCase, task: Task, store: Store) -> Iterable[Verdict]:
    """Judge a store whose task was corrupted and that was not wiped: before the next start, and after it."""
    marked = [x for x in store.databases.values() if x.uncommitted_us]
    if not marked:
        return
    database = min(marked, key=lambda x: x.uncommitted_us)
    since_us, place = database.uncommitted_us, where(task, store)
    taken = Evidence(
        since_us, "its offset was taken away right behind new records: its task was corrupted", place
    )
    after = _kept_by(case, store, since_us)
    free_us = _free_since(case, task, store)
    if after is not None:
        kept = Evidence(after.opened_us, "the same incarnation opened again, no wipe", place)
        yield _damage(
            task, store, after, (taken, kept), Severity.CRITICAL, "what its corrupted task had not committed"
        )
    elif free_us is not None and case.profile.transactional is not Truth.NO:
        sure = case.profile.transactional is Truth.YES
        free = Evidence(max(free_us, since_us), "not wiped, and no process holds it", place)
        what = "what its corrupted task had not committed"
        severity = Severity.CRITICAL if sure else Severity.WARNING
        missing = () if sure else ("enable_transactional_statestores",)
        yield _at_rest(task, store, since_us, what, (taken, free), severity, missing)


def switched_on_and_kept(case: TaskCase, task: Task, store: Store) -> Iterable[Verdict]:
    """Judge a store that was left without an offset and without transactions: before they are switched on, and after.

    What has no changelog is never wiped, has no offset in any life, and nothing would bring it back.
    """
    left = _left_behind(task, store)
    logged = has_changelog(case.application, task, store.name)
    after = _kept_by(case, store, (left.released_us or 0) if left is not None else 0)
    if after is not None and store.transactional and logged:
        if left is not None and not is_real(after.offset_at_open):
            yield _switched_on(case, task, store, left, after)
        elif left is None and _was_left_unseen(case, store, after):
            yield _switched_on(case, task, store, None, after)
    elif case.profile.transactional is Truth.YES:
        found = _before_the_switch(case, task, store, left)
        yield from found if logged else map(partial(_without_a_changelog, task), found)


def _without_a_changelog(task: Task, found: Verdict) -> Verdict:
    """It may have none: then nothing is to be wiped, and the step must not take it."""
    severity = min(found.severity, Severity.WARNING, key=lambda x: x.rank)
    return replace(found, severity=severity, next_action=_START_WITHOUT.format(path=task.path))


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


def _switched_on(case: TaskCase, task: Task, store: Store, left: Session | None, after: Session) -> Verdict:
    place = where(task, store)
    opened = Evidence(after.opened_us, "opened with transactional stores, no wipe", place)
    if left is None:
        what = "what the older release had not committed"
        found = Evidence(after.opened_us, f"{after.puts_at_open} puts on disk, and no offset", place)
        return _damage(task, store, after, (found, opened), Severity.WARNING, what)
    role, severity = _grade(case, task, store, left)
    flushed = flushed_beyond(left)
    found = Evidence(
        left.released_us or 0, f"let go without an offset, {flushed} puts flushed in that session", place
    )
    missing = ("num_standby_replicas",) if role is TaskRole.UNKNOWN else ()
    what = f"{flushed} puts that may never have been committed"
    return _damage(task, store, after, (found, opened), severity, what, missing)


def _before_the_switch(case: TaskCase, task: Task, store: Store, left: Session | None) -> Iterable[Verdict]:
    """The setting is configured, or other stores show it: the next start keeps what it would have wiped without."""
    fact = task.checkpoint
    named = fact is not None and is_real(fact.offsets.get(store.name))
    since_us = _free_since(case, task, store)
    is_refused = any(x.offsets is not None and x.offsets.status == OPEN for x in store.databases.values())
    if named or is_refused or since_us is None or store.puts <= 0 or stored_offset(store) is not None:
        return
    if left is not None:
        role, severity = _grade(case, task, store, left)
    elif not store.sessions and not store.transactional and _was_flushed_last(store):
        alone = case.settings.number("num_standby_replicas") == 0
        role = TaskRole.ASSUMED if alone else TaskRole.UNKNOWN
        severity = Severity.CRITICAL if alone and store.all_reopens else Severity.WARNING
    else:
        return
    chain = (Evidence(since_us, f"{store.puts} puts on disk, and no offset", where(task, store)),)
    missing = ("num_standby_replicas",) if role is TaskRole.UNKNOWN else ()
    yield _at_rest(
        task, store, since_us, "what had not been committed at its unclean end", chain, severity, missing
    )


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


def _grade(case: TaskCase, task: Task, store: Store, left: Session) -> tuple[TaskRole, Severity]:
    """Grade what a session left: a standby flushes committed records only, and so does who lived on to a commit.

    So does a restoration: critical is only who went on from an offset, or is known to be active.
    """
    writer = writer_before(case, store, left)
    role = role_of(case.application, task, store, left, case.settings, writer, case.now_us, case.passed_us)
    if role is TaskRole.STANDBY_LIKE:
        return role, Severity.INFO
    flushed_us = max((x for one in store.databases.values() for _, x in one.flushed), default=left.opened_us)
    released_us = left.released_us or case.now_us
    committed = flushed_us <= released_us and commits_passed(case.settings, released_us - flushed_us)
    went_on = is_real(left.offset_at_open) or is_real(left.stored_offset_at_open)
    active = role is TaskRole.ACTIVE or (role in (TaskRole.ASSUMED, TaskRole.UNLESS_PAUSED) and went_on)
    return role, Severity.CRITICAL if active and not committed else Severity.WARNING


def _at_rest(
    task: Task,
    store: Store,
    since_us: int,
    what: str,
    chain: tuple[Evidence, ...],
    severity: Severity,
    missing: tuple[str, ...] = (),
) -> Verdict:
    return Verdict(
        subject=f"unwiped at rest, {store.identity}",
        opened_at_us=since_us,
        summary=(
            f"Task {task.id}: store {store.name} holds data without an offset; a start with transactional stores does"
            f" not wipe it, and keeps {what}."
        ),
        evidence=chain,
        severity=severity,
        confidence=Confidence.SUSPECTED,
        store=store.name,
        identity=store.identity,
        level=Level.EXPOSURE,
        upstream=(UNWIPED.key,),
        affected=Affected.YES,
        missing_facts=missing,
        next_action=_BEFORE_THE_START.format(path=task.path),
    )


def _damage(
    task: Task,
    store: Store,
    after: Session,
    chain: tuple[Evidence, ...],
    severity: Severity,
    what: str,
    missing: tuple[str, ...] = (),
) -> Verdict:
    return Verdict(
        subject=f"unwiped, {store.identity}",
        opened_at_us=after.opened_us,
        summary=(
            f"Task {task.id}: store {store.name} had data and no offset, and transactional stores opened it without a"
            f" wipe: it keeps {what}."
        ),
        evidence=chain,
        severity=severity,
        confidence=Confidence.SUSPECTED,
        store=store.name,
        identity=store.identity,
        upstream=(UNWIPED.key,),
        affected=Affected.YES,
        missing_facts=missing,
    )
