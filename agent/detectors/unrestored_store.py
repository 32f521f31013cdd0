"""Detector `unrestored-store`: a task ran on a store that was not restored.

Fires by mechanism: on 2.0.1 to 2.1.1 when a session's checkpoint moves far beyond what was put although the pair
of bulk-load reopens that every restoration makes is missing or half, or when a store that was wiped for a restoration
is used without any (KAFKA-7672), suspected as soon as it has puts, or as a running task commits while its store is
still open for bulk loading; under exactly-once up to 3.5.2 and 3.6.1 when the
process that wiped a store closes the new one with the old offset or a later one, but not with what the old one held
(KAFKA-16017): suspected, as records that were all aborted leave the same. A windowed store is judged by its segments
together, and an exposure while it has none. The same of a store whose changelog is its
source topic, from 2.6 on, is suspected, too (KAFKA-20416, D13).
Offset jumps without a missing step are quiet: aborted transactions and compaction make them too. Where RocksDB leaves
no old LOG files that step cannot be seen: unknown.

Source:
    StoreChangelogReader.completedRestorers at 2.0.1 to 2.1.1 (`agent.judging.unrestored`); RecordCollectorImpl.offsets
    up to 3.6.1; StoreChangelogReader.hasRestoredToEnd (3.3.2 to 4.3.1), StreamTask.checkpointableOffsets (2.8.2 to
    4.3.1); recorded as `kafka-7672-*`, `kafka-16017-3.6.1`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.units import WRONG_RESULTS, Twin
from agent.inventory.model import CheckpointClaim, PastDatabase, Session, Shape, Store, Task
from agent.judging.base import DetectorMeta, Evidence, Mechanism, Remedy, TaskCase, Truth
from agent.judging.reopening import present_sessions
from agent.judging.rule import Docket, Loudness, Proof, Rule, derived, detector, first_of, graded
from agent.judging.source_topic import SourceClaim, source_claim
from agent.judging.unrestored import (
    CLAIMED_US,
    LEFT_EMPTY,
    LEFT_HALF,
    READ_US,
    SKIPPED,
    Remembered,
    SessionStory,
    Wiped,
    lacks,
    says_offset,
)
from agent.judging.upstream import KAFKA_7672, KAFKA_16017, KAFKA_20416, REVIVED_TASK
from agent.judging.wording import concerned
from agent.quantities.changelog import is_real
from agent.quantities.verdicts import comes_with, gave_back

META = DetectorMeta(
    id="unrestored-store",
    title="Task runs on a store that was not restored",
    mechanism=Mechanism.OFFSET_WITHOUT_DATA,
    needs=("kafka_streams_version", "processing_guarantee", "num_standby_replicas"),
    upstream=(KAFKA_7672, KAFKA_16017, KAFKA_20416, REVIVED_TASK),
    remedy=Remedy.RESTORE,
    next_action=(
        "Stop this instance cleanly, keep a copy of the task directory, remove that task directory only, start again"
        " and check that the restoration begins at the first offset of the changelog."
        " Leave the other pods' copies alone. What the task wrote"
        " to its changelog and output topics since the store was opened was computed on missing state and must be"
        " reprocessed."
    ),
    consequence=WRONG_RESULTS,
    twin=Twin("the same move on a release that restores", "control-7672-gap-2.2.1"),
)


class Recreated(SessionStory):
    """A session on a new store that its owner made after a wipe."""

    before: PastDatabase  # the incarnation that was wiped
    claim: CheckpointClaim  # what the new store claims
    old_offset: int | None  # the best offset known of the old one; None = none

    @property
    def held(self) -> int | None:
        """How many live entries the old store had, at least."""
        return self.before.entries_low


class Abandoned(Recreated):
    """One whose checkpoint may be the old store's, from memory."""

    issues = (KAFKA_16017,)

    @cached_property
    def same_process(self) -> Truth:
        """Whether the process that had flushed to the old store wrote the new one's checkpoint.

        Source:
            StreamTask.checkpointableOffsets (3.5.0): only a process that had written has offsets of its recorder.
        """
        for life in self.case.application.lives:
            if life.started_us <= self.claim.at_us and (
                life.ended_us is None or self.claim.at_us <= life.ended_us
            ):
                return Truth.YES if life.started_us < self.before.flushed_us else Truth.NO
        return Truth.MAYBE


class Unfilled(Abandoned):
    """One of a windowed store that had no segment then: an exposure, as there was no incarnation to lay it to."""

    subject = derived(lambda x: f"empty@{x.session.opened_us}")


class Refilled(Recreated):
    """One whose changelog is its source topic; what it claims is what its task consumed of it."""

    issues = (KAFKA_20416, REVIVED_TASK)
    topic: SourceClaim
    # when it claimed, or when the store was made that lacks its records
    opened_at_us = derived(lambda x: x.claim.at_us if x.is_held else x.session.opened_us)
    subject = derived(lambda x: f"held@{x.session.opened_us}" if x.is_held else x.identity or "")

    @property
    def is_held(self) -> bool:
        """Whether its restoration may go on: an exposure, until it has caught up."""
        return self.session.released_us is None


def _stories(case: TaskCase) -> Iterator[SessionStory]:
    for store in () if case.task.is_global else case.task.stores.values():
        for session in case.once(present_sessions, store):
            if case.affected(KAFKA_7672) is not Affected.NO:
                yield (Wiped if session.wiped else Remembered)(case, store, session)
            before = _wiped_before(case.task, store, session)
            if before is not None and case.settings.exactly_once is not False:
                yield from _recreated(case, store, session, before)
        if store.segmented and store.past and case.affected(KAFKA_16017) is not Affected.NO:
            yield from _unfilled(case, store, store.past[-1].ended_us)


def _unfilled(case: TaskCase, store: Store, ended_us: int) -> Iterator[Unfilled]:
    """A windowed store makes its first segment with its first record: what was claimed before is of no session.

    Its puts are those of today: a restoration that was only suspended goes on, and brings them.
    """
    written = (x for x in case.task.checkpoints if x.written_us > ended_us and store.name in x.offsets)
    fact = next(written, None)
    if fact is None or fact.incarnation != case.task.incarnation:
        return
    if any(x.born_us <= fact.written_us for x in store.databases.values()):
        return
    claim = CheckpointClaim(fact.written_us, fact.offsets[store.name], store.puts)
    session = Session(ended_us, frozenset(), 0, None, created=True, first=claim)
    before = _wiped_before(case.task, store, session)
    if before is not None and case.settings.exactly_once is not False:
        yield Unfilled(case, store, session, before, claim, _old_offset(case.task, store, before))


def _recreated(case: TaskCase, store: Store, session: Session, before: PastDatabase) -> Iterator[Recreated]:
    if session.first is not None and case.affected(KAFKA_16017) is not Affected.NO:
        yield Abandoned(case, store, session, before, session.first, _old_offset(case.task, store, before))
    claim = source_claim(case.task, store, session)
    if claim is not None and concerned(case, Refilled.issues):
        yield Refilled(case, store, session, before, claim.mark, claim.before, claim)


def _wiped_before(task: Task, store: Store, session: Session) -> PastDatabase | None:
    """Return the incarnation that the owner of a new store had wiped; None = the last one did not end so.

    A wipe takes the whole task directory (StateManagerUtil.closeStateManager, 2.6.0); where that stayed, the last
    segment of a windowed store expired before a later one was made.
    """
    ended = [
        x for x in store.past if x.ended_us <= session.opened_us and (x.segment is None) != store.segmented
    ]
    if not session.created or not ended or ended[-1].shape is not Shape.OWNER_WALK:
        return None
    if ended[-1].task_incarnation == task.incarnation:
        return None
    return _all_segments(store, session, ended) if store.segmented else ended[-1]


def _all_segments(store: Store, session: Session, ended: list[PastDatabase]) -> PastDatabase | None:
    """Take the segments that were wiped together for one incarnation; None = they were not all counted.

    It is as old as the store, whose first segments may have expired.
    """
    before = next((x for x in reversed(store.sessions) if x.opened_us < session.opened_us), None)
    if (
        before is None
        or before.entries_at_release is None
        or ended[-1].identity not in before.final_identities
    ):
        return None
    return replace(
        ended[-1],
        born_us=0,
        puts=before.puts_at_release,
        entries_low=before.entries_at_release,
        flushed_us=max(x.flushed_us for x in ended),
    )


def _has_expired(x: Recreated) -> bool:
    return any(past.segment is not None and past.ended_us > x.session.opened_us for past in x.store.past)


def _old_offset(task: Task, store: Store, before: PastDatabase) -> int | None:
    """The highest offset that a checkpoint held for the old store while it was there."""
    offsets = [
        fact.offsets.get(store.name, 0)
        for fact in task.checkpoints
        if before.born_us <= fact.written_us <= before.ended_us
    ]
    return max(offsets, default=None)


RESTORED: dict[str, Callable[[Recreated], bool]] = {
    "it claims no offset": lambda x: not is_real(x.claim.offset),
    "it claims less than before the wipe: what it restored": lambda x: x.claim.offset < (x.old_offset or 0),
    "its puts explain the offset": lambda x: comes_with(x.claim.puts, x.claim.offset),
    "its live entries came back from a compacted changelog": lambda x: (
        x.held is not None and gave_back(x.claim.puts, x.held)
    ),
}


def _claims_the_old_offset(x: Abandoned) -> Proof:
    told = x.affected is Affected.YES and x.case.settings.exactly_once is True
    proved = told and x.held is not None and x.same_process is Truth.YES
    return Proof(f"with only {x.claim.puts} puts restored", certain=proved)


def _loudness_of_abandoned(x: Abandoned, proof: Proof | None) -> Loudness | None:
    """Never confirmed: records that were all aborted leave as few puts behind the same offset."""
    release = x.affected is Affected.POSSIBLY
    guarantee = x.case.settings.exactly_once is None
    missing = (*(("kafka_streams_version",) * release), *(("processing_guarantee",) * guarantee))
    found = graded(proof, missing)
    level = Level.EXPOSURE if isinstance(x, Unfilled) else None
    return found and replace(found, confidence=Confidence.SUSPECTED, level=level)


def _loudness_of_not_refilled(x: Refilled, _: Proof | None) -> Loudness:
    """Never more than suspected: a source topic cut by time gives back fewer records than the old store held."""
    return Loudness(
        Severity.WARNING,
        Confidence.SUSPECTED,
        level=Level.EXPOSURE if x.is_held else None,
        next_action=_SOURCE_TOPIC_ACTION,
        remedy=Remedy.CHECK_FIRST,
        missing_facts=("processing_guarantee",) if x.case.settings.exactly_once is None else (),
    )


# What they say


def _wiped_and_made(x: Recreated) -> Iterator[Evidence]:
    held = x.before.puts if x.held is None else x.held
    yield Evidence(x.before.ended_us, f"wiped by its owner; it held {held} entries or more", x.place)
    if not isinstance(x, Unfilled):
        yield Evidence(x.session.opened_us, "a new, empty store was made", x.place)


def _evidence_of_abandoned(x: Abandoned, proof: Proof | None) -> Iterator[Evidence]:
    yield from _wiped_and_made(x)
    yield says_offset(x, x.claim, proof.why if proof else "")


def _evidence_of_not_refilled(x: Refilled, _: Proof | None) -> Iterator[Evidence]:
    yield from _wiped_and_made(x)
    what = f"offset {x.claim.offset} of {x.topic.topic} (before the wipe: {x.old_offset})"
    yield Evidence(x.claim.at_us, f"{what}, with only {x.claim.puts} puts", x.topic.place)


_SOURCE_TOPIC_ACTION = (
    "Look for `Finished restoring changelog` of this store in the application's log, right after the wipe: 0 or few"
    " records mean that it is missing state. Then stop this instance, keep a copy of the task directory, remove that"
    " task directory only, and start again."
    " If the source topic is cut by time (`cleanup.policy=delete`), it cannot give back what the old store held."
)

ABANDONED = Rule[Abandoned](
    "the close of a restoring task claims the offset that the same process had before the wipe (KAFKA-16017)",
    about=Abandoned,
    innocents={
        "another process wrote the claim, and remembers nothing": lambda x: x.same_process is Truth.NO,
        **RESTORED,
    },
    unknowns={
        "its puts are not known": lambda x: not x.store.knows_puts,
        "a segment expired since, maybe before its puts were seen": _has_expired,
        "its first segment may not have been read yet": lambda x: (
            isinstance(x, Unfilled) and x.case.waited_us(x.claim.at_us) < READ_US
        ),
    },
    proofs=(_claims_the_old_offset,),
    loudness=_loudness_of_abandoned,
    summary=lambda x, _: lacks(x, x.claim),
    evidence=_evidence_of_abandoned,
)

NOT_REFILLED = Rule[Refilled](
    "a wiped store claims what its task had consumed of the source topic, without the entries (KAFKA-20416, D13)",
    about=Refilled,
    innocents=RESTORED,
    unknowns={
        "its puts are not known": lambda x: not x.store.knows_puts,
        "what it claimed or held before the wipe is not known": lambda x: (
            x.old_offset is None or x.held is None
        ),
        "it was held a moment ago, and may catch up": lambda x: (
            x.is_held and x.case.waited_us(x.claim.at_us) < CLAIMED_US
        ),
    },
    loudness=_loudness_of_not_refilled,
    summary=lambda x, _: (
        f"{x.named} was wiped and claims offset {x.claim.offset} of its source topic"
        " with far fewer puts than it held entries: it was not restored up to it, or the topic no longer has them."
    ),
    evidence=_evidence_of_not_refilled,
)

DETECTOR = detector(
    META,
    Docket(
        _stories, (SKIPPED, LEFT_EMPTY, LEFT_HALF, ABANDONED, NOT_REFILLED), first_of(lambda x: x.store.name)
    ),
)
