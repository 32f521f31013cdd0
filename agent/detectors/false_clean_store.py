"""Detector `false-clean-store`: a store says that it was closed clean, but its close did not write the offset.

From 4.3 on a clean close writes offset, position and status last. A dirty close that is killed before its wipe
flushes uncommitted records and marks the store clean without an offset; Kafka Streams trusts it. Fires when such a
store is opened again: suspected. If the next offset moved by less than what had been flushed, that was hardly ever
committed: critical. Confirmed once data went on reaching the disk without another offset while commits went by. Until
then that offset may be one of a restoration on its way, or the one that the start-up pass puts back. Where no process
holds such a store, the next start would trust it: fires, too.

Source:
    RocksDBStore.close, StreamTask.closeDirty and postCommit, DefaultStateUpdater.maybeCheckpointTasks,
    StateDirectory.initializeStartupStores (4.3.1); docs/state-format.md#what-the-last-close-wrote and
    docs/state-format.md#d1; recorded as
    `dirty-close-kill-4.3.1`, twins `control-dirty-close-wiped-4.3.1`, `eos-4.3.1-crash-*`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.units import UNCOMMITTED_RESULTS, Twin
from agent.inventory.disk import LockState
from agent.inventory.model import Session, Store
from agent.inventory.sessions import stored_offset, took_offset, uncovered_puts, wrote_offset
from agent.judging.base import DetectorMeta, Evidence, Fact, Mechanism, Remedy, TaskCase, Truth
from agent.judging.reopening import DEAD_US, eos_reopenings, may_be_wiped_soon, ran_alos
from agent.judging.rule import Docket, Loudness, NamedStoreStory, Proof, Rule, derived, detector, first_of
from agent.judging.upstream import FALSE_CLEAN
from agent.judging.wording import assumptions
from agent.quantities.changelog import base_offset
from agent.quantities.flushed import (
    commits_passed,
    dirty_puts,
    dirty_since,
    is_more_than_ten_thousand,
    order_is_lost_beside,
)
from agent.quantities.verdicts import holds_uncommitted

META = DetectorMeta(
    id="false-clean-store",
    title="Store marked clean by a close that did not write its offset",
    mechanism=Mechanism.UNCOMMITTED_DATA,
    needs=("processing_guarantee", "num_standby_replicas", "kafka_streams_version"),
    upstream=(FALSE_CLEAN,),
    exactly_once=True,
    remedy=Remedy.RESTORE,
    next_action=(
        "Stop this instance cleanly, keep a copy of the task directory, remove that task directory only, start"
        " again: the task is restored from committed records. Leave the other pods' copies alone. What"
        " this task wrote since the store was opened may rest on uncommitted data and must be reprocessed."
    ),
    consequence=UNCOMMITTED_RESULTS,
    twin=Twin("a dirty close whose wipe was not prevented", "control-dirty-close-wiped-4.3.1"),
    silent_where=((Fact.STATUS_MARKER, Truth.NO),),
)


SAME_FLUSH_US = 1_000_000
"""Data and offset of one flush are two files; they are written within this time."""


class Closed(NamedStoreStory):
    """A store, and who closed it; None = all is known from one reading."""

    before: Session | None
    affected = derived(lambda x: x.case.affected(FALSE_CLEAN))

    @property
    def uncertain(self) -> int:
        """Puts that may never have been committed."""
        return 0 if self.before is None else self.before.puts_at_release - self.before.puts_at_open

    @property
    def took_offset(self) -> bool:
        """Whether an offset may have come with its data; of a session that no agent saw the files show it."""
        return took_offset(self.store) if self.before is None else self.before.took_offset

    @property
    def was_active(self) -> bool:
        """Whether it was an active task: configured so, or a standby would have stored an offset at a commit."""
        case, before = self.case, self.before
        if case.number_in("num_standby_replicas", before) == 0:
            return True
        if before is None or not is_more_than_ten_thousand(self.uncertain, self.store, case.profile):
            return False
        lasted_us = case.passed_us(before.opened_us, before.released_us or case.now_us)
        return commits_passed(case.settings, lasted_us)

    @property
    def concerns_an_active(self) -> bool:
        """Whether it was an active task for sure, of a release that has the bug."""
        return self.was_active and self.affected is Affected.YES and not self.is_alone

    @cached_property
    def is_alone(self) -> bool:
        """Whether it may have no changelog: the order is unknown, and another store's offset came behind its data."""
        return order_is_lost_beside(self.task, self.store, self.before)

    @property
    def missing(self) -> tuple[str, ...]:
        """The setting that would tell."""
        return () if self.was_active else ("num_standby_replicas",)


class Trusted(Closed):
    """It was opened again: the same incarnation."""

    before: Session
    after: Session
    subject = derived(lambda x: f"close@{x.before.released_us}")
    opened_at_us = derived(lambda x: x.after.opened_us)

    @cached_property
    def runs(self) -> bool:
        """Whether its restoration is over for sure: who restores stores an offset at every commit, and at a pause.

        Two flushes behind the newest offset, commits apart: one alone may follow a pause.
        """
        for database in self.store.databases.values():
            since_us = max(database.offset_us, self.after.opened_us) + SAME_FLUSH_US
            late = [us for _, us in database.flushed if us > since_us]
            if late and commits_passed(self.case.settings, self.case.passed_us(late[0], late[-1])):
                return True
        return False

    @property
    def next_offset(self) -> int | None:
        """The offset that was stored since; of a store that is open only where no other one comes."""
        return stored_offset(self.store) if self.runs else self.after.stored_offset

    @property
    def is_put_back(self) -> bool:
        """Whether the start-up pass put the old offset back: as little is known of what was flushed as at rest."""
        old, new = base_offset(self.after.stored_offset_at_open), self.next_offset
        return not self.runs and new is not None and new <= old


class AtRest(Closed):
    """It is free, and the next start would trust it."""

    subject = "at rest"
    # when it was let go; of one reading the time of what its last close flushed: the same whenever it is read
    opened_at_us = derived(
        lambda x: x.before.released_us or x.before.opened_us if x.before else _flushed_us(x.store)
    )

    @property
    def is_followed(self) -> bool:
        """Whether the agent was there: it saw it held, or heard it made and let go before it could see that."""
        return self.before is not None or any(y.heard for y in self.store.databases.values())

    @property
    def uncertain(self) -> int:
        """Puts behind the newest stored offset; 0 = a compaction hides how many."""
        return uncovered_puts(self.store) or 0


def _flushed_us(store: Store) -> int:
    return max((x.flushed[-1][1] if x.flushed else x.born_us for x in store.databases.values()), default=0)


def _trusted(case: TaskCase) -> Iterator[Trusted]:
    for store in case.task.stores.values():
        for before, after in eos_reopenings(case, store):
            yield Trusted(case, store, before, after)


def _at_rest(case: TaskCase) -> Iterator[AtRest]:
    """List the stores up to the first that was trusted already: for the others of its task it is too late, too."""
    trusted = {story.store.name for story, _ in TRUSTED_DOCKET.heard(case)}
    for store in case.task.stores.values():
        before = store.sessions[-1] if store.sessions else None
        if not ran_alos(case, before):
            yield AtRest(case, store, before)
        if store.name in trusted:
            return


def _moved_by_less(x: Trusted) -> Proof | None:
    new, least = x.next_offset, dirty_puts(x.store, x.before, x.case.settings)
    if new is None or x.is_put_back:
        return None
    found = holds_uncommitted(x.store, x.case.profile, least, dirty_since(x.before), new)
    why = "the next stored offset moved by less than what was flushed"
    return Proof(why, certain=x.runs) if found is Truth.YES else None


def _is_marked_open(x: AtRest) -> bool:
    facts = [y.offsets for y in x.store.databases.values() if y.offsets is not None]
    return not facts or any(y.status != 0 for y in facts)


_OF_THE_CLOSE: Mapping[str, Callable[[Closed], bool]] = {
    "killed open": lambda x: x.before is not None and x.before.closed is False,
    "closed with its offset": lambda x: (
        x.before is not None and bool(x.before.closed and x.before.closed_with_offset)
    ),
    "a store without a changelog": lambda x: x.before is not None and x.before.closed_with_offset is None,
    "it got no offset: its restoration did not end, or it has no changelog": lambda x: not x.took_offset,
    "nothing was flushed before the close": lambda x: (
        x.before is not None and x.before.puts_at_release <= x.before.puts_at_open
    ),
}
_UNKNOWN_CLOSE: Mapping[str, Callable[[Closed], bool]] = {
    "held too briefly to tell how it ended": lambda x: x.before is not None and x.before.closed is None
}


def _loudness_at_rest(x: AtRest, _: Proof | None) -> Loudness:
    severity, step = (
        Severity.CRITICAL if x.concerns_an_active else Severity.WARNING,
        _BEFORE_THE_START.format(path=x.task.path),
    )
    return Loudness(severity, Confidence.SUSPECTED, Level.EXPOSURE, step, x.missing, remedy=Remedy.RESTORE)


# What they say


def _evidence(x: Trusted, _: Proof | None) -> Iterable[Evidence]:
    before, after = x.before, x.after
    yield Evidence(before.opened_us, f"opened; stored offset {before.stored_offset_at_open}", x.place)
    closed = f"closed: status clean, {x.uncertain} new puts flushed, no offset written with them"
    yield Evidence(before.released_us or 0, closed, x.place)
    yield Evidence(after.opened_us, "the same incarnation opened again, no wipe", x.place)
    if x.next_offset is not None:
        found = f"next stored offset: {x.next_offset}"
        yield Evidence(after.released_us or x.case.now_us, found, x.place)
    elif x.missing:
        yield from assumptions(x.case, after.opened_us, *x.missing)


def _summary_at_rest(x: AtRest, _: Proof | None) -> str:
    what = (
        f"about {x.uncertain} puts that a dirty close flushed"
        if x.uncertain
        else "what a dirty close flushed"
    )
    return (
        f"{x.named} is marked clean, but its last close did not write an offset: no"
        f" process holds it, and the next start would trust {what}."
    )


def _evidence_at_rest(x: AtRest, _: Proof | None) -> Iterable[Evidence]:
    yield Evidence(x.opened_at_us, "status closed, written after the data, and no offset with it", x.place)
    yield from assumptions(x.case, x.opened_at_us, *x.missing)


_BEFORE_THE_START = (
    "BEFORE the next start: keep a copy of the task directory {path}, remove that directory only, then"
    " start: the task is restored from committed records, and nothing is lost."
)

_HOW_SURE = {None: "perhaps never", False: "very likely never", True: "never"}

TRUSTED = Rule[Trusted](
    "a store that a dirty close marked clean was opened again",
    innocents=_OF_THE_CLOSE,
    unknowns=_UNKNOWN_CLOSE,
    proofs=(_moved_by_less,),
    loudness=lambda x, proof: (
        Loudness(Severity.CRITICAL, Confidence.CONFIRMED if proof.certain else Confidence.SUSPECTED)
        if proof is not None and not x.is_alone
        else Loudness(
            # what was critical at rest is no less after the start that trusted it
            Severity.CRITICAL if x.is_put_back and x.concerns_an_active else Severity.WARNING,
            Confidence.SUSPECTED,
            missing_facts=x.missing,
        )
    ),
    summary=lambda x, proof: (
        f"{x.named} was marked clean without its offset, and the start trusted it."
        f" {x.uncertain} flushed puts were {_HOW_SURE[proof.certain if proof else None]} committed."
    ),
    evidence=_evidence,
)
TRUSTED_DOCKET = Docket(_trusted, (TRUSTED,), first_of())

AT_REST = Rule[AtRest](
    "a store that a dirty close marked clean waits for the next start",
    innocents={
        "a process holds it": lambda x: (
            x.store.lock is LockState.HELD or (x.before is not None and x.before.released_us is None)
        ),
        **_OF_THE_CLOSE,
        "marked open: the next start does not trust it": _is_marked_open,
        "its offset is as new as its data": lambda x: wrote_offset(x.store) is True,
        "it holds no offset, and is wiped if it has a changelog": lambda x: wrote_offset(x.store) is None,
        "nothing is in it": lambda x: x.store.puts <= 0,
    },
    unknowns={
        **_UNKNOWN_CLOSE,
        "it is not known whether a process holds it": lambda x: x.store.lock is not LockState.FREE,
        "let go less than a minute ago": lambda x: (
            (x.is_followed and x.case.waited_us(x.opened_at_us) < DEAD_US)
            or may_be_wiped_soon(x.case, x.store)
        ),
    },
    loudness=_loudness_at_rest,
    summary=_summary_at_rest,
    evidence=_evidence_at_rest,
)

DETECTOR = detector(META, Docket(_at_rest, (AT_REST,)), TRUSTED_DOCKET)
