"""How many live entries a store has on disk: bounds from the counters of its files, without reading a key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agent.observe.rocksdb.properties import Properties
from agent.observe.rocksdb.version_edit import LiveFile


@dataclass(frozen=True, slots=True)
class EntryInterval:
    """Bounds of the number of live entries, both included; memtable content is not counted."""

    low: int
    high: int


def live_entries(files: Iterable[tuple[LiveFile, Properties]]) -> EntryInterval | None:
    """Compute bounds for the files of one column family; None if a file deletes key ranges, which no counter bounds.

    A key is in at most as many places as there are puts: the upper bound. A sorted run holds a key at most once,
    and only deletions in newer runs can end it: each run gives a lower bound.
    """
    runs: dict[tuple[int, ...], list[Properties]] = {}
    for file, properties in files:
        if properties.range_deletions:
            return None
        runs.setdefault(_run(file), []).append(properties)
    high = low = deleted_by_newer = 0
    for key in sorted(runs):
        puts = sum(max(0, one.entries - one.deletions) for one in runs[key])
        high += puts
        low = max(low, puts - deleted_by_newer)
        deleted_by_newer += sum(one.deletions for one in runs[key])
    return EntryInterval(low, high)


def newest_first(files: Iterable[LiveFile]) -> list[LiveFile]:
    """Order files so that those of newer sorted runs come first."""
    return sorted(files, key=lambda file: (_run(file), file.number))


def _run(file: LiveFile) -> tuple[int, ...]:
    if file.level > 0:
        return (file.level,)
    # every file of level 0 is its own run; newer ones hold higher sequence numbers
    return (0, -file.largest_sequence, -file.smallest_sequence, -file.number)
