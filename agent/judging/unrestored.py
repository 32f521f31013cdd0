"""Sessions of a store that should have been restored, and three traces of a thread that did not (KAFKA-7672).

Up to 2.1.1 a thread remembers a partition as restored once and for all. When the task comes back to it, its store is
not restored at all, is wiped for a restoration that does not follow, or gets one poll of it: 1,000 of 5,040 records,
seen live on 2.0.1.

Source:
    StoreChangelogReader.initialize, startRestoration, restore and completedRestorers at 2.0.1 to 2.1.1: only a
    changelog with an end offset above 0 gets as far as the wipe, and the next `restore` turns bulk loading on before it
    puts; a partition that the thread remembers is no longer read, and `restoreDone` is never called.
    AssignedTasks.applyToRunningTasks: a commit flushes running tasks only. Recorded as `kafka-7672-*`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from agent.contract.events import Affected, Confidence, Severity
from agent.inventory.bulk_load import COMMITS_COUNTED
from agent.inventory.model import CLOSES_WITHIN_US, CheckpointClaim, Session
from agent.judging.base import Evidence, seconds
from agent.judging.rule import IncarnationStory, Loudness, Proof, Rule, derived, graded
from agent.judging.upstream import KAFKA_7672
from agent.judging.wording import assumptions, checkpoint_of
from agent.quantities.carried import continued_from
from agent.quantities.changelog import base_offset, records_at_least
from agent.quantities.verdicts import NOISE_RECORDS, comes_with, transaction_markers

USED_US = 2_000_000
"""Bulk loading is switched on by the very next turn of the thread, milliseconds after the wipe (recorded)."""
READ_US = 2_000_000
"""A flush and the checkpoint behind it are heard of together, and on a busy machine read the other way round."""
CLAIMED_US = 5_000_000
"""An orderly close writes its claim and lets go within 20 ms (recorded): what is held much longer goes on."""
TWO_CLAIMS_WITHIN_US = 2 * CLOSES_WITHIN_US
"""A stop amid a restoration is two closes of that kind: it claims, closes all stores, claims again and lets go."""
HEARD_US = 5_000_000
"""An end of the restoration that came before a commit has been heard of by then (busy machines: 2 s)."""
MISSING_RECORDS = NOISE_RECORDS // 2
"""A marker behind every record takes half of the offsets that are noise. No source; recorded: 1,000 and more."""
RESTORE_REOPENS = 2
"""RocksDBStore.toggleDbForBulkLoading: a restoration opens its store once more when it begins, and when it ends."""


class SessionStory(IncarnationStory):
    """A session on the incarnation that is there."""

    session: Session
    opened_at_us = derived(lambda x: x.session.opened_us)


class Remembered(SessionStory):
    """A session of a release whose threads may remember the partition."""

    issues = (KAFKA_7672,)

    @property
    def read_us(self) -> int:
        """Until when all of the store has been read."""
        return min((database.seen_us for database in self.store.databases.values()), default=0)

    @cached_property
    def claim(self) -> CheckpointClaim | None:
        """The last or the first checkpoint of which all earlier flushes have been read by now, or will not be."""
        marks = [x for x in (self.session.last, self.session.first) if x is not None]
        waited_us = self.case.waited_us
        mark = next((x for x in marks if x.at_us <= self.read_us or waited_us(x.at_us) >= READ_US), None)
        return mark and CheckpointClaim(
            mark.at_us, mark.offset, max(mark.puts, self.store.puts_at(mark.at_us))
        )

    @property
    def advance(self) -> int:
        """How far the claim is ahead of where the session began."""
        return self.claim.offset - base_offset(self.session.offset_at_open) if self.claim else 0

    @property
    def puts(self) -> int:
        """What was put meanwhile: nothing was restored, so what one owner appended it also put."""
        return self.claim.puts - self.session.puts_at_open if self.claim else 0

    @property
    def may_be_standby(self) -> bool:
        """Whether a standby may have had it: one wipes what is out of range, only an active task what has no offset.

        Source:
            StreamThread.maybeUpdateStandbyTasks, StoreChangelogReader.startRestoration (2.0.1, 2.1.1).
        """
        told = self.case.number_in("num_standby_replicas", self.session)
        return told != 0 and not self.session.wiped_at_once

    @property
    def until_us(self) -> int:
        """Until when the session lasted."""
        return self.session.released_us or self.case.now_us

    @property
    def use_read_us(self) -> int:
        """Until when what was flushed is known, and every reopen before it has been read, too."""
        return min(self.read_us, self.case.now_us - READ_US, self.until_us)

    @property
    def missing(self) -> tuple[str, ...]:
        """Settings that would decide more."""
        release = self.affected is Affected.POSSIBLY
        standbys = self.may_be_standby and not self.case.settings.is_configured("num_standby_replicas")
        return (*(("kafka_streams_version",) * release), *(("num_standby_replicas",) * standbys))


class Wiped(Remembered):
    """One that began with the wipe of the store, for a restoration."""


def _is_carried(x: Remembered) -> bool:
    return continued_from(x.task, x.store, x.session) is not None


def _was_stopped_amid(x: Remembered) -> bool:
    """Of a task that is restored only its close writes: what was read. A compacted changelog gives fewer puts.

    Source:
        AssignedTasks.close and commit, StreamTask.close, ProcessorStateManager.checkpoint (2.0.1, 2.1.1): a stop closes
        restoring tasks, too, with `restoredOffsets`; commits are of running ones. Under exactly-once none is written.
    """
    return _is_half(x) and x.session.released_us is not None and _held_on_us(x) < CLOSES_WITHIN_US


def _is_half(x: Remembered) -> bool:
    return x.session.reopens == 1 and x.case.settings.exactly_once is not True


def _held_on_us(x: Remembered) -> int:
    """How long it was held after its first claim: a close writes one, lets go of all stores, and writes it again."""
    first, released_us = x.session.first, x.session.released_us
    if first is None:
        return 0
    return x.case.waited_us(first.at_us) if released_us is None else released_us - first.at_us


def _is_eos_standby(x: Remembered) -> bool:
    """A kill aborts thousands of records; only a standby writes checkpoints while it goes on over them.

    An active task writes one at its close. Where the guarantee is not known, a checkpoint that was deleted alone shows
    it: at-least-once deletes none.

    Source:
        ProcessorStateManager, StreamTask.commit, AbstractTask.closeStateManager and StandbyTask.commit (2.0.1, 2.1.1).
    """
    first, last, released_us = x.session.first, x.session.last, x.session.released_us
    deletes = any(fact.deleted and not fact.in_walk for fact in x.task.checkpoints)
    is_eos = deletes if x.case.settings.exactly_once is None else x.case.settings.exactly_once
    if not x.may_be_standby or not is_eos or first is None or last is None:
        return False
    return released_us is None or last.at_us > first.at_us or released_us - first.at_us >= CLAIMED_US


def _is_explained(x: Remembered) -> bool:
    """One commit marker an interval takes an offset, too; it may be a little more, of a session that ends."""
    if x.claim is None:
        return False
    markers = transaction_markers(x.case.settings, x.claim.at_us - x.session.opened_us)
    return comes_with(x.puts + markers, x.advance)


def _claims_what_was_not_put(x: Remembered) -> Proof | None:
    """Proved where nothing else would explain it.

    Markers and aborted records would, and under at-least-once records that were sent again, those of an expelled owner,
    and what the flush of another store's cache put and sent after this store's own flush.

    Source:
        StreamTask.commit, ProcessorStateManager.flush, RecordCollectorImpl.send (2.0.1, 2.1.1: no idempotence).
    """
    if x.claim is None:
        return None
    why = f"{x.advance} offsets ahead of its start, but only {x.puts} puts were flushed"
    return Proof(why, certain=_lacks_much(x) and (_is_left_half(x) or _lacks_what_was_committed(x)))


def _lacks_much(x: Remembered) -> bool:
    """Whether an owner lacks more than markers, or a second copy of every record, explain: every second offset."""
    if x.claim is None or x.may_be_standby or x.affected is not Affected.YES:
        return False
    at_least = records_at_least(x.session.offset_at_open, x.claim.offset)
    return (x.advance if _is_left_half(x) else at_least) - x.puts > MISSING_RECORDS


def _is_left_half(x: Remembered) -> bool:
    """Whether it runs as its restoration began: the last offset was not reached, and is a record's, no marker's.

    Source:
        StoreChangelogReader.restore (2.0.1, 2.1.1): one that is reached ends the mode, remembered or not.
    """
    told = x.case.settings.exactly_once is False
    return told and _is_half(x) and x.session.bulk_load_us > 0 and _held_on_us(x) >= TWO_CLAIMS_WITHIN_US


def _lacks_what_was_committed(x: Remembered) -> bool:
    """Whether an earlier session put records beyond where this one began, and claimed them.

    Source:
        StreamTask.commit and closeStateManager, StandbyTask.commit (2.0.1, 2.1.1): under exactly-once only an orderly
        close and a standby claim an offset, and what they put was committed.
    """
    begun = base_offset(x.session.offset_at_open)
    earlier = (session for session in x.store.sessions if session.opened_us < x.session.opened_us)
    return any(y.last is not None and y.last.offset > begun and y.last.puts > y.puts_at_open for y in earlier)


def _loudness_of_skipped(x: Remembered, proof: Proof | None) -> Loudness | None:
    """Critical, but suspected, where all that is missing may have been aborted."""
    if proof is not None and not x.store.all_reopens:
        return Loudness(Severity.INFO, Confidence.UNKNOWN, missing_facts=x.missing)
    if proof is not None and not proof.certain and _lacks_much(x):
        return Loudness(Severity.CRITICAL, Confidence.SUSPECTED, missing_facts=x.missing)
    return graded(proof, x.missing)


def _claims_an_offset(x: Wiped) -> Proof | None:
    mark = x.session.last
    return None if mark is None else Proof(f"{mark.puts} puts on disk", certain=False)


def _took_records(x: Wiped) -> Proof | None:
    """Under exactly-once there is no claim before the close. A restoration puts after its first reopen only."""
    puts = x.store.puts_at(x.use_read_us)
    return Proof(f"{puts} puts on disk", certain=False) if puts else None


def _loudness_of_left_empty(x: Wiped, proof: Proof | None) -> Loudness | None:
    """Never certain: a broker may have gone away right after the wipe, or the changelog may have been emptied."""
    if proof is None:
        return None
    claims = x.session.last is not None and x.affected is Affected.YES
    severity = Severity.CRITICAL if claims else Severity.WARNING
    return Loudness(severity, Confidence.SUSPECTED, missing_facts=x.missing)


def _may_have_been_ended(x: Remembered) -> bool:
    last_us = x.session.bulk_load_commits[-1]
    return last_us > x.read_us and x.case.waited_us(last_us) < HEARD_US


def _commits_of_a_running_task(x: Remembered) -> int:
    """Under exactly-once only the close of a task that ran writes one.

    Source:
        StreamTask.close and commit (2.0.1, 2.1.1): that of a restoring task fails for want of a transaction.
    """
    return 1 if x.case.settings.exactly_once is True else COMMITS_COUNTED


def _committed(x: Remembered) -> Proof:
    commits, since_us = x.session.bulk_load_commits, x.session.bulk_load_us
    number = "1 commit" if len(commits) == 1 else f"{len(commits)} commits"
    return Proof(
        f"{number} in the {seconds(commits[-1] - since_us)} since then, and no reopen: the task ran,"
        f" and the restoration was not ended; {x.store.puts_at(commits[-1])} puts on disk",
        certain=False,
    )


# What they say


def _evidence_of_skipped(x: Remembered, proof: Proof | None) -> Iterable[Evidence]:
    session, claim = x.session, x.claim
    reopens = "half of the pair" if session.reopens else "none"
    if not x.store.all_reopens:
        reopens = "not known, RocksDB is configured to keep few or no old LOG files there"
    yield Evidence(session.opened_us, _opening(session), x.place)
    yield Evidence(
        session.opened_us, f"bulk-load reopens of a restoration: {reopens}", f"{x.place}/LOG.old.*"
    )
    if claim is not None and proof is not None:
        yield says_offset(x, claim, proof.why)
        if x.may_be_standby:
            yield from assumptions(x.case, claim.at_us, "num_standby_replicas")


def _evidence_of_left_empty(x: Wiped, proof: Proof | None) -> Iterable[Evidence]:
    session, mark, why = x.session, x.session.last, proof.why if proof else ""
    lasted = seconds(x.until_us - session.opened_us)
    yield Evidence(session.opened_us, _opening(session), x.place)
    yield Evidence(
        session.opened_us, f"no bulk-load reopen in {lasted}: nothing was restored", f"{x.place}/LOG.old.*"
    )
    yield says_offset(x, mark, why) if mark else Evidence(x.use_read_us, why, x.place)


def _evidence_of_left_half(x: Remembered, proof: Proof | None) -> Iterable[Evidence]:
    session, why = x.session, proof.why if proof else ""
    yield Evidence(session.bulk_load_us, "reopened for a restoration, in the mode of bulk loading", x.place)
    yield Evidence(session.bulk_load_commits[-1], why, checkpoint_of(x.task))


def _opening(session: Session) -> str:
    if session.wiped:
        return "opened, wiped by its owner and recreated"
    made = "a new store was made" if session.created else "store opened"
    return f"{made}, to continue from offset {base_offset(session.offset_at_open)}"


def says_offset(x: SessionStory, mark: CheckpointClaim, what: str) -> Evidence:
    """What a checkpoint claims, and what the store says to it."""
    return Evidence(mark.at_us, f"checkpoint says offset {mark.offset}: {what}", checkpoint_of(x.task))


def lacks(x: SessionStory, mark: CheckpointClaim | None) -> str:
    """That a store was not restored up to what it claims."""
    return (
        f"{x.named} claims changelog offset {mark.offset if mark else None}, but was not"
        " restored up to it; state is missing."
    )


def _summary_of_left_empty(x: Wiped, _: Proof | None) -> str:
    if x.session.last is not None:
        return lacks(x, x.session.last)
    what = "was wiped by its owner and is used without a restoration; state is missing."
    return f"{x.named} {what}"


def _summary_of_left_half(x: Remembered, _: Proof | None) -> str:
    what = "is used although its restoration began and was not ended; state is missing."
    return f"{x.named} {what}"


SKIPPED = Rule[Remembered](
    "a task came back to its thread, and ran without a restoration",
    about=Remembered,
    innocents={
        "it was restored: RocksDB was reopened twice": lambda x: x.session.reopens >= RESTORE_REOPENS,
        "a windowed store is restored without a reopen": lambda x: x.store.segmented,
        "an old offset was carried over (resurrected-checkpoint)": _is_carried,
        "its puts and commit markers explain the offset": _is_explained,
        "stopped amid a restoration: it claims what it had read": _was_stopped_amid,
        "an exactly-once standby passes over what was aborted": _is_eos_standby,
    },
    unknowns={
        "its opening was not seen": lambda x: x.session.attached,
        "its puts are not known": lambda x: not x.store.knows_puts,
        "it may be at its close, amid a restoration": lambda x: (
            _is_half(x) and x.session.released_us is None and _held_on_us(x) < TWO_CLAIMS_WITHIN_US
        ),
        "the flushes before its checkpoint may not have been read yet": lambda x: (
            x.claim is None and x.session.last is not None
        ),
    },
    proofs=(_claims_what_was_not_put,),
    loudness=_loudness_of_skipped,
    summary=lambda x, _: (
        (lacks(x, x.claim))
        if (x.store.all_reopens or x.claim is None)
        else (
            f"{x.named} claims changelog offset {x.claim.offset} with far fewer puts;"
            " unknown: either it was not restored up to there, or its changelog was compacted."
        )
    ),
    evidence=_evidence_of_skipped,
)

LEFT_EMPTY = Rule[Wiped](
    "its owner wiped a store for a restoration, and used it without one",
    about=Wiped,
    innocents={"its restoration began": lambda x: x.session.reopens > 0},
    unknowns={
        "RocksDB keeps few or no old LOG files there": lambda x: not x.store.all_reopens,
        "a standby may have wiped it, and restores without a reopen": lambda x: x.may_be_standby,
        "its restoration may begin at once": lambda x: (
            x.case.passed_us(x.session.opened_us, x.until_us) < USED_US
        ),
    },
    proofs=(_claims_an_offset, _took_records),
    loudness=_loudness_of_left_empty,
    summary=_summary_of_left_empty,
    evidence=_evidence_of_left_empty,
)

LEFT_HALF = Rule[Remembered](
    "one poll of a restoration was applied, and the task ran",
    about=Remembered,
    innocents={
        "an old offset was carried over (resurrected-checkpoint)": _is_carried,
        "its restoration ended, or never began": lambda x: x.session.reopens != 1,
        "a revocation and a close write fewer commits": lambda x: (
            len(x.session.bulk_load_commits) < _commits_of_a_running_task(x)
        ),
    },
    unknowns={
        "RocksDB keeps few or no old LOG files there": lambda x: not x.store.all_reopens,
        "the end of its restoration may not have been read yet": _may_have_been_ended,
    },
    proofs=(_committed,),
    # Suspected: it may have been all that was to be restored.
    loudness=lambda x, proof: graded(proof, x.missing),
    summary=_summary_of_left_half,
    evidence=_evidence_of_left_half,
)
