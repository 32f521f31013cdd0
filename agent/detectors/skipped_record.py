"""Detector `skipped-record`: after an upgrade from 2.5 or earlier a copy went on one record too far.

Up to 2.5 a checkpoint holds the next offset to read; 2.6 and later take it for the last one that was applied, and read
on behind it. Where another pod wrote a record at that offset meanwhile, this copy never gets it.
Fires when a store that 2.5 or earlier let go of is opened by 2.6 or later with the offset that it had then, and the
next offset, that of its last record now, has moved by exactly as much as was put: there was one record more to put.
Clears when the incarnation is gone: the copy was removed, and restored from empty.
Stays quiet for an offset at the end of the changelog: it is out of range, and everything is replayed
(`overlaid-store`), or the task writes that record itself; for a store that had flushed more than its checkpoint covers
when it ended: it has the record; under exactly-once, where a marker is at that offset.

Source:
    ProcessorStateManager.updateCheckpointFileCache and updateStandbyStates (2.0.1 to 2.5.1: the offset and one);
    ProcessorStateManager.initializeStoreOffsetsFromCheckpoint, StoreChangelogReader.prepareChangelogs (2.6.0 to
    2.8.2: a seek to the offset and one), hasRestoredToEnd; docs/state-format.md#d4; seen live from 2.5.1 to 2.8.2
    and to 3.6.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

from agent.contract.events import Severity
from agent.inventory.model import CheckpointClaim, Session
from agent.judging.base import DetectorMeta, Evidence, Fact, Mechanism, Remedy, TaskCase, Twin
from agent.judging.rule import Docket, NamedStoreStory, Proof, Rule, derived, detector
from agent.judging.upstream import OFFSET_MEANING
from agent.judging.wording import checkpoint_of
from agent.layout.profile import Profile, Truth
from agent.layout.releases import releases_with_rocksdb
from agent.quantities.changelog import is_one_short
from agent.quantities.kinds import puts_per_record

CLOCK_US = 1_000_000
"""What is between the time of a file and that in the name of another one, written at the same opening."""

META = DetectorMeta(
    id="skipped-record",
    title="Upgrade from 2.5 skipped one record",
    mechanism=Mechanism.OFFSET_WITHOUT_DATA,
    severity=Severity.WARNING,
    needs=("processing_guarantee", "kafka_streams_version"),
    upstream=(OFFSET_MEANING,),
    exactly_once=False,
    remedy=Remedy.RESTORE,
    next_action=(
        "Soon, before this copy becomes the active one, and one pod at a time: stop the instance cleanly, keep a copy"
        " of this task directory, remove it, start, and wait until it is restored from empty."
    ),
    consequence=(
        "This copy lacks one record until its key is written again. An active task counts and joins without it."
    ),
    twin=Twin(
        "N22, an upgrade with the offset at the end of the changelog: out of range, and all is replayed",
        "benign-upgrade-2.3.1-to-2.5.1-to-2.8.2",
    ),
    silent_where=((Fact.OFFSET_IS_LAST, Truth.NO), (Fact.OFFSET_IS_LAST, Truth.MAYBE)),
)


class Upgrade(NamedStoreStory):
    """Two sessions in a row on a store; the second one trusted an offset."""

    before: Session
    after: Session
    offset: int
    subject = derived(lambda x: f"incarnation {x.task.incarnation}.{x.store.incarnation}")
    opened_at_us = derived(lambda x: x.after.opened_us)
    affected = derived(lambda x: x.case.affected(OFFSET_MEANING))

    @cached_property
    def old(self) -> Profile | None:
        """The releases that held the store before, if each of them writes the next offset to read.

        The RocksDB version in options that were written after that session began, and before this one, shows them.
        """
        for version, written_us in self.case.application.rocksdb_versions.items():
            releases = releases_with_rocksdb(version)
            began_us, ended_us = self.before.opened_us - CLOCK_US, self.after.opened_us
            if releases is not None and began_us <= written_us < ended_us:
                profile = Profile(releases)
                if profile.says(Fact.OFFSET_IS_NEXT) is Truth.YES:
                    return profile
        return None

    @cached_property
    def flushed(self) -> int | None:
        """What was flushed when the trusted offset was written; None = not known."""
        last = self.before.last
        if last is not None and last.offset == self.offset:
            return None if last.unsure else last.puts
        fact = self.task.checkpoint_at(self.after.opened_us)
        if fact is None or fact.offsets.get(self.store.name) != self.offset:
            return None
        return self.store.puts_at(fact.written_us)

    @property
    def mark(self) -> CheckpointClaim | None:
        """The first checkpoint since that says more, and is sure of the puts."""
        marks = (x for x in (self.after.first, self.after.last) if x is not None and not x.unsure)
        return next((x for x in marks if x.offset > self.offset), None)

    @property
    def put(self) -> int:
        """How many records were put behind the one that was skipped."""
        return self.mark.puts - self.after.puts_at_open if self.mark is not None else 0


def _upgrades(case: TaskCase) -> Iterator[Upgrade]:
    for store in () if case.task.is_global else case.task.stores.values():
        for before, after in pairwise(store.sessions):
            if after.offset_at_open is not None and after.offset_at_open >= 0:
                yield Upgrade(case, store, before, after, after.offset_at_open)


# What it says


def _evidence(x: Upgrade, _: Proof | None) -> Iterator[Evidence]:
    before, after = x.before, x.after
    left = f"released by 2.5 or earlier with {after.puts_at_open} puts; next to read: {x.offset}"
    yield Evidence(before.released_us or after.opened_us, left, x.place)
    taken = f"opened by 2.6 or later, which takes offset {x.offset} for read"
    yield Evidence(after.opened_us, taken, x.place)
    if x.mark is not None:
        what = f"checkpoint with offset {x.mark.offset}, the last one read, after {x.put} puts"
        yield Evidence(x.mark.at_us, what, checkpoint_of(x.task))


RULE = Rule[Upgrade](
    "a copy goes on one record too far",
    innocents={
        "the opening made the store, or wiped it": lambda x: x.after.created or x.after.wiped,
        # The store is gone that the session had, or was there before.
        "another incarnation of the store was there": lambda x: (
            not x.after.is_of(x.store.identities) or not x.before.is_of(x.after.identities)
        ),
        "the copy had flushed more than its checkpoint covers, and has the record": lambda x: (
            x.flushed is not None and x.flushed != x.after.puts_at_open
        ),
        "a record was put for each offset": lambda x: (
            x.mark is not None and not is_one_short(x.offset, x.mark.offset, x.put)
        ),
    },
    unknowns={
        "which release held it before, if an earlier one did": lambda x: x.old is None,
        "how often this store puts a record": lambda x: (
            x.old is not None and puts_per_record(x.store, x.old).high != 1
        ),
        "what was flushed when the old offset was written": lambda x: x.flushed is None,
        "how far the copy has come since": lambda x: x.mark is None,
    },
    summary=lambda x, _: (
        f"Task {x.task.id}: after the upgrade store {x.store.name} skipped the record at offset {x.offset}, which the"
        f" old release had yet to read: {x.put} puts for {x.put + 1} records."
    ),
    evidence=_evidence,
)

DETECTOR = detector(META, Docket(_upgrades, (RULE,)))
