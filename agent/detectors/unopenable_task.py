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

Source:
    AbstractColumnFamilyAccessor.open and close, RocksDBStore.openDB, ProcessorStateManager.registerStateStores
    (4.3.0 to 4.4.0); GlobalStateManagerImpl.initialize (4.3.1) removes the directory for a ProcessorStateException
    only, RocksDBStore.openDB throws a TaskCorruptedException; with transactional stores a store that is refused is not
    registered, so that nothing is marked as corrupted and nothing wiped (StateManagerUtil.closeStateManager, 4.4.0:
    `hasCorruptedStores`, of registered stores only); recorded: 73 openings in 26 s.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent.contract.events import Confidence, Level, Severity
from agent.inventory.disk import LockState
from agent.inventory.model import Database
from agent.inventory.segments import OPEN
from agent.judging.base import DetectorMeta, Evidence, Fact, Kind, Mechanism, Remedy, TaskCase, Truth, Twin
from agent.judging.refused import GOES_ON_US, Leak, Refused, leaks, refused
from agent.judging.rule import (
    Docket,
    Loudness,
    NamedStoreStory,
    Proof,
    Rule,
    TaskStory,
    derived,
    detector,
    first_of,
)
from agent.judging.upstream import KAFKA_21034, KIP_1035, LEAKED_SEGMENT, REFUSED_OPEN

META = DetectorMeta(
    id="unopenable-task",
    title="Task that cannot be opened",
    mechanism=Mechanism.REFUSED_TASK,
    level=Level.EXPOSURE,
    kind=Kind.CONDITION,
    needs=("processing_guarantee", "enable_transactional_statestores"),
    upstream=(REFUSED_OPEN, LEAKED_SEGMENT, KAFKA_21034, KIP_1035),
    remedy=Remedy.CHECK_FIRST,
    next_action=(
        "If a segment is leaked, restart the process and remove nothing. Otherwise: Start once with"
        " `enable.transactional.statestores` off: that start wipes the task and restores it. Or stop"
        " this instance cleanly, keep a copy of the task directory, remove that task directory only, and start."
    ),
    consequence=(
        "The application does not get to RUNNING, or runs without this task, until an operator acts. Nothing is lost"
        " yet."
    ),
    twin=Twin("a task that is refused once more, then wiped", "eos-4.3.1-crash-flushed"),
    silent_where=((Fact.OFFSETS_IN_STORE, Truth.NO),),
)
RESTART = (
    "Restart this instance: the process, not a thread and not the task. It holds the lock of a segment that it"
    " deleted; in a new process the task is restored in full. Remove nothing."
)
REMOVE = (
    "Stop this instance cleanly, keep a copy of the directory `{0}`, remove that directory only, and start: its"
    " stores are read from their topics again."
)
_REFUSED = (
    "transactional stores refuse it at every opening and never wipe it: the instance that is assigned the task does not"
    " start"
)
_UNTOLD = "with enable.transactional.statestores every start would be refused"
_GLOBAL = "the application fails at every start until the directory of the global stores is removed"
_REMOVE_GLOBAL = (
    "If the instance does not start (*Tasks [-1_-1] are corrupted*): stop it, keep a copy of the directory `global`,"
    " remove that directory only; the start reads the stores from their topics again."
)
_BEFORE_THE_SWITCH = (
    "Start once with enable.transactional.statestores=false: the task is wiped and restored in full; after an orderly"
    " stop switch it on. Or, with the instance stopped, keep a copy of {path} and remove that directory only."
)


class LeftOpen(NamedStoreStory):
    """A database that says open and that no process holds: a start under exactly-once wipes it, and restores it.

    It does not where the stores are transactional (4.4+), nor with global stores.
    """

    database: Database
    subject = derived(lambda x: f"{x.database.identity}@{x.sequence}")
    opened_at_us = derived(lambda x: x.database.lock_since_us or x.database.seen_us)
    identity = derived(lambda x: x.database.identity)
    issues = derived(lambda x: (KAFKA_21034 if x.task.is_global else REFUSED_OPEN,))

    @property
    def sequence(self) -> int:
        """Number of the status."""
        return self.database.offsets.status_sequence if self.database.offsets is not None else 0

    @property
    def is_wiped(self) -> bool:
        """Whether the stores of a task are not transactional, as far as that is known."""
        case = self.case
        may_be = (
            case.says(Fact.TRANSACTIONAL_STORES) is not Truth.NO
            and case.settings.transactional_stores is None
        )
        return not (self.task.is_global or case.profile.transactional is Truth.YES or may_be)


class Leaked(TaskStory):
    """A segment that was deleted while its own process held it."""

    leak: Leak
    subject = derived(lambda x: f"leaked {x.leak.path}@{x.leak.at_us}")
    opened_at_us = derived(lambda x: x.leak.at_us)
    names_store = derived(lambda x: x.leak.store)
    issues = (LEAKED_SEGMENT,)


def _left_open(case: TaskCase) -> Iterator[LeftOpen]:
    for store in case.task.stores.values():
        for x in store.databases.values():
            if x.offsets is not None and x.offsets.status == OPEN and x.lock is LockState.FREE:
                yield LeftOpen(case, store, x)


def _leaked(case: TaskCase) -> Iterator[Leaked]:
    return (Leaked(case, leak) for leak in leaks(case))


def _has_ended(x: Leaked) -> bool:
    """The process that held the segment is not there any more."""
    life = x.case.application.life
    return life is None or life.started_us > x.leak.at_us


def _loudness_of_refused(x: Refused, _: Proof | None) -> Loudness:
    proven = x.counted[2]
    sure = proven and (x.task.is_global or x.transactional)
    asked = ("processing_guarantee", "enable_transactional_statestores")[: 2 if x.transactional else 1]
    return Loudness(
        Severity.CRITICAL if sure else Severity.WARNING,
        Confidence.CONFIRMED if proven else Confidence.SUSPECTED,
        next_action=META.next_action if x.transactional else REMOVE.format(x.task.path),
        remedy=Remedy.CHECK_FIRST if x.transactional else Remedy.RESTORE,
        missing_facts=tuple(name for name in asked if not x.case.settings.is_configured(name)),
    )


def _loudness_of_left_open(x: LeftOpen, _: Proof | None) -> Loudness:
    """A warning where the stores are known to be transactional; info where that, or the guarantee, is not known."""
    steps = _BEFORE_THE_SWITCH.format(path=x.task.path)
    exactly_once, missing = x.case.settings.exactly_once, ""
    if x.task.is_global:
        steps = _REMOVE_GLOBAL
    elif x.case.profile.transactional is not Truth.YES:
        missing = "enable_transactional_statestores"
    elif exactly_once:
        return Loudness(Severity.WARNING, Confidence.CONFIRMED, next_action=steps, remedy=Remedy.CHECK_FIRST)
    else:
        missing = "processing_guarantee"
    return Loudness(
        Severity.INFO,
        Confidence.CONFIRMED,
        None,
        steps,
        (missing,) if missing else (),
        remedy=Remedy.CHECK_FIRST,
    )


def _loudness_of_leaked(x: Leaked, _: Proof | None) -> Loudness:
    known = x.case.settings.exactly_once is True
    confidence = Confidence.CONFIRMED if known else Confidence.SUSPECTED
    return Loudness(Severity.WARNING, confidence, None, RESTART, () if known else ("processing_guarantee",))


# What it says


def _summary_of_refused(x: Refused, _: Proof | None) -> str:
    why = ", as with transactional stores switched on after an unclean end" if x.transactional else ""
    return f"{x.named} is refused at every opening: its status says open, and nothing wipes it{why}."


def _evidence_of_refused(x: Refused, _: Proof | None) -> Iterator[Evidence]:
    (times_us, number, _proven), offsets, path = x.counted, x.database.offsets, x.database.path
    sequence = offsets.status_sequence if offsets is not None else 0
    yield Evidence(x.flushed_us, f"last flush; status open (sequence {sequence})", path)
    yield Evidence(times_us[0], "opened, and refused: nothing was written", path)
    number = times_us.index(x.opened_at_us) + 1
    yield Evidence(x.opened_at_us, f"refused again, {number} openings in all; not wiped", path)


def _summary_of_left_open(x: LeftOpen, _: Proof | None) -> str:
    exactly_once = x.case.settings.exactly_once
    if x.task.is_global:
        then = _GLOBAL if exactly_once else f"under exactly-once {_GLOBAL}"
    elif x.case.profile.transactional is Truth.YES:
        then = _REFUSED if exactly_once else f"under exactly-once {_REFUSED}"
    else:
        wiped = "the next assignment wipes it" if exactly_once else "exactly-once wipes it"
        then = f"{wiped}; {_UNTOLD}"
    return f"{x.named} was left open by an unclean end; {then}."


def _evidence_of_leaked(x: Leaked, _: Proof | None) -> Iterator[Evidence]:
    leak = x.leak
    yield Evidence(leak.opened_us, "a later segment was refused: its status said open", leak.refused)
    what = "deleted; the process held it, and no close of its LOCK was announced"
    yield Evidence(leak.at_us, what, leak.path)


ALOS = "at-least-once goes on with a store that says open"

REFUSED = Rule[Refused](
    "a store is refused at every opening",
    innocents={
        ALOS: lambda x: x.case.settings.exactly_once is False,
        "the store was not opened since its last flush": lambda x: not x.tried_us,
        "a process has held the store for longer than a wipe takes": lambda x: x.is_opened_for_good,
        "too few openings by one process: a start is refused twice, and wipes": lambda x: x.counted[1] == 0,
    },
    loudness=_loudness_of_refused,
    summary=_summary_of_refused,
    evidence=_evidence_of_refused,
)
ONE_A_STORE = first_of(lambda x: x.store.name)
_REFUSALS = Docket(refused, (REFUSED,), ONE_A_STORE)

LEFT_OPEN = Rule[LeftOpen](
    "the next start may not get past a store",
    innocents={
        ALOS: lambda x: x.case.settings.exactly_once is False,
        "without transactional stores the next start wipes the store": lambda x: x.is_wiped,
        "a store of its task is refused already": lambda x: any(_REFUSALS.heard(x.case)),
    },
    loudness=_loudness_of_left_open,
    summary=_summary_of_left_open,
    evidence=lambda x, _: (
        Evidence(x.database.seen_us, f"status open (sequence {x.sequence})", x.place),
        Evidence(x.opened_at_us, "LOCK is free", x.place),
    ),
)

LEAKED = Rule[Leaked](
    "the start-up pass left a segment locked in its own process",
    innocents={"the process that held the segment has ended": _has_ended},
    unknowns={"the process may be about to end": lambda x: x.leak.at_us > x.case.now_us - GOES_ON_US},
    loudness=_loudness_of_leaked,
    summary=lambda x, _: (
        f"Task {x.task.id}: its process holds the lock of a deleted segment of store {x.leak.store} and cannot open"
        " the task again; only a new process can."
    ),
    evidence=_evidence_of_leaked,
)

DETECTOR = detector(
    META, _REFUSALS, Docket(_left_open, (LEFT_OPEN,), ONE_A_STORE), Docket(_leaked, (LEAKED,))
)
