"""Which release wrote what is on disk: of an upgrade the new one is configured, and another one wrote."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from agent.inventory.model import Session, Store
from agent.judging.base import ApplicationCase, Fact, TaskCase
from agent.layout.facts import FACTS
from agent.layout.profile import Evidence, Profile, Truth, infer


def writer_of(case: ApplicationCase, store: Store) -> Profile:
    """Return the profile of the release that wrote a store last.

    A store without offsets of its own was written by 4.2 or earlier, whatever is configured.
    """
    return case.profile if store.keeps_offsets else _other(case, store)


def any_writer(case: ApplicationCase, store: Store) -> Profile:
    """Return the profile of all releases that may have written a store without offsets, whatever is configured."""
    return _any_before_4_3(_versions(case, store), case.settings.text("upgrade_from"))


def writer_before(case: ApplicationCase, store: Store, session: Session) -> Profile:
    """Return the profile of the release that let a store go at the end of a session."""
    return case.profile if session.kept_offsets else _other(case, store)


@lru_cache(maxsize=64)
def before_4_3(profile: Profile) -> Profile:
    """Cut a profile down to the releases that leave stores without offsets; one that has none stays."""
    known = profile.range.intersect(FACTS[Fact.CHECKPOINT_FILE].holds[0])
    return profile if known is None else replace(profile, range=known)


def as_of(case: TaskCase, profile: Profile) -> TaskCase:
    """Give the case with the release that wrote; mostly that is the one that is there."""
    return case if profile is case.profile else replace(case, profile=profile)


def _other(case: ApplicationCase, store: Store) -> Profile:
    """Return the profile of the release that wrote where it cannot be the one that is there.

    The configured one keeps offsets in stores, or ships another RocksDB than the one that opened them last: that one
    may have been replaced, so no issue concerns it for sure.
    """
    if case.says(Fact.OFFSETS_IN_STORE) is not Truth.YES and not case.profile.doubts:
        return case.profile
    found = any_writer(case, store)
    return replace(found, doubts=case.profile.doubts) if case.profile.doubts else found


def _versions(case: ApplicationCase, store: Store) -> frozenset[str]:
    versions = {x.rocksdb_version for x in store.databases.values() if x.rocksdb_version}
    if store.keeps_offsets:  # an opening by 4.3 or later has put its own version over the one before
        older = {at: x for x, at in case.application.rocksdb_versions.items() if x not in versions}
        versions = {older[max(older)]} if older else set()
    return frozenset(versions)


@lru_cache(maxsize=64)
def _any_before_4_3(versions: frozenset[str], upgraded_from: str | None) -> Profile:
    return infer(Evidence(rocksdb_versions=versions, operator=upgraded_from, plain=True))
