"""How many puts one changelog record makes, by kind of store."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from agent.inventory.model import Store
from agent.layout import names
from agent.layout.facts import Fact
from agent.layout.profile import Profile, Truth
from agent.quantities.bounds import UNKNOWN, Bounds

_AGES: Mapping[str, int] = {
    "default": 0,
    "keyValueWithTimestamp": 1,
    "keyValueWithTimestampAndHeaders": 2,
    "sessionKeyValueWithHeaders": 2,
    "windowKeyValueWithHeaders": 2,
}
"""Column families with data of the application -> which form of values came when (2.0, 2.3, 4.3)."""
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
        RocksDBTimestampedStore.DualColumnFamilyAccessor (2.3.0+), DualColumnFamilyAccessor (4.3.0+, for values with
        headers, too): delete and put; `get` puts, too, with no record.
    """
    newest, is_in_upgrade_mode = _forms(
        frozenset((x.families, x.families_in_use) for x in store.databases.values())
    )
    if newest is None:
        return UNKNOWN
    if is_in_upgrade_mode:
        return UNKNOWN if store.segmented else Bounds(1, None)
    if store.segmented:
        indexed = profile.says(Fact.INDEXED_WINDOW_STORES) is not Truth.NO
        return Bounds(0, 2 if indexed else 1)
    if newest or profile.says(Fact.VERSIONED_STORES) is Truth.NO:
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


@lru_cache(maxsize=256)
def _forms(databases: frozenset[tuple[tuple[str, ...], tuple[str, ...]]]) -> tuple[int | None, bool]:
    """Return which form of values is the newest, and whether some may still be of an older one; None = not known.

    Args:
        databases: Families and families in use of every database of a store.

    Source:
        RocksDBTimestampedStoreWithHeaders.openFromTimestampedStore (4.3.0+): an empty family of timestamped values is
        dropped by the opening, so where it is beside one with headers, it was not empty.
    """
    families = {name for there, _ in databases for name in there}
    if not families or not families <= _AGES.keys() | {names.OFFSETS_FAMILY}:
        return None, False
    is_in_upgrade_mode = False
    for there, in_use in databases:
        newest = max((_AGES.get(name, 0) for name in there), default=0)
        older = {x for x in in_use if x in _AGES} | (set(there) - {"default"})
        is_in_upgrade_mode |= any(_AGES.get(name, newest) < newest for name in older)
    return max(_AGES.get(name, 0) for name in families), is_in_upgrade_mode


def _may_delete_ranges(store: Store) -> bool:
    """Only a versioned store deletes ranges of keys (an expired segment): its live entries cannot be counted then."""
    return any(database.entries_low is None for database in store.databases.values())
