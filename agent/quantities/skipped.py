"""A record that was skipped across an upgrade: the next offset to read up to 2.5, the last one applied from 2.6 on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from agent.inventory.model import Application, CheckpointClaim, Session, Store, Task
from agent.layout.facts import Fact
from agent.layout.profile import Profile, Truth
from agent.layout.releases import releases_with_rocksdb
from agent.quantities.kinds import puts_per_record

CLOCK_US = 1_000_000
"""What is between the time of a file and that in the name of another one, written at the same opening."""


@dataclass(frozen=True, slots=True)
class Skip:
    """An upgrade across which a record was skipped: the sessions on both sides, and the offset that shows it."""

    before: Session
    after: Session
    offset: int
    mark: CheckpointClaim

    @property
    def put(self) -> int:
        """How many records were put behind the one that was skipped."""
        return self.mark.puts - self.after.puts_at_open


def skips(application: Application, task: Task, store: Store) -> Iterator[Skip]:
    """List the upgrades across which a store skipped a record: as many puts as the offset moved, one too few."""
    for before, after in pairwise(store.sessions):
        skip = _skip(application, task, store, before, after)
        if skip is not None:
            yield skip


def _skip(application: Application, task: Task, store: Store, before: Session, after: Session) -> Skip | None:
    offset = after.offset_at_open
    old = _earlier_release(application, before, after)
    if old is None or offset is None or offset < 0 or after.created or after.wiped:
        return None
    if not after.is_of(store.identities) or not before.is_of(after.identities):
        return None
    if puts_per_record(store, old).high != 1 or _covered(task, store, before, after) != after.puts_at_open:
        return None
    for mark in (after.first, after.last):
        if mark is not None and not mark.unsure and mark.offset > offset:
            is_short = mark.offset - offset == mark.puts - after.puts_at_open
            return Skip(before, after, offset, mark) if is_short else None
    return None


def _earlier_release(application: Application, before: Session, after: Session) -> Profile | None:
    """Return the releases that held the store before, if each of them writes the next offset to read.

    The RocksDB version in options that were written after that session began, and before this one, shows them.
    """
    for version, written_us in application.rocksdb_versions.items():
        releases = releases_with_rocksdb(version)
        if releases is None or not before.opened_us - CLOCK_US <= written_us < after.opened_us:
            continue
        profile = Profile(releases)
        if profile.says(Fact.OFFSET_IS_NEXT) is Truth.YES:
            return profile
    return None


def _covered(task: Task, store: Store, before: Session, after: Session) -> int | None:
    """Return what was flushed when the offset was written with which the store was opened; None = not known."""
    if before.last is not None and before.last.offset == after.offset_at_open:
        return None if before.last.unsure else before.last.puts
    fact = task.checkpoint_at(after.opened_us)
    if fact is None or fact.offsets.get(store.name) != after.offset_at_open:
        return None
    return store.puts_at(fact.written_us)
