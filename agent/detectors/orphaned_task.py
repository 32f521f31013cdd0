"""Detector `orphaned-task`: a task directory that no process opens and no cleaner takes.

Fires when a directory with data has been free for more than two cleanup delays while its process lives and no
cleaner is at work on it. Info: the cleaner runs only in state RUNNING, and a restoration of any task, however long, is
another state. Warning on 4.3.0 where the start-up pass opened it and no thread did since: its lock is kept forever
(KAFKA-20663), unless a task of the same process seems to restore.
Clears when a process opens it or it is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Confidence, Level, Severity
from agent.contract.units import Twin
from agent.inventory.model import Application, Session, Store, Task
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict, seconds
from agent.judging.upstream import KAFKA_20663
from agent.judging.wording import assumptions
from agent.layout import names
from agent.layout.facts import Fact
from agent.layout.profile import Truth

META = DetectorMeta(
    id="orphaned-task",
    title="Task directory that no process opens and no cleaner deletes",
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.CONDITION,
    scope=Scope.TASK,
    needs=("state_cleanup_delay_ms", "kafka_streams_version"),
    upstream=(KAFKA_20663,),
    next_action=(
        "No data is at risk, but the directory takes disk space. Stop the instance cleanly and start it again,"
        " or upgrade. After a change of the topology the directory may belong to a task id that no longer exists."
    ),
    consequence="It takes disk space until it is removed by hand.",
    alert_after_m=60,
    twin=Twin("N7, the cleaner will take what was left behind", "benign-move-3.9.2"),
)

DELAYS = 2
SLACK_US = 5_000_000
HANDED_OUT_US = 30_000_000
"""A rebalance takes seconds; a task that this instance keeps has been opened by then."""
SEEN_LATE_US = 1_000_000
"""Lock polling sees a process up to a second after its first work."""

WAITS = "The cleaner runs only in state RUNNING: while a task of this instance restores, it takes nothing."


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        KafkaStreams.start (2.1.0, 3.9.1, 4.3.0): the cleaner asks for State.RUNNING;
        StateDirectory.initializeStartupStores, cleanRemovedTasks at 4.3.0; recorded as
        `kafka-20663-startup-lock-4.3.0`, twin `control-20663-startup-lock-4.3.1`.
    """
    task, application = case.task, case.application
    delay_ms = case.settings.assumed("state_cleanup_delay_ms")
    if delay_ms is None or task.is_global or not task.exists or task.held:
        return
    if not any(store.databases for store in task.stores.values()):
        return
    alive_us = case.once(_alive_since, application)
    if alive_us is None or task.walk is not None:
        return
    free_us = max(task.released_us or 0, task.mtime_us, alive_us)
    kept = case.says(Fact.STARTUP_LOCK_KEPT)
    is_locked = (
        kept is Truth.YES
        and _only_the_pass_opened(application, task)
        and not case.once(_may_restore, application)
    )
    is_configured = case.settings.is_configured("state_cleanup_delay_ms")
    # Behind that lock no delay ever ends: without a configured one it is enough that tasks have been handed out.
    limit_us = HANDED_OUT_US if is_locked and not is_configured else DELAYS * delay_ms * 1_000 + SLACK_US
    if case.waited_us(free_us) <= limit_us:
        return
    delay = f" (cleanup delay {delay_ms / 1000:g} s)" if is_configured else ""
    free = (
        f"Task {task.id}: its directory has been free for {seconds(case.waited_us(free_us))}{delay} while the process"
        " lives"
    )
    yield Verdict(
        subject=f"incarnation {task.incarnation}",
        opened_at_us=free_us + limit_us,
        summary=f"{free}; the start-up pass keeps its lock, so no cleaner ever takes it."
        if is_locked
        else f"{free}; no cleaner has taken it. {WAITS}",
        evidence=(
            Evidence(alive_us, "the process lives", f"{application.id}/{names.LOCK_FILE}"),
            Evidence(free_us, "free since then", task.path),
            *assumptions(case, free_us, "state_cleanup_delay_ms"),
        ),
        severity=Severity.WARNING if is_locked else Severity.INFO,
        confidence=_sure(is_locked and is_configured, is_locked, kept),
        affected=case.affected(KAFKA_20663),
        missing_facts=("kafka_streams_version",) if kept is Truth.MAYBE else (),
    )


def _sure(is_certain: bool, is_locked: bool, kept: Truth) -> Confidence:
    if is_certain:
        return Confidence.CONFIRMED
    return Confidence.UNKNOWN if kept is Truth.MAYBE and not is_locked else Confidence.SUSPECTED


def _only_the_pass_opened(application: Application, task: Task) -> bool:
    """Return whether this process opened the stores exactly once: in its start-up pass, and for no assignment since.

    An assignment takes the lock over and gives it back. A process whose start was not seen proves nothing.
    """
    life = application.life
    if life is None:
        return False
    since_us = life.started_us - SEEN_LATE_US
    opened = {
        sum(at_us >= since_us for at_us in (database.born_us, *database.reopened_us))
        for store in task.stores.values()
        for database in store.databases.values()
        if database.all_reopens
    }
    return opened == {1}


def _may_restore(application: Application) -> bool:
    """Return whether a store that is held was flushed in its session, and holds no offset of that session yet."""
    stores = [store for task in application.tasks.values() for store in task.stores.values()]
    return any(_has_no_offset_yet(store, store.session) for store in stores if store.session is not None)


def _has_no_offset_yet(store: Store, session: Session) -> bool:
    unmarked = session.last is None and session.stored_offset is None
    return unmarked and store.puts > session.puts_at_open


def _alive_since(application: Application) -> int | None:
    if application.life is not None:
        return application.life.started_us
    if not application.task_ever_held:
        return None
    held = [task.held_since_us for task in application.tasks.values() if task.held]
    return min(held, default=None)
