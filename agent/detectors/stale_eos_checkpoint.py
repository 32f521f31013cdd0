"""Detector `stale-eos-checkpoint`: under exactly-once a checkpoint outlives the start of processing.

Fires when data was flushed beyond the checkpoint while the store is open (or was left so by an unclean end): a
crash now would make the next start trust that data, committed or not. Critical where the process is gone and no process
has started it again: the last moment at which removing the task directory still saves everything.
Never more than a warning for a restoration that was killed half way. Confirmed only once more than 10,000 records were
flushed beyond the checkpoint and commits passed: a standby or a restoration that was paused (`KafkaStreams.pause`) and
killed leaves the same with fewer, and all of them committed.
Clears when the checkpoint is written again or the store is wiped.

Source:
    DefaultStateUpdater.maybeCompleteRestoration (3.8+), StreamTask.suspend/resume at 2.6.0; recorded as
    `kafka-20685-*`, `exposure-20685-*`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.inventory.copied import times_are_copied
from agent.inventory.model import CheckpointClaim, CheckpointFact, Session
from agent.judging.base import DetectorMeta, Evidence, Fact, Kind, Mechanism, Remedy, TaskCase, Truth, Twin
from agent.judging.reopening import DEAD_US, may_be_wiped_soon, ran_alos
from agent.judging.role import TaskRole, may_be_on_the_way, role_of, was_at_work
from agent.judging.rule import Docket, Loudness, Proof, Rule, StoreStory, derived, detector, worst_of
from agent.judging.upstream import KAFKA_10362, KAFKA_20685
from agent.judging.wording import assumptions, checkpoint_of, most_affected
from agent.judging.writers import any_writer, as_of, before_4_3, writer_of
from agent.quantities.flushed import LATE_US, first_flush_beyond

META = DetectorMeta(
    id="stale-eos-checkpoint",
    title="Checkpoint kept while processing under exactly-once",
    mechanism=Mechanism.UNCOMMITTED_DATA,
    level=Level.EXPOSURE,
    kind=Kind.CONDITION,
    needs=("processing_guarantee", "num_standby_replicas", "kafka_streams_version"),
    upstream=(KAFKA_20685, KAFKA_10362),
    exactly_once=True,
    # what raises an alert is about a process that is gone; of one that runs the verdict has its own words
    remedy=Remedy.RESTORE,
    next_action=(
        "If no process holds the task: BEFORE the next start keep a copy of the task directory, remove that directory"
        " only, then start: the task is restored from committed records, and nothing is lost. While the process runs,"
        " nothing is lost yet: if you stop it, stop it cleanly, never with SIGKILL. Upgrade to a release with"
        " the fix, such as 4.2.2."
    ),
    consequence=(
        "Data beyond the checkpoint may never have been committed. A start after a crash or SIGKILL keeps it."
    ),
    lowers_risk=(
        "Give the pods a terminationGracePeriodSeconds longer than a commit, and memory headroom. Never delete them by"
        " force: only an end without a clean close does harm. Upgrade to a release with the fix, such as 4.2.2."
    ),
    alert_after_m=5,
    twin=Twin("the same flushes on a release without the bug", "control-20685-3.7.2"),
)

COPIED_WITHIN_US = 500_000
"""No source: a copy without its times makes a checkpoint and the files beside it about equally old; a flush that
counts mostly comes later after its checkpoint than this."""
HOLD_US = 1_000_000
"""A clean close flushes and writes the checkpoint within milliseconds; a flush alone for a second is not one."""
RESTORING_US = 30_000_000
"""A restoration writes checkpoints on its way, at the first commit and one per commit interval and 10,000 offsets:
what it flushed in between is committed (seen live). An offset that has not moved for so long is the last, unless all
was still: the brokers were away, or the process was frozen."""


class Kept(StoreStory):
    """A store, and a checkpoint that its next start would trust; the case has the profile of who wrote the store."""

    checkpoint: CheckpointFact  # what is on disk
    # another release may be configured than the one that kept the checkpoint: each trusts it, from 4.3 on in the store
    trusted_later: bool
    # nobody saw which one was at work, and the one that is configured may not keep it, or none is configured
    is_guessed: bool = False
    subject = derived(lambda x: f"incarnation {x.task.incarnation}")
    opened_at_us = derived(lambda x: first_flush_beyond(x.store, x.mark))
    # the older issue only where the newer one is excluded
    upstream = derived(lambda x: ((KAFKA_10362 if _is_the_older(x.case) else KAFKA_20685).key,))
    affected = derived(lambda x: most_affected(x.case, (KAFKA_20685, KAFKA_10362)))

    @property
    def session(self) -> Session | None:
        """Who holds it, or held it last; None = all is known from one reading."""
        return self.store.sessions[-1] if self.store.sessions else None

    @property
    def held(self) -> bool:
        """Whether a crash is still to come."""
        return self.session is not None and self.session.released_us is None

    @cached_property
    def mark(self) -> CheckpointClaim:
        """The checkpoint, and what was on disk when it was written: as it was seen, or by the file times."""
        if self.session is not None and self.session.last is not None:
            return self.session.last
        at_us, offset = self.checkpoint.written_us, self.checkpoint.offsets.get(self.store.name, 0)
        return CheckpointClaim(at_us, offset, self.store.puts_at(at_us))

    @property
    def puts(self) -> int:
        """On disk, as far as the last process flushed them."""
        session = self.session
        return self.store.puts if session is None or session.released_us is None else session.puts_at_release

    @property
    def beyond(self) -> int:
        """Puts on disk beyond the checkpoint."""
        return self.puts - self.mark.puts

    @property
    def passing(self) -> bool:
        """Whether a restoration, or a standby, may have written the checkpoint at a commit."""
        return may_be_on_the_way(self.task, self.checkpoint, self.session.opened_us if self.session else 0)

    @cached_property
    def role(self) -> TaskRole:
        """Whether it may be a standby's."""
        return role_of(self.case, self.store, self.session)

    @property
    def ran(self) -> bool:
        """Whether it was processed, and not only restored."""
        if self.role is TaskRole.ASSUMED:  # a release that keeps none leaves what a timer wrote
            return not self.passing or (not self.is_guessed and _went_on(self))
        return self.role in (TaskRole.ACTIVE, TaskRole.UNLESS_PAUSED)

    @property
    def is_last_moment(self) -> bool:
        """Whether its process is gone, none has started it again, and the next start will trust what is there."""
        released_us = self.session.released_us if self.session else None
        if self.held or (released_us is not None and self.case.waited_us(released_us) < DEAD_US):
            return False
        if may_be_wiped_soon(self.case, self.store):
            return False
        sure = Affected.POSSIBLY if self.trusted_later else Affected.YES
        return self.ran and self.affected in (Affected.YES, sure)


def _is_the_older(case: TaskCase) -> bool:
    return case.affected(KAFKA_10362) is not Affected.NO and case.affected(KAFKA_20685) is Affected.NO


def _kept(case: TaskCase) -> Iterator[Kept]:
    """List the stores of releases that keep a checkpoint, and no offsets in the store."""
    checkpoint = case.task.checkpoint
    if case.task.is_global or checkpoint is None:
        return
    for store in case.task.stores.values():
        ended = store.sessions[-1] if store.sessions and store.session is None else None
        if not store.databases or store.keeps_offsets or ran_alos(case, ended):
            continue
        wrote = as_of(case, writer_of(case, store))
        is_other = wrote.profile is not case.profile
        guessed = not store.sessions and not is_other and _keeps(wrote) is not Truth.YES
        if guessed and _keeps(wrote) is Truth.MAYBE:
            wrote = as_of(case, before_4_3(case.profile))
        elif guessed and case.settings.is_configured("kafka_streams_version"):
            wrote = as_of(case, any_writer(case, store))
        if _keeps(wrote) is not Truth.NO:
            yield Kept(wrote, store, checkpoint, is_other or guessed, guessed)


def _keeps(case: TaskCase) -> Truth:
    said = {case.says(x) for x in (Fact.CHECKPOINT_KEPT_IN_RUNNING, Fact.CHECKPOINT_KEPT_AT_RESUME)}
    return next(x for x in (Truth.YES, Truth.MAYBE, Truth.NO) if x in said)


def _has_copied_times(x: Kept) -> bool:
    """Of one reading: on a volume that was copied without its times everything is about equally old."""
    times = [at_us for database in x.store.databases.values() for _, at_us in database.flushed]
    close = max(times, default=0) - x.checkpoint.written_us < COPIED_WITHIN_US
    return x.session is None and (close or times_are_copied(x.task, x.checkpoint.written_us))


def _went_on(x: Kept) -> bool:
    """Return whether a process was at work when a restoration would have written again, and wrote nothing after it."""
    since_us, session = x.mark.at_us + RESTORING_US, x.session
    if session is None or session.released_us is None:
        # of one reading: the store itself is all that shows it
        return any(y >= since_us for database in x.store.databases.values() for _, y in database.flushed)
    return was_at_work(x.case, since_us, session.released_us - LATE_US)


def _no_commit_wrote_it(x: Kept) -> Proof | None:
    if x.role is not TaskRole.ACTIVE or x.affected is not Affected.YES:
        return None
    return Proof("more than 10,000 records were flushed beyond it, and commits went by")


def _loudness(x: Kept, proof: Proof | None) -> Loudness:
    loud = Severity.CRITICAL if x.is_last_moment else Severity.WARNING
    return Loudness(
        Severity.INFO if x.role is TaskRole.STANDBY_LIKE else loud,
        Confidence.CONFIRMED if proof else Confidence.SUSPECTED,
        next_action=_RUNS if x.held else _BEFORE_THE_START.format(path=x.task.path),
        remedy=Remedy.OTHER if x.held else Remedy.RESTORE,
        missing_facts=("num_standby_replicas",) if x.role is TaskRole.UNKNOWN else (),
        lasting=x.held,
    )


# What it says


def _summary(x: Kept, _: Proof | None) -> str:
    state = (
        ". After a crash the next start would keep them"
        if x.held
        else ", then its process ended without a clean close. The next start keeps them"
    )
    return (
        f"Task {x.task.id}: {x.beyond} writes to store {x.store.name} reached the disk after its checkpoint"
        f"{state}, committed or not.{_ROLES.get(x.role, '')}"
    )


def _evidence(x: Kept, _: Proof | None) -> Iterable[Evidence]:
    if x.session is not None:
        yield Evidence(x.session.opened_us, f"store {x.store.name} opened", x.place)
    written = f"checkpoint written with offset {x.mark.offset}, {x.mark.puts} puts on disk"
    yield Evidence(x.mark.at_us, written, checkpoint_of(x.task))
    yield Evidence(x.opened_at_us, f"flush beyond it: {x.puts} puts on disk", x.place)
    if x.role is TaskRole.UNKNOWN:
        yield from assumptions(x.case, x.opened_at_us, "num_standby_replicas")


_ROLES = {
    TaskRole.UNLESS_PAUSED: " A paused standby or a paused restoration looks the same, and there they are committed.",
    TaskRole.UNKNOWN: " The role of the task is unknown: a standby may look like this for a while.",
    TaskRole.STANDBY_LIKE: " The role of the task is unknown: a standby may look like this for a while.",
    TaskRole.ASSUMED: " A restoration, or a copy that warms up, may look like this for a while.",
}
_RUNS = (
    "Nothing is lost yet. If you stop this instance, stop it cleanly (that is safe): give it a grace"
    " period longer than a commit, never SIGKILL. After a kill, copy and remove the directory of each such task"
    " before the next start. Upgrade to a release with the fix, such as 4.2.2."
)
_BEFORE_THE_START = (
    "BEFORE the next start: keep a copy of the task directory {path}, remove that directory only, then"
    " start: the task is restored from committed records, and nothing is lost. If it is started as it is,"
    " uncommitted records may stay in the store."
)

RULE = Rule[Kept](
    "data was flushed beyond a checkpoint that stays",
    innocents={
        "the checkpoint does not name it": lambda x: (
            x.session is None and x.store.name not in x.checkpoint.offsets
        ),
        "no checkpoint of it was written since it was opened": lambda x: (
            x.session is not None and x.session.last is None
        ),
        "nothing was flushed beyond the checkpoint": lambda x: x.beyond <= 0,
    },
    unknowns={
        "its file times may be those of a copy": _has_copied_times,
        "a close or a commit may be about to write the checkpoint": lambda x: (
            x.case.waited_us(x.opened_at_us) < (RESTORING_US if x.held and x.passing else HOLD_US)
        ),
    },
    proofs=(_no_commit_wrote_it,),
    loudness=_loudness,
    summary=_summary,
    evidence=_evidence,
)

DETECTOR = detector(META, Docket(_kept, (RULE,), worst_of()))
