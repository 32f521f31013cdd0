"""`diff`: two state directories side by side, store by store: what each holds of the same changelog."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from agent.cli.offline import reading
from agent.cli.streams import complain
from agent.config import Config
from agent.contract.codec import printable
from agent.contract.exit_codes import answer
from agent.engine.unread import how_much, unread, which
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
        return Relation.UNKNOWN, f"can't read all of {which} ({problem})"
    if a == b:
        return Relation.SAME, "same incarnation, offset and size"
    if {a.offset, b.offset} & {None, UNKNOWN_OFFSET}:
        return Relation.UNKNOWN, "no offset to compare at"
    if a.offset != b.offset:
        is_a = (a.offset or 0) > (b.offset or 0)
        return (Relation.AHEAD_A if is_a else Relation.AHEAD_B), "different changelog offsets"
    if None in (a.entries_low, a.entries_high, b.entries_low, b.entries_high):
        return Relation.UNKNOWN, "live entries unknown"
    if (a.entries_low or 0) > (b.entries_high or 0) or (b.entries_low or 0) > (a.entries_high or 0):
        return Relation.DIVERGED, "same changelog offset, but different numbers of live entries"
    return Relation.DIFFERENT, "same changelog offset, numbers of live entries may be equal"


def diff(a: Path, b: Path, config: Config, *, as_json: bool) -> int:
    """Compare two state directories, or two snapshots of one.

    Raises `UsageError`: one of them is not a readable state directory.
    """
    read = [_read(place, config) for place in (a, b)]
    rows = list(compare(*read))
    for row in rows:
        sys.stdout.write(_json(row) if as_json else _line(row))
    if not rows:
        sys.stdout.write("neither has a store\n")
    is_part = [_complain(place, inventory) for place, inventory in zip((a, b), read, strict=True)]
    said = {row.relation for row in rows}
    undecided = any(is_part) or Relation.UNKNOWN in said
    return answer(found=bool(said - {Relation.SAME, Relation.UNKNOWN}), unread=undecided)


def _complain(directory: Path, inventory: Inventory) -> bool:
    """Say on standard error what of a directory could not be read; return whether there is anything."""
    places = unread(inventory)
    if places:
        complain(printable(f"{directory}: {how_much(inventory, places)}; {which(places)}"))
    return bool(places)


def _read(directory: Path, config: Config) -> Inventory:
    with reading(directory, config) as (pipeline, now_us, _):
        pipeline.scan(now_us)
        pipeline.confirm(now_us)
    return pipeline.inventory


def _json(row: Difference) -> str:
    fields = ("application_id", "task_id", "store", "relation", "why", "a", "b")
    values = (row.application, row.task, row.store, row.relation.value, row.why, _plain(row.a), _plain(row.b))
    return json.dumps(dict(zip(fields, values, strict=True))) + "\n"


def _plain(copy: Copy | None) -> dict[str, object] | None:
    return {**dataclasses.asdict(copy), "identities": sorted(copy.identities)} if copy else None


def _line(row: Difference) -> str:
    place = printable(f"{row.application}/{row.task}/{row.store}")
    indent = " " * 11
    lines = (
        f"{row.relation.value:<11}{place}",
        f"{indent}A {_wording(row.a)}",
        f"{indent}B {_wording(row.b)}",
        indent + row.why,
    )
    return "\n".join(lines) + "\n"


def _wording(copy: Copy | None) -> str:
    if copy is None:
        return "-"
    entries = "?" if copy.entries_low is None else f"{copy.entries_low} to {copy.entries_high}"
    offset = "none" if copy.offset is None else "unknown" if copy.offset == UNKNOWN_OFFSET else copy.offset
    return f"offset {offset}, {copy.puts} puts, {entries} entries, {copy.size_bytes} bytes"
