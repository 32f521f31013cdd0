"""How many puts one changelog record makes, by kind of store."""

from __future__ import annotations

from agent.inventory.model import Store
from agent.layout.facts import Fact
from agent.layout.profile import Profile, Truth
from agent.quantities.bounds import UNKNOWN, Bounds

TIMESTAMPED_FAMILY = "keyValueWithTimestamp"
DEFAULT_FAMILY = "default"
SEGMENTS_DROPPED = 100
"""A versioned store drops every segment that expired with the first record after a silence, each by one deletion of a
range: 26 at most by default (history retention by segment interval)."""


def puts_per_record(store: Store, profile: Profile) -> Bounds:
    """Return how many puts one record of the changelog makes while it is processed or restored.

    The low end is 0 where a record may make none: a windowed store skips an expired one, a restoration of a
    versioned store puts only the newest version of a key and batch.

    Args:
        store: The store: its shape and its column families show its kind.
        profile: The releases that may have written it.

    Source:
        RocksDBVersionedStore.doPut (3.5.0 to 4.3.1: latest value and segment, deleteRange of an expired segment);
        AbstractDualSchemaRocksDBSegmentedBytesStore.put (3.2.0+: base and index);
        RocksDBTimestampedStore.DualColumnFamilyAccessor (2.3.0+: delete and put; `get` puts, too, with no record).
    """
    families = frozenset(name for database in store.databases.values() for name in database.families)
    if not families or (store.segmented and TIMESTAMPED_FAMILY in families and _is_in_upgrade_mode(store)):
        return UNKNOWN
    if store.segmented:
        indexed = profile.says(Fact.INDEXED_WINDOW_STORES) is not Truth.NO
        return Bounds(0, 2 if indexed else 1)
    if TIMESTAMPED_FAMILY in families:
        return Bounds(1, None) if _is_in_upgrade_mode(store) else Bounds.exactly(1)
    if profile.says(Fact.VERSIONED_STORES) is Truth.NO:
        return Bounds.exactly(1)
    return Bounds(0, 3 if _may_delete_ranges(store) else 2)


def puts_beside_records(store: Store, profile: Profile) -> Bounds:
    """Return how many puts represent no separate record: segments of a versioned store that were dropped at once.

    Source:
        LogicalKeyValueSegments.cleanupExpiredSegments, VersionedBytesStoreSupplier (3.5.0 to 4.3.1).
    """
    per_record = puts_per_record(store, profile)
    is_plain = not store.segmented and per_record != Bounds.exactly(1)
    return Bounds(0, SEGMENTS_DROPPED if is_plain else 0)


def _is_in_upgrade_mode(store: Store) -> bool:
    """A timestamped store that still has values of the plain store that it once was."""
    return any(DEFAULT_FAMILY in database.families_in_use for database in store.databases.values())


def _may_delete_ranges(store: Store) -> bool:
    """Only a versioned store deletes ranges of keys (an expired segment): its live entries cannot be counted then."""
    return any(database.entries_low is None for database in store.databases.values())
