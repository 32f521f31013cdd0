"""Transactional stores (4.4+): what exactly-once would have wiped, and is kept.

With `enable.transactional.statestores` a store without an offset is not wiped but restored from the beginning, over
what is there. Two lives leave uncommitted records in such a store: a kill between the close of a corrupted task, which
puts the open transaction into the store and takes its offset away, and the wipe; and an upgrade after a kill, from a
release that flushed records that were not committed.

Source:
    ProcessorStateManager.initializeStoreOffsets and commit, StateManagerUtil.closeStateManager (4.4.0).
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.inventory.disk import LockState
from agent.inventory.model import Session, Store, Task
from agent.judging.base import Evidence, TaskCase, Verdict
from agent.judging.changelogs import has_changelog
from agent.judging.reopening import DEAD_US, reopenings
from agent.judging.upstream import UNWIPED
from agent.judging.wording import where
from agent.judging.writers import writer_before
from agent.layout.profile import Truth
from agent.quantities.changelog import is_real
from agent.quantities.flushed import commits_passed, flushed_beyond
from agent.quantities.role import Role, role_of

_BEFORE_THE_START = (
    "BEFORE the next start: keep a copy of the task directory {path}, remove that directory only, then start: the task"
    " is restored from committed records, and nothing is lost. A start with enable.transactional.statestores keeps the"
    " uncommitted records for good."
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
    after = next((x for _, x in reopenings(store, case.now_us) if x.opened_us >= since_us), None)
    if after is not None:
        kept = Evidence(after.opened_us, "the same incarnation opened again, no wipe", place)
        what = "the records of an aborted transaction"
        yield _damage(task, store, after, (taken, kept), Severity.CRITICAL, what)
    elif (free_us := _free_since(case, task, store)) is not None:
        free = Evidence(max(free_us, since_us), "not wiped, and no process holds it", place)
        what = "the records of a transaction that was never committed"
        yield _at_rest(task, store, since_us, what, (taken, free), Severity.CRITICAL)


def _free_since(case: TaskCase, task: Task, store: Store) -> int | None:
    """Since when no process has held a store, and none is about to wipe it or to start; None = not so."""
    if store.lock is not LockState.FREE or task.held is True:
        return None
    session = store.sessions[-1] if store.sessions else None
    if session is None:
        return max(x.lock_since_us or x.seen_us for x in store.databases.values())
    is_over = session.released_us is not None and case.waited_us(session.released_us) >= DEAD_US
    return session.released_us if is_over else None


def upgraded_and_kept(case: TaskCase, task: Task, store: Store) -> Iterable[Verdict]:
    """Judge a store that 4.2 or earlier left without a checkpoint, before transactional stores open it, and after."""
    if case.profile.transactional is Truth.YES and not store.keeps_offsets:
        yield from _before_the_upgrade(case, task, store)
        return
    for before, after in reopenings(store, case.now_us):
        if before.kept_offsets or not _is_transactional(store) or not _needed_a_wipe(task, store, before):
            continue
        if is_real(after.offset_at_open):
            continue
        role, severity = _grade(case, task, store, before)
        flushed = flushed_beyond(before)
        yield _damage(
            task,
            store,
            after,
            (
                Evidence(
                    before.released_us or 0,
                    f"let go without a checkpoint, {flushed} puts flushed in that session",
                    where(task, store),
                ),
                Evidence(
                    after.opened_us,
                    "opened by a release with transactional stores, no wipe",
                    where(task, store),
                ),
            ),
            severity,
            f"{flushed} puts that may never have been committed",
            () if role is not Role.UNKNOWN else ("num_standby_replicas",),
        )
        return


def _before_the_upgrade(case: TaskCase, task: Task, store: Store) -> Iterable[Verdict]:
    """The release that will start it is configured, or was seen: it keeps what the one before would have wiped."""
    fact = task.checkpoint
    named = fact is not None and is_real(fact.offsets.get(store.name))
    session, since_us = store.sessions[-1] if store.sessions else None, _free_since(case, task, store)
    if named or since_us is None or store.puts <= 0 or not case.names_changelog_of(store.name):
        return
    if session is None:
        role = Role.ASSUMED if case.settings.number("num_standby_replicas") == 0 else Role.UNKNOWN
        # without a changelog nothing would bring it back
        sure = role is Role.ASSUMED and has_changelog(case.application, task, store.name)
        severity = Severity.CRITICAL if sure else Severity.WARNING
    elif _needed_a_wipe(task, store, session):
        role, severity = _grade(case, task, store, session)
    else:
        return
    yield _at_rest(
        task,
        store,
        since_us,
        "what the older release had not committed",
        (Evidence(since_us, f"{store.puts} puts on disk, and no checkpoint names them", where(task, store)),),
        severity,
        ("num_standby_replicas",) if role is Role.UNKNOWN else (),
    )


def _needed_a_wipe(task: Task, store: Store, before: Session) -> bool:
    """Return whether a session left data on disk and no offset, in an unclean end: exactly-once would wipe it."""
    if before.outlived or before.closed or before.last is not None or flushed_beyond(before) <= 0:
        return False
    return task.names_changelog_of(store.name, lists_all=True)


def _is_transactional(store: Store) -> bool:
    return any(x.offsets is not None and x.offsets.transactional for x in store.databases.values())


def _grade(case: TaskCase, task: Task, store: Store, before: Session) -> tuple[Role, Severity]:
    """Grade what a session left: a standby flushes committed records only, and so does who lived on to a commit."""
    role = role_of(
        case.application, task, store, before, case.settings, writer_before(case, store, before),
        case.now_us, case.passed_us,
    )  # fmt: skip
    if role is Role.STANDBY_LIKE:
        return role, Severity.INFO
    flushed_us = max(
        (x for one in store.databases.values() for _, x in one.flushed), default=before.opened_us
    )
    released_us = before.released_us or case.now_us
    committed = flushed_us <= released_us and commits_passed(case.settings, released_us - flushed_us)
    return role, Severity.WARNING if committed or role is Role.UNKNOWN else Severity.CRITICAL


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
