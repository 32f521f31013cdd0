"""Detector `zombie-state`: state that was unused for longer than tombstones live was used again.

Fires when a store was free, from a seen release to a seen open, for longer than `delete.retention.ms` and its old
offset was trusted: keys that were deleted meanwhile are still in it, and their tombstones are gone. A hazard: a
store whose keys are never deleted looks the same, and so does one whose task no other instance had meanwhile.
Where no agent watched, the newest time below the application bounds the pause: of a volume at rest, before the
start, and of one that was opened as it was. Info where file times are those of a copy (unknown), and before a start
where `delete.retention.ms` is assumed.

Source:
    KAFKA-19943, KIP-1259; docs/state-format.md#kafka-19943.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace

from agent.contract.events import Confidence, Level, Severity
from agent.inventory.copied import times_are_copied
from agent.inventory.disk import LockState
from agent.inventory.model import Application, Session, Store, Task
from agent.inventory.segments import OPEN
from agent.inventory.sessions import offset_in_force, stored_offset
from agent.judging.base import DetectorMeta, Evidence, Fact, Remedy, TaskCase, Truth, Twin, seconds
from agent.judging.reopening import is_settled, reopenings
from agent.judging.rule import Docket, IncarnationStory, Loudness, Proof, Rule, derived, detector, first_of
from agent.judging.upstream import KAFKA_19943
from agent.judging.wording import assumptions
from agent.quantities.changelog import is_real

META = DetectorMeta(
    id="zombie-state",
    title="State reused after its tombstones expired",
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    needs=("delete_retention_ms",),
    upstream=(KAFKA_19943,),
    remedy=Remedy.CHECK_FIRST,
    next_action=(
        "If the application deletes keys from this store: stop this instance cleanly, keep a copy, remove this task"
        " directory only, start again and let it restore in full."
    ),
    consequence="Keys that were deleted while the directory was idle are back.",
    twin=Twin("N6, a quiet store was restarted soon", "benign-restart-eos-4.1.2"),
    refreshed=True,
)
BEFORE_THE_START = (
    "Before the next start, if the application deletes keys from this store, and another instance ran while this one"
    " was stopped: keep a copy, remove this task directory only, then start and let it restore in full."
)


class Pause(IncarnationStory):
    """A time in which nobody used a store."""

    issues = (KAFKA_19943,)
    since_us: int  # when it was released, or written last
    until_us: int  # when it was opened, or read

    @property
    def retention_ms(self) -> int:
        """How long tombstones lived then."""
        return self.case.assumed_at("delete_retention_ms", self.until_us) or 0

    @property
    def is_long(self) -> bool:
        """Whether tombstones expired meanwhile."""
        return self.until_us - self.since_us > self.retention_ms * 1_000

    @property
    def is_copied(self) -> bool:
        """Whether the time that it began is that of a copy."""
        return times_are_copied(self.task, self.since_us)


class Reuse(Pause):
    """One that an opening ended; `watched` = its beginning was seen, too."""

    after: Session
    watched: bool
    subject = derived(
        lambda x: f"{x.store.identity}@{x.after.opened_us}" if x.watched else f"{x.store.identity}, unwatched"
    )
    opened_at_us = derived(lambda x: x.after.opened_us)

    @property
    def trusted(self) -> int | None:
        """Offset that the opening trusted."""
        in_store = self.case.says(Fact.OFFSETS_IN_STORE) is Truth.YES
        offsets = (self.after.offset_at_open, self.after.stored_offset_at_open if in_store else None)
        return next((x for x in offsets if is_real(x)), None)


class AtRest(Pause):
    """One that lasted when the store was read."""

    subject = derived(lambda x: f"{x.store.identity}, unwatched")
    opened_at_us = derived(lambda x: x.since_us)


def _unused_until_read(case: TaskCase, store: Store) -> tuple[int, int] | None:
    """Return (since when, until when) no process used a store that was free at every reading; None = not known.

    While any process of the application is alive, it writes to what it has open, sooner or later: what was written last
    below the application bounds the pause of all its tasks.
    """
    if store.sessions or store.lock is not LockState.FREE:
        return None
    application = case.application
    if case.once(_is_alive, application):
        return None
    return case.once(_times, application)[-1], max(database.seen_us for database in store.databases.values())


def _unused_until_opened(case: TaskCase, store: Store, long_us: int) -> tuple[int, int] | None:
    """Return the same of a store of which no session before the first one that is known was seen; None = not known.

    What an opening and the work after it overwrite no longer shows when the session before it ended. So the store was
    read while it was free, or the checkpoint that a close writes is still known; from 4.3 on a close writes none.
    Where its own times are within `long_us`, those of other tasks cannot make it longer.
    """
    session = store.session
    if session is None or len(store.sessions) > 1 or session.created or store.forgotten_us:
        return None
    was_free = all(x.touched_us for x in store.databases.values())
    by_checkpoint = (
        case.says(Fact.OFFSETS_IN_STORE) is Truth.NO
        and offset_in_force(case.task, store.name, session.opened_us, 0) is not None
    )
    opened = {x for database in store.databases.values() for x in database.reopened_us}
    if not was_free and not (by_checkpoint and session.opened_us in opened):
        return None
    own_us = max((x for x in _times_of(case.task, store) if x < session.opened_us), default=0)
    if session.opened_us - own_us <= long_us:
        return own_us, session.opened_us
    times = case.once(_times, case.application)
    before = bisect_right(times, case.once(_began_us, case.application) - 1)
    return max(own_us, times[before - 1] if before else 0), session.opened_us


def _is_alive(application: Application) -> bool:
    """Return whether a process of the application shows: by its lock, by that of a task, or by itself."""
    shown = application.life is not None or application.lock is LockState.HELD or bool(application.processes)
    return shown or any(task.held for task in application.tasks.values())


def _began_us(application: Application) -> int:
    """When the process began to open stores: what is older was written before it."""
    sessions = [
        x.sessions[0] for task in application.tasks.values() for x in task.stores.values() if x.sessions
    ]
    return min(session.opened_us for session in sessions)


def _times(application: Application) -> list[int]:
    """List all times below an application that are known, oldest first."""
    tasks = application.tasks.values()
    return sorted({x for task in tasks for store in task.stores.values() for x in _times_of(task, store)})


def _times_of(task: Task, store: Store) -> list[int]:
    times = [task.mtime_us, *(fact.written_us for fact in task.checkpoints)]
    for database in store.databases.values():
        times += [database.born_us, database.touched_us, database.options_written_us, *database.reopened_us]
        times += [written_us for _, written_us in database.flushed]
        times += [database.offsets.written_us] if database.offsets is not None else []
    return times


def _pauses(case: TaskCase) -> Iterator[Pause]:
    """What was watched decides first. The changelog of a windowed store is deleted by time: it has no tombstones."""
    retention_us = (case.settings.assumed("delete_retention_ms") or 0) * 1_000
    stores = [store for store in case.task.stores.values() if not store.segmented and store.databases]
    for store in stores:
        for before, after in reopenings(case, store):
            yield Reuse(case, store, before.released_us or 0, after.opened_us, after, watched=True)
    for store in stores:
        opened = _unused_until_opened(case, store, retention_us)
        read = _unused_until_read(case, store)
        if opened is not None:
            after = store.sessions[0]
            if after.offset_at_open is None:  # the first reading meets the stores before the checkpoint
                offset = offset_in_force(case.task, store.name, after.opened_us, 0)
                after = replace(after, offset_at_open=offset)
            yield Reuse(case, store, *opened, after, watched=False)
        elif read is not None:
            yield AtRest(case, store, *read)


def _would_be_trusted(x: AtRest) -> bool:
    """Return whether a start would go on with a store at its old offset: exactly-once wipes what has none."""
    fact = x.task.checkpoint
    if fact is not None and is_real(fact.offsets.get(x.store.name)):
        return True
    is_open = any(y.offsets is not None and y.offsets.status == OPEN for y in x.store.databases.values())
    return is_real(stored_offset(x.store)) and not (is_open and x.case.settings.exactly_once is not False)


def _loudness_at_rest(x: AtRest, _: Proof | None) -> Loudness:
    if x.is_long and x.case.settings.is_configured("delete_retention_ms"):
        return Loudness(
            Severity.WARNING, Confidence.SUSPECTED, next_action=BEFORE_THE_START, remedy=Remedy.CHECK_FIRST
        )
    missing = ("delete_retention_ms",) if x.is_long else ()
    return Loudness(
        Severity.INFO,
        Confidence.UNKNOWN,
        next_action=BEFORE_THE_START,
        missing_facts=missing,
        remedy=Remedy.CHECK_FIRST,
    )


# What they say


def _evidence_of_reuse(x: Reuse, _: Proof | None) -> Iterator[Evidence]:
    yield Evidence(x.since_us, "released" if x.watched else "last written", x.place)
    yield Evidence(x.after.opened_us, f"opened again at its old offset {x.trusted}", x.place)
    yield from assumptions(x.case, x.after.opened_us, "delete_retention_ms")


def _summary_at_rest(x: AtRest, _: Proof | None) -> str:
    lives = f"longer than tombstones live ({x.retention_ms / 1000:g} s)"
    what = (
        f"this application wrote nothing for {seconds(x.until_us - x.since_us)}, {lives}"
        if x.is_long
        else f"it may have been unused for {lives}: its file times are those of a copy"
    )
    return (
        f"Task {x.task.id}: {what}. The next start uses store {x.store.name} at its old offset; keys that other"
        " instances deleted in the meantime would reappear."
    )


def _evidence_at_rest(x: AtRest, _: Proof | None) -> Iterator[Evidence]:
    yield Evidence(x.since_us, "last written" if x.is_long else "copied", x.place)
    yield from assumptions(x.case, x.since_us, "delete_retention_ms")


REUSED = Rule[Reuse](
    "a store was used again at its old offset after tombstones had expired",
    about=Reuse,
    innocents={
        "tombstones of that time still live": lambda x: not x.is_long,
        "its session made it anew": lambda x: x.after.created,
        "no offset was trusted": lambda x: x.trusted is None,
    },
    unknowns={
        "its opening may end in a wipe": lambda x: not is_settled(x.case, x.after),
        "its file times are those of a copy": lambda x: not x.watched and x.is_copied,
    },
    summary=lambda x, _: (
        f"{x.named} was unused for {seconds(x.until_us - x.since_us)}, longer than"
        f" tombstones live ({x.retention_ms / 1000:g} s), and is used again: keys deleted meanwhile are back."
    ),
    evidence=_evidence_of_reuse,
)

WOULD_BE_REUSED = Rule[AtRest](
    "a start would use a store at its old offset after tombstones have expired",
    about=AtRest,
    innocents={
        "a start does not trust it: no offset, or it is wiped": lambda x: not _would_be_trusted(x),
        "tombstones of that time still live": lambda x: not x.is_long and not x.is_copied,
    },
    loudness=_loudness_at_rest,
    summary=_summary_at_rest,
    evidence=_evidence_at_rest,
)

DETECTOR = detector(META, Docket(_pauses, (REUSED, WOULD_BE_REUSED), first_of()))
