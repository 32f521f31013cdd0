"""Detector `unrestored-store`: a task ran on a store that was not restored.

Fires by mechanism: on 2.0.1 to 2.1.1 when a session's checkpoint moves far beyond what was put although the pair
of bulk-load reopens that every restoration makes is missing or half, or when a store that was wiped for a restoration
is used without any (KAFKA-7672), suspected as soon as it has puts, or as a running task commits while its store is
still open for bulk loading; under exactly-once up to 3.5.2 and 3.6.1 when the
process that wiped a store closes the new one with the old offset or a later one, but not with what the old one held
(KAFKA-16017). The same of a store whose changelog is its source topic, from 2.6 on, is suspected (KAFKA-20416, D13).
Stays quiet for a real restoration, also one that a rebalance ends half way, an empty changelog, offset jumps
without a missing step (aborted transactions and compaction make them too), and those of an exactly-once standby. Where
RocksDB leaves no old LOG files that step cannot be seen: unknown.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import WRONG_RESULTS, Twin
from agent.inventory.model import CheckpointClaim, PastDatabase, Session, Shape, Store, Task
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Upstream, Verdict, seconds
from agent.judging.reopening import present_sessions
from agent.judging.source_topic import SourceClaim, source_claim, wiped_before
from agent.judging.unended import HEARD_US, unended_restoration
from agent.judging.upstream import KAFKA_7672, KAFKA_16017, KAFKA_20416, REVIVED_TASK
from agent.judging.wording import assumptions, checkpoint_of, concerned, most_affected, where
from agent.layout.facts import Fact
from agent.layout.profile import Truth
from agent.quantities.carried import continued_from
from agent.quantities.changelog import base_offset
from agent.quantities.verdicts import claims_old_offset, claims_unseen_records

USED_US = 2_000_000
"""Bulk loading is switched on by the very next turn of the thread, milliseconds after the wipe (recorded)."""

READ_US = 2_000_000
"""A flush and the checkpoint behind it are heard of together, and on a busy machine read the other way round."""

CLAIMED_US = 5_000_000
"""An orderly close writes its claim and lets go within 20 ms (recorded): what is held much longer goes on."""

META = DetectorMeta(
    id="unrestored-store",
    title="Task runs on a store that was not restored",
    mechanism=Mechanism.OFFSET_WITHOUT_DATA,
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
    kind=Kind.DAMAGE,
    scope=Scope.TASK,
    needs=("kafka_streams_version", "processing_guarantee", "num_standby_replicas"),
    upstream=(KAFKA_7672, KAFKA_16017, KAFKA_20416, REVIVED_TASK),
    next_action=(
        "Stop this instance, keep a copy of the task directory, remove that task directory only, start again and"
        " watch the restoration begin at the log start. Do not delete the other pods' copies first. What the task"
        " wrote to its changelog and output topics since the opening time was computed on missing state and must"
        " be reprocessed."
    ),
    consequence=WRONG_RESULTS,
    twin=Twin("the same move on a release that restores", "control-7672-gap-2.2.1"),
    waits_us=(
        USED_US,
        READ_US,
        CLAIMED_US,
        HEARD_US,
    ),
)

_OF_SOURCE_TOPICS = (KAFKA_20416, REVIVED_TASK)
_SOURCE_TOPIC_ACTION = (
    "Look for `Finished restoring changelog` of this store in the application's log, right after the wipe: 0 or few"
    " records mean that it is missing state. Then stop this instance, remove that task directory only, and start again."
    " If the source topic is cut by time (`cleanup.policy=delete`), it cannot give back what the old store held."
)

RESTORE_REOPENS = 2


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        StoreChangelogReader.completedRestorers at 2.0.1 to 2.1.1; RecordCollectorImpl.offsets up to 3.6.1;
        recorded as `kafka-7672-*`, `kafka-16017-3.6.1`.
    """
    task = case.task
    if task.is_global:
        return
    for store in task.stores.values():
        for session in case.once(present_sessions, store):
            verdict = (
                _skipped(case, task, store, session)
                or _left_empty(case, task, store, session)
                or _left_half(case, task, store, session)
                or _abandoned(case, task, store, session)
                or _not_refilled(case, task, store, session)
            )
            if verdict is not None:
                yield verdict
                break


def _skipped(case: TaskCase, task: Task, store: Store, session: Session) -> Verdict | None:
    """KAFKA-7672: RUNNING without the restoration."""
    affected = case.affected(KAFKA_7672)
    if affected is Affected.NO or session.attached or session.reopens >= RESTORE_REOPENS or store.segmented:
        return None
    mark = _settled(case, store, session)
    if mark is None or not store.knows_puts:
        return None
    if case.says(Fact.BULK_LOAD_REOPEN) is Truth.NO:
        return None
    if continued_from(task, store, session) is not None:
        return None  # an old offset carried over: `resurrected-checkpoint`
    base = base_offset(session.offset_at_open)
    advance, puts = mark.offset - base, mark.puts - session.puts_at_open
    unseen = claims_unseen_records(session, mark, case.settings)
    if unseen is Truth.NO:
        return None
    may_be_standby = case.settings.number("num_standby_replicas") != 0 and not session.wiped
    if may_be_standby and _is_eos_standby(case, task, session):
        return None
    sure = unseen is Truth.YES and affected is Affected.YES and not may_be_standby
    half = "half of the pair" if session.reopens else "none"
    if not store.all_reopens:
        half = "not known, RocksDB is configured to keep few or no old LOG files there"
    chain = (
        Evidence(session.opened_us, _opening(session, base), where(task, store)),
        Evidence(
            session.opened_us,
            f"bulk-load reopens of a restoration: {half}",
            f"{where(task, store)}/LOG.old.*",
        ),
        _claim(task, mark, f"{advance} offsets ahead of its start, but only {puts} puts were flushed"),
        *(assumptions(case, mark.at_us, "num_standby_replicas") if may_be_standby else ()),
    )
    return _verdict(case, task, store, session, mark, chain, KAFKA_7672, sure=sure, known=store.all_reopens)


def _is_eos_standby(case: TaskCase, task: Task, session: Session) -> bool:
    """Return whether a standby of exactly-once had it, or may have: it passes over records that were aborted.

    Only a standby writes checkpoints while it goes on; an active task writes one at its close. Where the guarantee is
    not known, a checkpoint that was deleted alone shows it: at-least-once deletes none.

    Source:
        ProcessorStateManager, StreamTask.commit, AbstractTask.closeStateManager and StandbyTask.commit (2.0.1, 2.1.1).
    """
    first, last = session.first, session.last
    deletes = any(fact.deleted and not fact.in_walk for fact in task.checkpoints)
    is_eos = deletes if case.settings.exactly_once is None else case.settings.exactly_once
    if not is_eos or first is None or last is None:
        return False
    is_held = session.released_us is None
    return is_held or last.at_us > first.at_us or (session.released_us or 0) - first.at_us >= CLAIMED_US


def _settled(case: TaskCase, store: Store, session: Session) -> CheckpointClaim | None:
    """Return the last or the first checkpoint of a session of which all earlier flushes have been read by now.

    They have if the store was read since; if not, they will be within `READ_US`.
    """
    read_us = min((database.seen_us for database in store.databases.values()), default=0)
    marks = [x for x in (session.last, session.first) if x is not None]
    mark = next((x for x in marks if x.at_us <= read_us or case.waited_us(x.at_us) >= READ_US), None)
    return mark and CheckpointClaim(mark.at_us, mark.offset, max(mark.puts, store.puts_at(mark.at_us)))


def _left_empty(case: TaskCase, task: Task, store: Store, session: Session) -> Verdict | None:
    """KAFKA-7672 where the owner wiped the store, and used it without a restoration: it claims an offset, or has puts.

    Under exactly-once there is no claim before the close. A restoration puts after its first reopen only.

    Source:
        StoreChangelogReader.initialize and startRestoration at 2.0.1 to 2.1.1: only a changelog with an end offset
        above 0 gets as far as the wipe, and the next `restore` turns bulk loading on, before it puts; or it finds the
        partition in completedRestorers. AssignedTasks.applyToRunningTasks: a commit flushes running tasks only.
    """
    affected = case.affected(KAFKA_7672)
    if affected is Affected.NO or not session.wiped or session.reopens or not store.all_reopens:
        return None
    mark, until_us = session.last, session.released_us or case.now_us
    use = _claim(task, mark, f"{mark.puts} puts on disk") if mark else _use(case, task, store, session)
    if use is None or case.passed_us(session.opened_us, until_us) < USED_US:
        return None
    chain = (
        Evidence(session.opened_us, _opening(session, 0), where(task, store)),
        Evidence(
            session.opened_us,
            f"no bulk-load reopen in {seconds(until_us - session.opened_us)}: nothing was restored",
            f"{where(task, store)}/LOG.old.*",
        ),
        use,
    )
    # Not certain: a broker may have gone away right after the wipe, or the changelog may have been emptied.
    sure = affected is Affected.YES and mark is not None
    return _verdict(case, task, store, session, mark, chain, KAFKA_7672, sure=sure, certain=False)


def _use(case: TaskCase, task: Task, store: Store, session: Session) -> Evidence | None:
    """Return what was flushed to a wiped store, as far as every reopen before it has been read, too."""
    read_us = min((database.seen_us for database in store.databases.values()), default=0)
    until_us = min(read_us, case.now_us - READ_US, session.released_us or case.now_us)
    puts = store.puts_at(until_us)
    return Evidence(until_us, f"{puts} puts on disk", where(task, store)) if puts else None


def _left_half(case: TaskCase, task: Task, store: Store, session: Session) -> Verdict | None:
    """KAFKA-7672 where one poll of the restoration was applied, and the task ran: suspected, it may have been all."""
    chain = unended_restoration(case, task, store, session)
    if chain is None or case.affected(KAFKA_7672) is Affected.NO or continued_from(task, store, session):
        return None
    return _verdict(case, task, store, session, None, chain, KAFKA_7672, sure=False)


def _abandoned(case: TaskCase, task: Task, store: Store, session: Session) -> Verdict | None:
    """KAFKA-16017: the close of a restoring task claims the offset that the same process had before the wipe."""
    affected, mark = case.affected(KAFKA_16017), session.first
    if affected is Affected.NO or mark is None or not session.created or case.settings.exactly_once is False:
        return None
    before = wiped_before(store, session)
    if before is None or before.shape is not Shape.OWNER_WALK or not store.knows_puts:
        return None
    same = _is_same_process(case, before, mark)
    claims = claims_old_offset(mark, before, _old_offset(task, store, before))
    if same is Truth.NO or claims is Truth.NO:
        return None
    sure = (
        claims is Truth.YES
        and same is Truth.YES
        and affected is Affected.YES
        and case.settings.exactly_once is True
    )
    held = before.puts if before.entries_low is None else before.entries_low
    chain = (
        Evidence(before.ended_us, f"wiped by its owner; it held {held} entries or more", where(task, store)),
        Evidence(session.opened_us, "a new, empty store was made", where(task, store)),
        _claim(task, mark, f"with only {mark.puts} puts restored"),
    )
    return _verdict(case, task, store, session, mark, chain, KAFKA_16017, sure=sure)


def _is_same_process(case: TaskCase, before: PastDatabase, mark: CheckpointClaim) -> Truth:
    """Return whether the process that had flushed to the old store wrote the new one's checkpoint.

    Source:
        StreamTask.checkpointableOffsets (3.5.0): only a process that had written has offsets of its recorder.
    """
    for life in case.application.lives:
        if life.started_us <= mark.at_us and (life.ended_us is None or mark.at_us <= life.ended_us):
            return Truth.YES if life.started_us < before.flushed_us else Truth.NO
    return Truth.MAYBE


def _old_offset(task: Task, store: Store, before: PastDatabase) -> int | None:
    """The highest offset that a checkpoint held for the old store while it was there."""
    offsets = [
        fact.offsets.get(store.name, 0)
        for fact in task.checkpoints
        if before.born_us <= fact.written_us <= before.ended_us
    ]
    return max(offsets, default=None)


def _not_refilled(case: TaskCase, task: Task, store: Store, session: Session) -> Verdict | None:
    """KAFKA-20416 and D13: a wiped store claims what its task had consumed of the source topic, without the entries.

    Never more than suspected: a source topic that is cut by time gives back fewer records than the old store held.

    Source:
        StoreChangelogReader.hasRestoredToEnd (3.3.2 to 4.3.1), StreamTask.checkpointableOffsets (2.8.2 to 4.3.1).
    """
    if case.settings.exactly_once is False or not session.created:
        return None
    before = wiped_before(store, session)
    if before is None or before.shape is not Shape.OWNER_WALK or not store.knows_puts:
        return None
    claim, upstream = source_claim(task, store, session), concerned(case, _OF_SOURCE_TOPICS)
    if claim is None or claim.before is None or not upstream:
        return None
    if claims_old_offset(claim.mark, before, claim.before) is not Truth.YES:
        return None
    is_held = session.released_us is None  # the restoration may go on: an exposure, until it has caught up
    if is_held and case.waited_us(claim.mark.at_us) < CLAIMED_US:
        return None
    return Verdict(
        subject=f"held@{session.opened_us}" if is_held else store.identity or "",
        opened_at_us=claim.mark.at_us if is_held else session.opened_us,
        summary=(
            f"Task {task.id}: store {store.name} was wiped and claims offset {claim.mark.offset} of its source topic"
            " with far fewer puts than it held entries: it was not restored up to it, or the topic no longer has them."
        ),
        evidence=_source_chain(task, store, session, before, claim),
        severity=Severity.WARNING,
        confidence=Confidence.SUSPECTED,
        store=store.name,
        identity=store.identity,
        level=Level.EXPOSURE if is_held else None,
        upstream=upstream,
        affected=most_affected(case, _OF_SOURCE_TOPICS),
        missing_facts=("processing_guarantee",) if case.settings.exactly_once is None else (),
        next_action=_SOURCE_TOPIC_ACTION,
    )


def _source_chain(
    task: Task, store: Store, session: Session, before: PastDatabase, claim: SourceClaim
) -> tuple[Evidence, ...]:
    mark = claim.mark
    return (
        Evidence(
            before.ended_us,
            f"wiped by its owner; it held {before.entries_low} entries or more",
            where(task, store),
        ),
        Evidence(session.opened_us, "a new, empty store was made", where(task, store)),
        Evidence(
            mark.at_us,
            f"offset {mark.offset} of {claim.topic} (before the wipe: {claim.before}), with only {mark.puts} puts",
            claim.place,
        ),
    )


def _verdict(
    case: TaskCase,
    task: Task,
    store: Store,
    session: Session,
    mark: CheckpointClaim | None,
    chain: tuple[Evidence, ...],
    upstream: Upstream,
    *,
    sure: bool,
    known: bool = True,
    certain: bool = True,
) -> Verdict:
    missing = []
    if case.affected(upstream) is Affected.POSSIBLY:
        missing.append("kafka_streams_version")
    if (
        upstream is KAFKA_7672
        and not session.wiped
        and not case.settings.is_configured("num_standby_replicas")
    ):
        missing.append("num_standby_replicas")
    if upstream is KAFKA_16017 and case.settings.exactly_once is None:
        missing.append("processing_guarantee")
    return Verdict(
        subject=store.identity or "",
        opened_at_us=session.opened_us,
        summary=f"Task {task.id}: store {store.name} {_what(session, mark, known=known)}",
        evidence=chain,
        severity=_severity(sure=sure, known=known),
        confidence=_confidence(sure=sure and certain, known=known),
        store=store.name,
        identity=store.identity,
        upstream=(upstream.key,),
        affected=case.affected(upstream),
        missing_facts=tuple(missing),
    )


def _what(session: Session, mark: CheckpointClaim | None, *, known: bool) -> str:
    if mark is None and session.wiped and not session.reopens:
        return "was wiped by its owner and is used without a restoration; state is missing."
    if mark is None:
        return "is used although its restoration began and was not ended; state is missing."
    if known:
        return f"claims changelog offset {mark.offset}, but was not restored up to it; state is missing."
    return (
        f"claims changelog offset {mark.offset} with far fewer puts;"
        " unknown: either it was not restored up to there, or its changelog was compacted."
    )


def _severity(*, sure: bool, known: bool) -> Severity:
    if not known:
        return Severity.INFO
    return Severity.CRITICAL if sure else Severity.WARNING


def _confidence(*, sure: bool, known: bool) -> Confidence:
    if not known:
        return Confidence.UNKNOWN
    return Confidence.CONFIRMED if sure else Confidence.SUSPECTED


def _opening(session: Session, base: int) -> str:
    if session.wiped:
        return "opened, wiped by its owner and recreated"
    made = "a new store was made" if session.created else "store opened"
    return f"{made}, to continue from offset {base}"


def _claim(task: Task, mark: CheckpointClaim, what: str) -> Evidence:
    return Evidence(mark.at_us, f"checkpoint says offset {mark.offset}: {what}", checkpoint_of(task))
