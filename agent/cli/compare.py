"""Two state directories side by side, store by store: what each holds of the same changelog. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from agent.inventory.model import Inventory, Store, Task
from agent.inventory.sessions import stored_offset
from agent.layout.checkpoint import UNKNOWN_OFFSET


class Relation(StrEnum):
    """What a comparison of two copies says."""

    SAME = "same"
    ONLY_A = "only in A"
    ONLY_B = "only in B"
    AHEAD_A = "A is ahead"
    AHEAD_B = "B is ahead"
    DIVERGED = "diverged"
    DIFFERENT = "different"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy of a store."""

    identities: frozenset[str]  # RocksDB identities, one per segment
    offset: int | None
    """Changelog offset that checkpoint or store claims; -4 = it claims that none is known; None = none."""
    puts: int  # writes that reached the disk in this incarnation
    entries_low: int | None  # lower bound of live entries; None = not known
    entries_high: int | None  # upper bound
    size_bytes: int  # live SST bytes
    problems: tuple[str, ...] = ()  # what of it could not be read; empty = all was


@dataclass(frozen=True, slots=True)
class Difference:
    """One store in both directories."""

    application: str
    task: str
    store: str
    a: Copy | None
    b: Copy | None
    relation: Relation
    why: str


def compare(a: Inventory, b: Inventory) -> Iterator[Difference]:
    """Compare two inventories.

    Gives one row per store of either, by application, task and store.
    """
    left, right = dict(_copies(a)), dict(_copies(b))
    for key in sorted(left.keys() | right.keys()):
        relation, why = _relate(left.get(key), right.get(key))
        yield Difference(*key, left.get(key), right.get(key), relation, why)


def _copies(inventory: Inventory) -> Iterator[tuple[tuple[str, str, str], Copy]]:
    for application in inventory.applications.values():
        for task in application.tasks.values():
            for store in task.stores.values():
                if task.exists and (store.databases or store.remains):
                    yield (application.id, task.id, store.name), _copy(task, store)


def _copy(task: Task, store: Store) -> Copy:
    checkpoint = task.checkpoint
    offset = checkpoint.offsets.get(store.name) if checkpoint else None
    lows = [x.entries_low for x in store.databases.values()]
    highs = [x.entries_high for x in store.databases.values()]
    return Copy(
        store.identities,
        stored_offset(store) if offset is None else offset,
        store.puts,
        None if None in lows else sum(x or 0 for x in lows),
        None if None in highs else sum(x or 0 for x in highs),
        sum(x.size_bytes for x in store.databases.values()),
        (
            *(problem for x in store.databases.values() for problem in x.problems),
            *(f"torn: {x.files} of its data files, and no database" for x in store.remains.values()),
        ),
    )


def _relate(a: Copy | None, b: Copy | None) -> tuple[Relation, str]:
    if a is None or b is None:
        return (Relation.ONLY_B if a is None else Relation.ONLY_A), "the other has no such store"
    if a.problems or b.problems:
        which, problem = ("A", a.problems[0]) if a.problems else ("B", b.problems[0])
        return Relation.UNKNOWN, f"not all of {which} could be read ({problem})"
    if a == b:
        return Relation.SAME, "same incarnation, offset and size"
    if {a.offset, b.offset} & {None, UNKNOWN_OFFSET}:
        return Relation.UNKNOWN, "no offset to compare at"
    if a.offset != b.offset:
        is_a = (a.offset or 0) > (b.offset or 0)
        return (Relation.AHEAD_A if is_a else Relation.AHEAD_B), "different changelog offsets"
    if None in (a.entries_low, a.entries_high, b.entries_low, b.entries_high):
        return Relation.UNKNOWN, "live entries are not known"
    if (a.entries_low or 0) > (b.entries_high or 0) or (b.entries_low or 0) > (a.entries_high or 0):
        return Relation.DIVERGED, "same changelog offset, but the numbers of live entries cannot be equal"
    return Relation.DIFFERENT, "same changelog offset, numbers of live entries may be equal"
