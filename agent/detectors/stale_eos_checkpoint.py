"""Detector `stale-eos-checkpoint`: under exactly-once a checkpoint outlives the start of processing.

Fires when data was flushed beyond the checkpoint while the store is open (or was left so by an unclean end): a
crash now would make the next start trust that data, committed or not. Critical where the process is gone and no process
has started it again: the last moment at which removing the task directory still saves everything.
Clears when the checkpoint is written again or the store is wiped.
Stays quiet for a flush that a clean close is about to checkpoint, under at-least-once, and for a store that keeps its
offsets itself (4.3+). Never more than a warning for a restoration that was killed half way. Confirmed only once more
than 10,000 records were flushed beyond the checkpoint and commits passed: a standby or a restoration that was paused
(`KafkaStreams.pause`) and killed leaves the same with fewer, and all of them committed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from agent.inventory.copied import times_are_copied
from agent.inventory.model import CheckpointClaim, CheckpointFact, Session, Store, Task
from agent.judging.alive import was_at_work
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict
from agent.judging.reopening import DEAD_US
from agent.judging.role import TaskRole, may_be_on_the_way, role_of
from agent.judging.upstream import KAFKA_10362, KAFKA_20685
from agent.judging.wording import assumptions, checkpoint_of, most_affected, where
from agent.judging.writers import writer_of
from agent.layout.facts import Fact
from agent.layout.profile import Truth
from agent.quantities.flushed import LATE_US, first_flush_beyond

META = DetectorMeta(
    id="stale-eos-checkpoint",
    title="Checkpoint kept while processing under exactly-once",
    mechanism=Mechanism.UNCOMMITTED_DATA,
    level=Level.EXPOSURE,
    severity=Severity.CRITICAL,
    kind=Kind.CONDITION,
    scope=Scope.TASK,
    needs=("processing_guarantee", "num_standby_replicas", "kafka_streams_version"),
    upstream=(KAFKA_20685, KAFKA_10362),
    exactly_once=True,
    # what raises an alert is about a process that is gone; of one that runs the verdict has its own words
    next_action=(
        "If no process holds the task: BEFORE the next start keep a copy of the task directory, remove that directory"
        " only, then start: the task is restored from committed records, and nothing is lost. While the process runs,"
        " nothing is lost yet: if you stop it, stop it cleanly, never with SIGKILL. Upgrade to a release with the fix."
    ),
    consequence=(
        "What was flushed beyond the checkpoint may never have been committed, and a start after a crash or SIGKILL"
        " trusts it."
    ),
    lowers_risk=(
        "Give the pods a termination grace period longer than a commit and head-room in memory, and never delete them"
        " by force: only an end without an orderly close does harm. Upgrade where a release with the fix is out."
    ),
    alert_after_m=5,
    twin=Twin("the same flushes on a release without the bug", "control-20685-3.7.2"),
)

COPIED_WITHIN_US = 500_000
HOLD_US = 1_000_000
"""A clean close flushes and writes the checkpoint within milliseconds; a flush alone for a second is not one."""

RESTORING_US = 30_000_000
"""A restoration writes checkpoints on its way, at the first commit and one per commit interval and 10,000 offsets:
what it flushed in between is committed (seen live). An offset that has not moved for so long is the last, unless all
was still: the brokers were away, or the process was frozen."""

_ROLES = {
    TaskRole.UNLESS_PAUSED: " (or it was paused as a standby or while it was restored: then they are committed)",
    TaskRole.UNKNOWN: " (role unknown: a standby may look like this for a while)",
    TaskRole.STANDBY_LIKE: " (role unknown: a standby may look like this for a while)",
    TaskRole.ASSUMED: " (a restoration, or a copy that warms up, may look like this for a while)",
}


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        DefaultStateUpdater.maybeCompleteRestoration (3.8+), StreamTask.suspend/resume at 2.6.0; recorded as
        `kafka-20685-*`, `exposure-20685-*`.
    """
    task = case.task
    if task.is_global or case.is_silent(META):
        return
    fact = task.checkpoint
    if fact is None:
        return
    worst: Verdict | None = None
    for store in task.stores.values():
        wrote = replace(case, profile=writer_of(case, store))
        if _kept_nowhere(wrote):
            continue
        verdict = _judge_store(wrote, task, store, fact, trusted_later=wrote.profile is not case.profile)
        if verdict is not None and (worst is None or verdict.severity.rank > worst.severity.rank):
            worst = verdict
    if worst is not None:
        yield worst


def _kept_nowhere(case: TaskCase) -> bool:
    facts = (Fact.CHECKPOINT_KEPT_IN_RUNNING, Fact.CHECKPOINT_KEPT_AT_RESUME)
    return all(case.says(x) is Truth.NO for x in facts)


def _judge_store(
    case: TaskCase, task: Task, store: Store, fact: CheckpointFact, *, trusted_later: bool
) -> Verdict | None:
    """Judge one store by the release that wrote it.

    Args:
        case: Its profile is that of the writer.
        task: The task.
        store: Its store.
        fact: The checkpoint.
        trusted_later: A later release is configured (4.3+), which moves the checkpoint into the store and trusts it
            there, whatever kept it.
    """
    session = store.sessions[-1] if store.sessions else None
    mark = session.last if session is not None else _mark_from_artefacts(task, store, fact)
    if mark is None or not store.databases or store.keeps_offsets:
        return None
    released_us = None if session is None else session.released_us
    puts = store.puts if session is None or released_us is None else session.puts_at_release
    beyond, flushed_us = puts - mark.puts, first_flush_beyond(store, mark)
    held = session is not None and released_us is None
    passing = _on_the_way(task, session, fact)
    hold_us = RESTORING_US if held and passing else HOLD_US
    if beyond <= 0 or case.waited_us(flushed_us) < hold_us:
        return None
    role = role_of(case, store, session)
    exposed = most_affected(case, (KAFKA_20685, KAFKA_10362))
    dead = not held and (released_us is None or case.waited_us(released_us) >= DEAD_US)
    ran = role in (TaskRole.ACTIVE, TaskRole.UNLESS_PAUSED) or (
        role is TaskRole.ASSUMED and (not passing or _went_on(case, store, mark))
    )
    decided = dead and ran and (exposed is Affected.YES or (trusted_later and exposed is Affected.POSSIBLY))
    return Verdict(
        subject=f"incarnation {task.incarnation}",
        opened_at_us=flushed_us,
        summary=_summary(task, store, beyond, role, held=held),
        evidence=(
            *_opening(task, store, session),
            Evidence(mark.at_us, _written(mark), checkpoint_of(task)),
            Evidence(flushed_us, f"flush beyond it: {puts} puts on disk", where(task, store)),
            *(assumptions(case, flushed_us, "num_standby_replicas") if role is TaskRole.UNKNOWN else ()),
        ),
        severity=_severity(role, decided=decided),
        confidence=_confidence(role, exposed),
        store=None,
        identity=store.identity,
        upstream=(_issue(case),),
        affected=exposed,
        missing_facts=("num_standby_replicas",) if role is TaskRole.UNKNOWN else (),
        next_action=_RUNS if held else _before_the_start(task),
        lasting=held,
    )


_RUNS = (
    "Nothing is lost yet. If you stop this instance, stop it cleanly (that is safe): give it a grace"
    " period longer than a commit, never SIGKILL. After a kill, copy and remove the directory of each such task"
    " before the next start. Upgrade to a release with the fix."
)


def _severity(role: TaskRole, *, decided: bool) -> Severity:
    if role is TaskRole.STANDBY_LIKE:
        return Severity.INFO
    return Severity.CRITICAL if decided else Severity.WARNING


def _confidence(role: TaskRole, exposed: Affected) -> Confidence:
    return (
        Confidence.CONFIRMED if role is TaskRole.ACTIVE and exposed is Affected.YES else Confidence.SUSPECTED
    )


def _summary(task: Task, store: Store, beyond: int, role: TaskRole, *, held: bool) -> str:
    state = (
        "a crash would make the next start trust them, committed or not"
        if held
        else "no process holds it, it ended uncleanly, and the next start trusts them, committed or not"
    )
    about = _ROLES.get(role, "")
    return f"Task {task.id}: {beyond} puts of store {store.name} were flushed beyond its checkpoint; {state}{about}."


def _opening(task: Task, store: Store, session: Session | None) -> tuple[Evidence, ...]:
    if session is None:
        return ()
    return (Evidence(session.opened_us, f"store {store.name} opened", where(task, store)),)


def _written(mark: CheckpointClaim) -> str:
    return f"checkpoint written with offset {mark.offset}, {mark.puts} puts on disk"


def _before_the_start(task: Task) -> str:
    return (
        f"BEFORE the next start: keep a copy of the task directory {task.path}, remove that directory only, then"
        " start: the task is restored from committed records, and nothing is lost. If it is started as it is,"
        " uncommitted records may stay in the store."
    )


def _on_the_way(task: Task, session: Session | None, fact: CheckpointFact) -> bool:
    """Return whether a restoration, or a standby, may have written the checkpoint at a commit."""
    return may_be_on_the_way(task, fact, 0 if session is None else session.opened_us)


def _went_on(case: TaskCase, store: Store, mark: CheckpointClaim) -> bool:
    """Return whether a process was at work when a restoration would have written again, and wrote nothing after it."""
    since_us = mark.at_us + RESTORING_US
    session = store.sessions[-1] if store.sessions else None
    if session is None or session.released_us is None:
        # of one reading: the store itself is all that shows it
        return any(x >= since_us for database in store.databases.values() for _, x in database.flushed)
    return was_at_work(case, since_us, session.released_us - LATE_US)


def _mark_from_artefacts(task: Task, store: Store, fact: CheckpointFact) -> CheckpointClaim | None:
    """From one reading of a store that no process holds: what its file times say was on disk at the checkpoint.

    None where the times show nothing: on a volume that was copied without them everything is about equally old.
    """
    offset = fact.offsets.get(store.name)
    times = [at_us for database in store.databases.values() for _, at_us in database.flushed]
    if offset is None or not times or max(times) - fact.written_us < COPIED_WITHIN_US:
        return None
    if times_are_copied(task, fact.written_us):
        return None
    return CheckpointClaim(fact.written_us, offset, store.puts_at(fact.written_us))


def _issue(case: TaskCase) -> str:
    older = case.affected(KAFKA_10362) is not Affected.NO and case.affected(KAFKA_20685) is Affected.NO
    return KAFKA_10362.key if older else KAFKA_20685.key
