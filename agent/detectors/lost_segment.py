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

Source:
    AbstractSegments.committedOffset, commit and close, RocksDBStore.openDB, StateDirectory.initializeStartupStores
    (4.3.0, 4.3.1); recorded as `lost-segment-4.3.1` and `lost-segment-close-4.3.1`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, partial

from agent.contract.codec import rfc3339
from agent.contract.events import Affected, Confidence, Level, Severity
from agent.inventory.disk import LockState
from agent.inventory.model import Store
from agent.inventory.openings import is_read_since, segments_of
from agent.inventory.segments import OPEN, Opening, Segment
from agent.inventory.sessions import SEEN_BEFORE_BORN_US, is_outlived
from agent.judging.base import DetectorMeta, Evidence, Fact, Mechanism, Remedy, TaskCase, Truth, Twin, Verdict
from agent.judging.changelogs import has_changelog
from agent.judging.reopening import SETTLED_US
from agent.judging.rule import Docket, Loudness, Proof, Rule, derived, detector
from agent.judging.segment_loss import Excuse, Grade, Loss, Picture, losses, unflushed
from agent.judging.upstream import LOST_SEGMENT

META = DetectorMeta(
    id="lost-segment",
    title="Segment of a windowed store lost records that were only in memory",
    mechanism=Mechanism.LOST_SEGMENT,
    needs=("processing_guarantee", "kafka_streams_version"),
    upstream=(LOST_SEGMENT,),
    remedy=Remedy.CHECK_FIRST,
    next_action=(
        "Stop this instance cleanly if it runs. Before the next start, check whether the changelog still reaches back"
        " to those windows. If it does, keep a copy of the task directory, and remove that task directory only: the"
        " task is restored from its whole changelog. If not, remove nothing and get help. Leave the other pods' copies"
        " alone: a pod that was not killed still has those windows."
    ),
    consequence=(
        "Windows are missing or incomplete, now or after the next start; no replay brings them back."
    ),
    twin=Twin("N5, segments closed clean, all with the same offset", "control-20663-close-4.3.0"),
    silent_where=((Fact.SEGMENT_ANSWERS_FOR_STORE, Truth.NO),),
)
BEFORE_THE_START = (
    "Before the next start, check whether the changelog still reaches back to those windows. If it does, keep a copy of"
    " the task directory, remove that task directory only, then start: the task is restored from its whole changelog,"
    " nothing is lost. If not, remove nothing and get help. A start that finds the directory loses the records for"
    " good. Leave the other pods' copies alone."
)
NOTHING_LOST = (
    "Nothing is lost yet. If you stop this instance, stop it cleanly, with a grace period that lets every store"
    " close. After a kill, run `statewarden scan` before the next start, and do what it says."
)


class Segmented(Picture):
    """A windowed store, by its segments."""

    affected = derived(lambda x: _affected(x.case))

    @property
    def is_known(self) -> bool:
        """On every possible release one segment answers for the whole store."""
        return self.case.says(Fact.SEGMENT_ANSWERS_FOR_STORE) is Truth.YES


class Unheld(Segmented):
    """No process had it open; `told` = what was said of earlier openings, by the segment's identity."""

    told: Mapping[str, Grade]
    until_us: int  # the end of what was before it was opened
    identity = derived(lambda x: x.worst.segment.identity)

    @property
    def is_flushed(self) -> bool:
        """Whether a close has flushed all that was committed: the process that made these segments lives on.

        A transactional store that is closed dirty drops its buffer, and may leave a new segment empty.
        """
        if self.case.profile.transactional is not Truth.YES:
            return False
        return all(x.segment.made_in_this_life and self._is_of_a_close(x.segment) for x in self.found)

    def _is_of_a_close(self, one: Segment) -> bool:
        """Return whether it was made in a session that ended before, with its process alive."""
        return any(
            x.opened_us <= one.born_us <= (x.released_us or 0) <= self.until_us
            and is_outlived(self.case.application, self.task, x.released_us or 0)
            for x in self.store.sessions
        )

    @cached_property
    def orders(self) -> list[dict[str, Loss | Excuse]]:
        """What each segment lacks: once for every order in which the possible releases ask them."""
        return [self.weighed(oldest=x) for x in _OLDEST[self.case.says(Fact.OLDEST_SEGMENT_OFFSET)]]

    @cached_property
    def found(self) -> list[Loss]:
        """What is lost in every order, at the lowest grade: what only one of the releases loses is left out."""
        each = [losses(x) for x in self.orders]
        names = [name for name in each[0] if all(name in one for one in each)]
        return [min((one[name] for one in each), key=lambda loss: loss.grade) for name in names]

    @cached_property
    def news(self) -> list[Loss]:
        """Without what was told already: what is lost cannot be lost again."""
        return [x for x in self.found if x.grade > self.told.get(x.segment.identity, 0)]

    @cached_property
    def lost(self) -> list[Loss]:
        """Of segments that are still there."""
        return [x for x in self.news if x.segment.identity in self.store.identities]

    @cached_property
    def worst(self) -> Loss:
        """The surest loss; among equals that of the newest segment, which expires last."""
        return max(self.lost, key=lambda loss: (loss.grade, loss.segment.starts))

    def severity(self, most: Severity) -> Severity:
        """A store that deletes keeps sessions: those that went on lie in a newer segment, nothing of them is lost."""
        unsure = self.worst.grade is Grade.POSSIBLE or any(one.deletes for one in self.segments)
        return min(most, Severity.WARNING, key=lambda x: x.rank) if unsure else most


class Reopened(Unheld):
    """It was opened again: its segments as they were before."""

    opening: Opening
    subject = derived(lambda x: f"opening@{x.opening.at_us}")
    opened_at_us = derived(lambda x: x.opening.at_us)

    @cached_property
    def now(self) -> list[tuple[Segment, int]]:
        """Its segments as they are now, and their offsets; -1 = none."""
        found = ((x, x.offset(self.changelog or "")) for x in segments_of(self.store) or ())
        return [(x, -1 if offset is None else offset) for x, offset in found]

    @property
    def moved_to(self) -> int:
        """How far the store has come."""
        return max((offset for _, offset in self.now), default=-1)

    @property
    def goes_on(self) -> bool:
        """A segment that lost something says the offset of the one that answers: no wipe followed."""
        lost = {x.segment.identity: x.offset for x in self.lost}
        return any(offset >= lost[x.identity] for x, offset in self.now if x.identity in lost)


class AtRest(Unheld):
    """No process has it open: what the next start would lose."""

    # It is told once of every segment.
    subject = derived(lambda x: f"at rest, {x.identity}")
    opened_at_us = derived(lambda x: _free_us(x.store))

    @cached_property
    def trusted(self) -> Truth:
        """Whether the next start opens the task as it is; exactly-once refuses a store that says open.

        It wipes the task then, and where a store has no offset; transactional stores are not wiped, and lose nothing of
        a task that is refused.
        """
        case, exactly_once = self.case, self.case.settings.exactly_once
        held = {name: list(x.databases.values()) for name, x in self.task.stores.items() if x.databases}
        if exactly_once is False:
            return Truth.YES
        if any(y.offsets is not None and y.offsets.status == OPEN for x in held.values() for y in x):
            return Truth.NO if exactly_once else Truth.MAYBE
        lacking = [name for name, x in held.items() if not any(y.offsets and y.offsets.offsets for y in x)]
        if case.profile.transactional is Truth.YES or not lacking:
            return Truth.YES
        wiped = exactly_once and case.profile.transactional is Truth.NO
        logged = any(has_changelog(case.application, self.task, name) for name in lacking)
        return Truth.NO if wiped and logged else Truth.MAYBE

    @property
    def is_unsure(self) -> bool:
        """The guarantee decides, and is not known."""
        return self.trusted is Truth.MAYBE and self.case.settings.exactly_once is None


class Running(Segmented):
    """A process holds it, under at-least-once; segments that are `waiting` took records and are not flushed."""

    waiting: tuple[Segment, ...]
    subject = "running"
    # when the first of them was no longer the newest one
    opened_at_us = derived(
        lambda x: next(
            (y.born_us for y in x.segments if x.waiting and y.starts > x.waiting[0].starts), x.case.now_us
        )
    )
    identity = derived(lambda x: x.waiting[0].identity)


def _affected(case: TaskCase) -> Affected:
    """Later releases were not checked: possibly."""
    known = case.affected(LOST_SEGMENT)
    return Affected.POSSIBLY if known is Affected.NO else known


def _openings(case: TaskCase) -> Iterator[Reopened]:
    return (x for store in case.task.stores.values() for x in _openings_of(case, store, {}))


def _openings_of(case: TaskCase, store: Store, told: dict[str, Grade]) -> Iterator[Reopened]:
    """List the openings of a store that holds an offset; `told` takes what is said of them."""
    for opening in store.openings if store.segmented else ():
        story = Reopened(case, store, opening.segments, dict(told), opening.noted_us, opening)
        if story.changelog is not None:
            yield story
            if isinstance(REOPENED.decide(story), Verdict):
                told.update({x.segment.identity: x.grade for x in story.lost})


def _at_rest(case: TaskCase) -> Iterator[AtRest]:
    for store in case.task.stores.values():
        if store.lock is LockState.FREE and store.session is None and case.task.lock is not LockState.HELD:
            told: dict[str, Grade] = {}
            for _ in _openings_of(case, store, told):
                pass
            story = AtRest(case, store, segments_of(store) or (), told, case.now_us)
            if story.changelog is not None:
                yield story


def _free_us(store: Store) -> int:
    ended_us = store.sessions[-1].released_us if store.sessions else None
    return ended_us or max(x.lock_since_us or x.seen_us for x in store.databases.values())


def _running(case: TaskCase) -> Iterator[Running]:
    for store in case.task.stores.values():
        if store.segmented and store.lock is LockState.HELD and case.settings.exactly_once is False:
            segments = segments_of(store) or ()
            yield Running(case, store, segments, unflushed(segments))


def _is_excused(x: Unheld, excuse: Excuse) -> bool:
    """Return whether no segment lacks anything, in whatever order they are asked, one of them for this reason."""
    return not any(losses(one) for one in x.orders) and any(excuse in one.values() for one in x.orders)


_OLDEST = {Truth.YES: (True,), Truth.NO: (False,), Truth.MAYBE: (False, True)}
LOSES_NOTHING = {excuse.value: partial(_is_excused, excuse=excuse) for excuse in Excuse}
TOLD = "the loss was reported of an earlier opening"
READ_BEFORE = "not every segment was read again"  # the start-up pass opens and closes one after the other
FLUSHED = "transactional: closed by a process that lived on, all that was committed is on disk"
RELEASE_DECIDES = "of the releases that it may be, one loses nothing"


def _is_still_empty(x: Reopened) -> Proof | None:
    """The store went on, and the segment, made before the one that answers, holds no record."""
    worst, now = x.worst, [one for one, _ in x.now]
    sure = (
        worst.grade is Grade.CERTAIN and x.goes_on and x.moved_to > worst.offset
        and any(one.identity == x.identity and not one.has_data for one in now)
        and all(one.deletes is False for one in (*x.segments, *now))
        and min(worst.segment.born_us, worst.speaker.born_us) >= (x.task.first_seen_us - SEEN_BEFORE_BORN_US)
    )  # fmt: skip
    return Proof("the store went on behind its first put, and the segment is still empty") if sure else None


def _is_left_out(x: AtRest) -> bool:
    """A process opens all stores of a task before it restores any: its topology has this one no more, or renamed.

    A close lets go of one after the other, so the others must have been opened since. An agent that never saw it held
    goes by its files.

    Source:
        StateManagerUtil.registerStateStores (2.6.0, 3.8.0).
    """
    free_us, opened = x.opened_at_us, [one.opened_us for one in x.segments]
    if not x.store.sessions and None not in opened:
        free_us = max(at_us for at_us in opened if at_us is not None) + SETTLED_US
    others = (y.session for y in x.task.stores.values())
    since_us = [y.opened_us for y in others if y is not None and y.opened_us > free_us]
    return bool(since_us) and x.case.waited_us(min(since_us)) >= SETTLED_US


def _loudness_at_rest(x: AtRest, _: Proof | None) -> Loudness:
    most = Severity.CRITICAL if x.is_known and x.trusted is Truth.YES else Severity.WARNING
    missing = ("processing_guarantee",) * x.is_unsure + ("kafka_streams_version",) * (not x.is_known)
    confidence = Confidence.UNKNOWN if x.is_unsure else Confidence.SUSPECTED
    severity = x.severity(Severity.INFO if x.is_unsure else most)
    return Loudness(
        severity, confidence, Level.EXPOSURE, BEFORE_THE_START, missing, remedy=Remedy.CHECK_FIRST
    )


# What it says


def _evidence_reopened(x: Reopened, _: Proof | None) -> Iterable[Evidence]:
    yield from _losses(x)
    answer = f"opened again, no wipe; {x.worst.speaker.name} answers: offset {x.worst.offset}"
    yield Evidence(x.opened_at_us, answer, x.worst.speaker.path)
    if x.moved_to > x.worst.offset:
        at_us = max(x.opened_at_us, *(one.offset_us for one, _ in x.now))
        yield Evidence(at_us, f"the store went on to offset {x.moved_to}", x.place)


def _losses(x: Unheld, _: Proof | None = None) -> Iterable[Evidence]:
    return (Evidence(x.opened_at_us, _picture(loss), loss.segment.path) for loss in x.lost)


def _what(lost: list[Loss]) -> str:
    named = [loss.segment for loss in lost if loss.grade > Grade.POSSIBLE] or [loss.segment for loss in lost]
    names = ", ".join(x.name for x in named)
    since = " since the last flush" if any(x.has_data for x in named) else ""
    return f"{'what' if since else 'all that'} was put into {names}{since}"


def _picture(loss: Loss) -> str:
    born = f"made {rfc3339(loss.segment.born_us)}, the one that answers {rfc3339(loss.speaker.born_us)}"
    has_data, flushed_us = loss.segment.has_data, loss.segment.flushed_us
    return f"{f'last flushed {rfc3339(flushed_us)}' if has_data else 'no record on disk'} ({born})"


REOPENED = Rule[Reopened](
    "a windowed store was opened again, and goes on from the offset of one segment",
    innocents={
        **LOSES_NOTHING,
        TOLD: lambda x: bool(x.found) and not x.news,
        FLUSHED: lambda x: bool(x.found) and x.is_flushed,
        "the segment expired, or was wiped": lambda x: bool(x.news) and not x.lost,
    },
    unknowns={
        RELEASE_DECIDES: lambda x: not x.found,
        READ_BEFORE: lambda x: not is_read_since(x.store, x.opening),
        "exactly-once may yet wipe it": lambda x: not x.goes_on and x.case.settings.exactly_once is not False,
    },
    proofs=(_is_still_empty,),
    loudness=lambda x, proof: Loudness(
        x.severity(Severity.CRITICAL if x.goes_on or x.is_known else Severity.WARNING),
        Confidence.CONFIRMED if proof is not None else Confidence.SUSPECTED,
    ),
    summary=lambda x, _: (
        f"{x.named} went on from offset {x.worst.offset} of segment"
        f" {x.worst.speaker.name}; {_what(x.lost)} {'is' if x.worst.grade > Grade.POSSIBLE else 'may be'} lost."
    ),
    evidence=_evidence_reopened,
)

AT_REST = Rule[AtRest](
    "the next start would go on from the offset of one segment",
    innocents={
        **LOSES_NOTHING,
        TOLD: lambda x: bool(x.found) and not x.news,
        FLUSHED: lambda x: bool(x.found) and x.is_flushed,
        "exactly-once wipes the store at the next start": lambda x: x.trusted is Truth.NO,
        "a process runs the task without the store": _is_left_out,
    },
    unknowns={
        RELEASE_DECIDES: lambda x: not x.found,
        READ_BEFORE: lambda x: not all(is_read_since(x.store, y) for y in x.store.openings[-1:]),
    },
    loudness=_loudness_at_rest,
    summary=lambda x, _: (
        f"Task {x.task.id}: a start would open store {x.store.name} at offset {x.worst.offset} of segment"
        f" {x.worst.speaker.name}; {_what(x.lost)} {'would' if x.worst.grade > Grade.POSSIBLE else 'might'} be lost"
        f"{' (under at-least-once)' if x.is_unsure else ''}."
    ),
    evidence=_losses,
)

RUNNING = Rule[Running](
    "segments of a running store that are no longer flushed",
    innocents={"all but the newest segment are flushed": lambda x: not x.waiting},
    unknowns={"whether one segment answers for the store": lambda x: not x.is_known},
    loudness=lambda _, __: Loudness(Severity.INFO, Confidence.SUSPECTED, Level.EXPOSURE, NOTHING_LOST),
    summary=lambda x, _: (
        f"Task {x.task.id}: {len(x.waiting)} of {len(x.segments)} segments of store {x.store.name} hold records"
        " that are not on disk; once a newer one is flushed, a kill loses them."
    ),
    evidence=lambda x, _: (
        Evidence(x.opened_at_us, f"not flushed since: {x.waiting[0].name}", x.waiting[0].path),
    ),
)

DETECTOR = detector(
    META, Docket(_openings, (REOPENED,)), Docket(_at_rest, (AT_REST,)), Docket(_running, (RUNNING,))
)
