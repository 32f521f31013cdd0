"""Detector `lost-segment`: a windowed store goes on from one segment's offset, and another one had not been flushed.

On 4.3 every segment is its own database with its own offset, a commit flushes nothing, and one segment
answers for the whole store. What another one still had in memory when the process died is never read again.
Signal: the offset, status, last flush and birth of every segment, as they were on disk before the store was opened.
Fires when no process holds such a store, before the next start loses it: critical. When it is opened again without a
wipe: critical, suspected; confirmed once the store moves on from that offset and the segment, which was made before
the one that answers, is still empty. A warning where it is not known whether the segment took a record, where by
count all that it took may be on disk, and for stores that delete (sessions). Info while it runs under at-least-once:
how many segments a kill would lose from.
Clears when the segment expires or is wiped; before a start, when the directory is removed.
Stays quiet after an orderly close, where exactly-once wipes, for a segment that was past when the store was opened,
for one that was made after the offset was stored, or by the opening itself, where every record up to the offset is an
entry of a file after an end in order, and up to 4.2.
Blind spots: late records of a segment that was past, unless the count is short; a loss from before the agent's first
reading.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.codec import rfc3339
from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from agent.inventory.disk import LockState
from agent.inventory.model import Store, Task
from agent.inventory.openings import is_read_since, segments_of
from agent.inventory.segments import OPEN, Opening, Segment
from agent.inventory.sessions import SEEN_BEFORE_BORN_US
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict
from agent.judging.changelogs import has_changelog
from agent.judging.segment_loss import Grade, Loss, changelog_of, find_losses, unflushed
from agent.judging.upstream import LOST_SEGMENT
from agent.judging.wording import where
from agent.layout.facts import Fact
from agent.layout.profile import Truth

META = DetectorMeta(
    id="lost-segment",
    title="Segment of a windowed store lost records that were only in memory",
    mechanism=Mechanism.LOST_SEGMENT,
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
    kind=Kind.DAMAGE,
    scope=Scope.TASK,
    needs=("processing_guarantee", "kafka_streams_version"),
    upstream=(LOST_SEGMENT,),
    next_action=(
        "Stop this instance cleanly if it runs. Before the next start, check whether the changelog still reaches back"
        " to those windows, keep a copy of the task directory, and remove that task directory only: the task is"
        " restored from its whole changelog. Do not delete the other pods' copies first: a pod that"
        " was not killed still has those windows."
    ),
    consequence=(
        "Windows are gone from the store or hold too little, now or from the next start on; no "
        "replay brings them back."
    ),
    twin=Twin("N5, segments closed clean, all with the same offset", "control-20663-close-4.3.0"),
    silent_where=((Fact.SEGMENT_ANSWERS_FOR_STORE, Truth.NO),),
    waits_us=(),
)
BEFORE_THE_START = (
    "Before the next start: check whether the changelog still reaches back to those windows, keep a copy of the task"
    " directory, remove that task directory only, then start: the task is restored from its whole changelog, nothing"
    " is lost. A start that finds the directory loses the records for good. Do not delete the other pods' copies first."
)
RUNNING = (
    "Nothing is lost yet. If you stop this instance, stop it cleanly, with a grace period that lets every store"
    " close. After a kill, remove the task directory before the next start."
)


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        AbstractSegments.committedOffset, commit and close, RocksDBStore.openDB, StateDirectory.initializeStartupStores
        (4.3.0, 4.3.1); recorded as `lost-segment-4.3.1` and `lost-segment-close-4.3.1`.
    """
    task = case.task
    if case.is_silent(META):
        return
    for store in task.stores.values():
        if not store.segmented:
            continue
        reported: dict[str, Grade] = {}
        for opening in store.openings:
            losses = _news(reported, _losses(case, store, opening.segments))
            there = [x for x in losses if x.segment.identity in store.identities]
            verdict = _reopened(case, task, store, opening, there) if there else None
            if verdict is not None:
                reported.update({x.segment.identity: x.grade for x in there})
                yield verdict
        now = segments_of(store)
        if not now:
            continue
        if store.lock is LockState.FREE and store.session is None and task.lock is not LockState.HELD:
            losses = _news(reported, _losses(case, store, now))
            if losses:
                yield from _at_rest(case, task, store, losses)
        elif store.lock is LockState.HELD and case.settings.exactly_once is False:
            yield from _running(case, task, store, now)


def _news(reported: dict[str, Grade], losses: list[Loss]) -> list[Loss]:
    """Leave out what was reported of an earlier opening: what is lost already cannot be lost again."""
    return [x for x in losses if x.grade > reported.get(x.segment.identity, 0)]


def _losses(case: TaskCase, store: Store, segments: tuple[Segment, ...]) -> list[Loss]:
    """List losses by every order in which the possible releases ask; what only one of them loses is not listed."""
    changelog = changelog_of(segments, case.task.application, store.name)
    if changelog is None:
        return []
    oldest = case.says(Fact.OLDEST_SEGMENT_OFFSET)
    orders = {Truth.YES: (True,), Truth.NO: (False,), Truth.MAYBE: (False, True)}[oldest]
    found = [find_losses(segments, changelog, oldest=x) for x in orders]
    return [
        min((each[name] for each in found), key=lambda loss: loss.grade)
        for name in found[0]
        if all(name in each for each in found)
    ]


def _reopened(
    case: TaskCase, task: Task, store: Store, opening: Opening, losses: list[Loss]
) -> Verdict | None:
    """Judge an opening that lost something, if the store was accepted as it was."""
    if not is_read_since(store, opening):
        return None
    worst, now = _worst(losses), segments_of(store) or ()
    changelog = changelog_of(opening.segments, task.application, store.name) or ""
    stored = {one.identity: -1 if (held := one.offset(changelog)) is None else held for one in now}
    goes_on = any(stored.get(x.segment.identity, -1) >= x.offset for x in losses)
    if not goes_on and case.settings.exactly_once is not False:
        return None  # under exactly-once an opening may end in a wipe
    moved_to = max(stored.values(), default=-1)
    still_empty = any(x.identity == worst.segment.identity and not x.has_data for x in now)
    sure = (
        worst.grade is Grade.CERTAIN and goes_on and moved_to > worst.offset and still_empty
        and all(one.deletes is False for one in (*opening.segments, *now))
        and min(worst.segment.born_us, worst.speaker.born_us) >= task.first_seen_us - SEEN_BEFORE_BORN_US
    )  # fmt: skip
    chain = [Evidence(opening.at_us, _picture(loss), loss.segment.path) for loss in losses]
    chain.append(
        Evidence(
            opening.at_us,
            f"opened again, no wipe; {worst.speaker.name} answers: offset {worst.offset}",
            worst.speaker.path,
        )
    )
    if moved_to > worst.offset:
        at_us = max(one.offset_us for one in now)
        chain.append(
            Evidence(max(at_us, opening.at_us), f"the store went on to offset {moved_to}", where(task, store))
        )
    is_known = goes_on or case.says(Fact.SEGMENT_ANSWERS_FOR_STORE) is Truth.YES
    return Verdict(
        subject=f"opening@{opening.at_us}",
        opened_at_us=opening.at_us,
        summary=(
            f"Task {task.id}: store {store.name} went on from offset {worst.offset} of segment {worst.speaker.name};"
            f" {_what(losses)} {'is' if worst.grade > Grade.POSSIBLE else 'may be'} lost."
        ),
        evidence=tuple(chain),
        severity=_severity(losses, opening.segments, Severity.CRITICAL if is_known else Severity.WARNING),
        confidence=Confidence.CONFIRMED if sure else Confidence.SUSPECTED,
        store=store.name,
        identity=worst.segment.identity,
        affected=_affected(case),
    )


def _at_rest(case: TaskCase, task: Task, store: Store, losses: list[Loss]) -> Iterable[Verdict]:
    """Judge a store that no process holds: what the next start would lose."""
    trusted = _is_trusted(case, task)
    if trusted is Truth.NO:
        return
    worst = _worst(losses)
    free_us = max(database.lock_since_us or database.seen_us for database in store.databases.values())
    ended = store.sessions[-1].released_us if store.sessions else None
    known = case.says(Fact.SEGMENT_ANSWERS_FOR_STORE) is Truth.YES
    unsure = trusted is Truth.MAYBE and case.settings.exactly_once is None
    most = (
        Severity.INFO if unsure else Severity.CRITICAL if known and trusted is Truth.YES else Severity.WARNING
    )
    needed = (("processing_guarantee", unsure), ("kafka_streams_version", not known))
    yield Verdict(
        subject=f"at rest, {worst.segment.identity}",
        opened_at_us=ended or free_us,
        summary=(
            f"Task {task.id}: a start would open store {store.name} at offset {worst.offset} of segment"
            f" {worst.speaker.name}; {_what(losses)} {'would' if worst.grade > Grade.POSSIBLE else 'might'} be lost"
            f"{' (under at-least-once)' if unsure else ''}."
        ),
        evidence=tuple(Evidence(ended or free_us, _picture(loss), loss.segment.path) for loss in losses),
        severity=_severity(losses, segments_of(store) or (), most),
        confidence=Confidence.UNKNOWN if unsure else Confidence.SUSPECTED,
        store=store.name,
        identity=worst.segment.identity,
        affected=_affected(case),
        level=Level.EXPOSURE,
        missing_facts=tuple(name for name, is_missing in needed if is_missing),
        next_action=BEFORE_THE_START,
    )


def _is_trusted(case: TaskCase, task: Task) -> Truth:
    """Return whether the next start opens the task as it is; exactly-once refuses a store that says open.

    It wipes the task then, and where a store has no offset; transactional stores are not wiped, and lose nothing of a
    task that is refused.
    """
    if case.settings.exactly_once is False:
        return Truth.YES
    databases = [x for store in task.stores.values() for x in store.databases.values()]
    if any(x.offsets is not None and x.offsets.status == OPEN for x in databases):
        return Truth.NO if case.settings.exactly_once else Truth.MAYBE
    if case.profile.transactional is Truth.YES:
        return Truth.YES
    lacking = [
        store.name
        for store in task.stores.values()
        if store.databases and not any(x.offsets and x.offsets.offsets for x in store.databases.values())
    ]
    if not lacking:
        return Truth.YES
    wiped = case.settings.exactly_once and case.profile.transactional is Truth.NO
    logged = any(has_changelog(case.application, task, name) for name in lacking)
    return Truth.NO if wiped and logged else Truth.MAYBE


def _running(case: TaskCase, task: Task, store: Store, segments: tuple[Segment, ...]) -> Iterable[Verdict]:
    """Count what a kill would lose from, now or after the next flush."""
    waiting = unflushed(segments)
    if waiting and case.says(Fact.SEGMENT_ANSWERS_FOR_STORE) is Truth.YES:
        since_us = next(one.born_us for one in segments if one.starts > waiting[0].starts)
        yield Verdict(
            subject="running",
            opened_at_us=since_us,
            summary=(
                f"Task {task.id}: {len(waiting)} of {len(segments)} segments of store {store.name} hold records"
                " that are not on disk; once a newer one is flushed, a kill loses them."
            ),
            evidence=(Evidence(since_us, f"not flushed since: {waiting[0].name}", waiting[0].path),),
            severity=Severity.INFO,
            confidence=Confidence.SUSPECTED,
            store=store.name,
            identity=waiting[0].identity,
            level=Level.EXPOSURE,
            affected=_affected(case),
            next_action=RUNNING,
        )


def _worst(losses: list[Loss]) -> Loss:
    """The surest loss; among equals that of the newest segment, which expires last."""
    return max(losses, key=lambda loss: (loss.grade, loss.segment.starts))


def _severity(losses: list[Loss], segments: tuple[Segment, ...], most: Severity) -> Severity:
    """A store that deletes keeps sessions: those that went on lie in a newer segment, and nothing of them is lost."""
    unsure = _worst(losses).grade is Grade.POSSIBLE or any(one.deletes for one in segments)
    return min(most, Severity.WARNING, key=lambda x: x.rank) if unsure else most


def _what(losses: list[Loss]) -> str:
    named = [loss for loss in losses if loss.grade > Grade.POSSIBLE] or losses
    names = ", ".join(loss.segment.name for loss in named)
    if all(not loss.segment.has_data for loss in named):
        return f"all that was put into {names}"
    return f"what was put into {names} since the last flush"


def _picture(loss: Loss) -> str:
    born = f"made {rfc3339(loss.segment.born_us)}, the one that answers {rfc3339(loss.speaker.born_us)}"
    if not loss.segment.has_data:
        return f"no record on disk ({born})"
    return f"last flushed {rfc3339(loss.segment.flushed_us)} ({born})"


def _affected(case: TaskCase) -> Affected:
    """Later releases were not checked: possibly."""
    known = case.affected(LOST_SEGMENT)
    return Affected.POSSIBLY if known is Affected.NO else known
