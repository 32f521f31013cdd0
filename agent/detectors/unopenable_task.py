"""Detector `unopenable-task`: Kafka Streams cannot open a task, and no further try of the same kind helps.

Nothing is lost: the application does not run, or not with this task. Two faults of 4.3 and later do it, under
exactly-once. A store whose status says open is refused, and with transactional stores (4.4) nothing wipes it; nor does
anything wipe a global store, on any release. Or the start-up pass leaves a segment of a windowed store open: its lock
stays with the process, in which every later try to open the task fails.
Fires before the start when no process holds a store whose status says open, and transactional stores, or a global
store, would not get past it: a warning where they are configured, else info.
Fires when one process was refused a store five times, and wiped and flushed nothing; when two processes were refused a
global store; when a segment was deleted by the process that holds it, after a later segment of its store was refused.
Critical where a process was seen refused and the guarantee is configured. A leaked segment is a warning: a new process
helps.
Clears when the store is wiped, removed or opened for good; for a leaked segment when the process ends.
Stays quiet for two refusals and a wipe, for processes that end before they get the task, moves of a task, reopenings of
a restoration (up to 2.5), stores that open twice, crash loops under at-least-once, and for a tool that opens the store
while no process of the application lives.
Blind spots: RocksDB set to keep few of its old logs; a leak from before the agent's first reading; other reasons why an
opening fails.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from agent.inventory.model import Store
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict
from agent.judging.changelogs import caution_about
from agent.judging.left_open import left_open
from agent.judging.refused import GOES_ON_US, Leak, Refusal, leaks, refusal
from agent.judging.reopening import SETTLED_US
from agent.judging.upstream import KAFKA_21034, KIP_1035, LEAKED_SEGMENT, REFUSED_OPEN
from agent.layout.facts import Fact
from agent.layout.profile import Truth

META = DetectorMeta(
    id="unopenable-task",
    title="Task that cannot be opened",
    mechanism=Mechanism.REFUSED_TASK,
    level=Level.EXPOSURE,
    severity=Severity.CRITICAL,
    kind=Kind.CONDITION,
    scope=Scope.TASK,
    needs=("processing_guarantee", "enable_transactional_statestores"),
    upstream=(REFUSED_OPEN, LEAKED_SEGMENT, KAFKA_21034, KIP_1035),
    next_action=(
        "Start once with `enable.transactional.statestores` off: that start wipes the task and restores it. Or stop"
        " this instance, keep a copy of the task directory, remove that task directory only, and start."
    ),
    consequence=(
        "The application does not get to RUNNING, or runs without this task, until an operator acts. Nothing is lost."
    ),
    twin=Twin("a task that is refused once more, then wiped", "eos-4.3.1-crash-flushed"),
    silent_where=((Fact.OFFSETS_IN_STORE, Truth.NO),),
    waits_us=(GOES_ON_US, SETTLED_US),
)
RESTART = (
    "Restart this instance: the process, not a thread and not the task. It holds the lock of a segment that it"
    " deleted; in a new process the task is restored in full. Nothing is to be removed."
)
REMOVE = (
    "Stop this instance, keep a copy of the directory `{0}`, remove that directory only, and start: its stores are read"
    " from their topics again."
)


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        AbstractColumnFamilyAccessor.open, RocksDBStore.openDB, ProcessorStateManager.registerStateStores,
        StateManagerUtil.closeStateManager (4.4.0: `hasCorruptedStores`, of registered stores only),
        GlobalStateManagerImpl.initialize (4.3.1); recorded: 73 openings in 26 s.
    """
    if case.is_silent(META):
        return
    refused = [(store, refusal(case, store)) for store in case.task.stores.values()]
    yield from (_refused(case, store, found) for store, found in refused if found is not None)
    if not any(found for _, found in refused):
        yield from left_open(case)
    yield from (_leaked(case, leak) for leak in leaks(case) if _lasts(case, leak))


def _refused(case: TaskCase, store: Store, found: Refusal) -> Verdict:
    task, times_us = case.task, found.times_us
    number = times_us.index(found.decided_us) + 1
    transactional = not task.is_global and _may_be_transactional(case)
    is_known = found.proven and (task.is_global or transactional)
    issue = KAFKA_21034 if task.is_global else REFUSED_OPEN if transactional else KIP_1035
    why = ", as with transactional stores switched on after an unclean end" if transactional else ""
    facts, path = found.database.offsets, found.database.path
    assert facts is not None
    asked = ("processing_guarantee", "enable_transactional_statestores")[: 2 if transactional else 1]
    return Verdict(
        subject=f"refused {found.database.identity}",
        opened_at_us=found.decided_us,
        summary=(
            f"Task {task.id}: store {store.name} is refused at every opening: its status says open, and nothing"
            f" wipes it{why}."
        ),
        evidence=(
            Evidence(found.flushed_us, f"last flush; status open (sequence {facts.status_sequence})", path),
            Evidence(times_us[0], "opened, and refused: nothing was written", path),
            Evidence(found.decided_us, f"refused again, {number} openings in all; not wiped", path),
        ),
        severity=Severity.CRITICAL if is_known else Severity.WARNING,
        confidence=Confidence.CONFIRMED if found.proven else Confidence.SUSPECTED,
        store=store.name,
        identity=found.database.identity,
        upstream=(issue.key,),
        affected=case.affected(issue),
        missing_facts=tuple(x for x in asked if not case.settings.is_configured(x)),
        next_action=META.next_action + caution_about(case.application, task)
        if why
        else REMOVE.format(task.path),
    )


def _may_be_transactional(case: TaskCase) -> bool:
    """Return whether the process that is refused may have transactional stores; without them a wipe would follow."""
    is_known = case.says(Fact.TRANSACTIONAL_STORES) is not Truth.NO
    return is_known and case.settings.transactional_stores is not False


def _lasts(case: TaskCase, leak: Leak) -> bool:
    """The process that held the segment is still there."""
    life = case.application.life
    return life is not None and life.started_us <= leak.at_us <= case.now_us - GOES_ON_US


def _leaked(case: TaskCase, leak: Leak) -> Verdict:
    task = case.task
    is_configured = case.settings.exactly_once is True
    return Verdict(
        subject=f"leaked {leak.path}@{leak.at_us}",
        opened_at_us=leak.at_us,
        summary=(
            f"Task {task.id}: its process holds the lock of a deleted segment of store {leak.store} and cannot open"
            " the task again; only a new process can."
        ),
        evidence=(
            Evidence(leak.opened_us, "a later segment was refused: its status said open", leak.refused),
            Evidence(
                leak.at_us, "deleted; the process held it, and no close of its LOCK was announced", leak.path
            ),
        ),
        severity=Severity.WARNING,
        confidence=Confidence.CONFIRMED if is_configured else Confidence.SUSPECTED,
        store=leak.store,
        upstream=(LEAKED_SEGMENT.key,),
        affected=case.affected(LEAKED_SEGMENT),
        missing_facts=() if is_configured else ("processing_guarantee",),
        next_action=RESTART,
    )
