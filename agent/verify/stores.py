"""Read a view by RocksDB itself. Sole importer of rocksdict."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from agent.errors import LayoutError, UnreadError, UsageError
from agent.layout.names import OFFSETS_FAMILY
from agent.verify.kinds import DATA_FAMILIES
from agent.verify.places import Store
from agent.verify.shape import Entry
from agent.verify.view import View

INSTALL = "pip install 'statewarden[verify]'"
INDEX_CACHE_BYTES = 1 << 20
"""Room for the index of one file of 64 MiB, RocksDB's usual size, twice over."""
CLOSED = 0
"""Status of a database that was closed in order."""
_STATUS = b"status"

SAMPLE = 50
"""Entries of each database, and records of the changelog, by which a store's kind is known."""

OPEN_TRIES = 3
"""A file that came and went between two readings is no reason to give up."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What the `offsets` family of a database says (4.3+)."""

    offsets: dict[str, int]  # `<topic>-<partition>` -> last applied offset
    status: int | None  # 1 = open, `CLOSED`; None = no such entry


class Database:
    """One database, open read-only."""

    def __init__(self, view: View) -> None:
        """Open it. Raises `UsageError`: rocksdict is not installed, or RocksDB cannot open the files."""
        library = load()
        self._library = library
        place = str(view.directory)
        try:
            self.families: tuple[str, ...] = tuple(library.Rdict.list_cf(place, self._options()))
            self._open: Any = library.Rdict(
                place,
                self._options(),
                column_families={name: self._options() for name in self.families},
                access_type=library.AccessType.read_only(),
            )
        except Exception as error:
            raise UnreadError(f"RocksDB cannot open it: {error}") from error
        self.unknown_families = tuple(
            name for name in self.families if name not in DATA_FAMILIES and name != OFFSETS_FAMILY
        )

    def close(self) -> None:
        """Close it."""
        self._open.close()

    def claims(self) -> Claims | None:
        """Read the `offsets` family; None before 4.3, which has none. Raises `UsageError`: it cannot be read."""
        if OFFSETS_FAMILY not in self.families:
            return None
        found, status = {}, None
        for key, value in self._walk(OFFSETS_FAMILY):
            if len(value) != 8 or key == b"position":
                continue
            number = int.from_bytes(value, "big", signed=True)
            if key == _STATUS:
                status = number
            else:
                found[key.decode("utf-8", "surrogateescape")] = number
        return Claims(found, status)

    def entries(self) -> Iterator[tuple[bytes, str, bytes]]:
        """Give key, family and value of every entry of every data family, in the order of keys.

        Raises `UsageError`: a file is damaged: whatever else was read says nothing then.
        """
        walks = [self._named(name) for name in self.families if name in DATA_FAMILIES]
        return heapq.merge(*walks, key=itemgetter(0)) if len(walks) > 1 else iter(walks[0] if walks else ())

    def _named(self, family: str) -> Iterator[tuple[bytes, str, bytes]]:
        for key, value in self._walk(family):
            yield key, family, value

    def _walk(self, family: str) -> Iterator[tuple[bytes, bytes]]:
        """Walk by hand: the library's `items` end without a word where a block is damaged."""
        steps = self._open.get_column_family(family).iter(once(self._library))
        steps.seek_to_first()
        while steps.valid():
            yield steps.key(), steps.value()
            steps.next()
        try:
            steps.status()
        except Exception as error:
            raise UnreadError(f"RocksDB cannot read it: {error}") from error

    def _options(self) -> Any:
        options = self._library.Options(raw_mode=True)
        options.create_if_missing(False)
        options.set_max_open_files(-1)  # every file is opened now, not when its link may lead elsewhere
        bound_memory(self._library, options)
        return options


class Opened:
    """Every database of a store, open until the stack is closed. Offsets are read first, files second.

    Raises:
        UsageError: one cannot be read.
        LayoutError: the form of one is not known.
    """

    def __init__(self, store: Store, work: Path, stack: ExitStack) -> None:
        """Open views of all of them in a private directory."""
        self._store = store
        self.checkpointed = store.checkpointed()
        self.databases: dict[int, Database] = {}
        self.claims: dict[int, Claims | None] = {}
        self.written_s: dict[int, float] = {}
        for segment, path in store.databases.items():
            database, self.written_s[segment] = _open(path, work, stack)
            if database.unknown_families:
                raise LayoutError(f"column family {database.unknown_families[0]}: its form is not known here")
            self.databases[segment] = database
            self.claims[segment] = database.claims()

    def topic(self) -> str | None:
        """Return the changelog that the databases name (4.3+); None = they name none, or several."""
        tail = f"-{self._store.partition}"
        named = {x for one in self.claims.values() if one for x in one.offsets if x.endswith(tail)}
        return named.pop().removesuffix(tail) if len(named) == 1 else None

    def offset(self, topic: str, segment: int | None = None) -> int | None:
        """Return the offset that a database says it has; without one, or up to 4.2, what `.checkpoint` says."""
        partition, claims = self._store.partition, None if segment is None else self.claims[segment]
        if claims is None:
            found = self.checkpointed.get((topic, partition), -1)
        else:
            found = claims.offsets.get(f"{topic}-{partition}", -1)
        return None if found < 0 else found

    def rest(self, topic: str) -> int | None:
        """Return the offset of segments that are not there: what one has behind it was processed for all of them."""
        if not self.databases:
            return self.offset(topic)
        found = (self.offset(topic, segment) for segment in self.databases)
        return max((x for x in found if x is not None), default=None)

    def samples(self) -> list[tuple[int, Entry]]:
        """Return some entries of each database."""
        return [(s, x) for s, one in self.databases.items() for x in islice(one.entries(), SAMPLE)]


def _open(path: Path, work: Path, stack: ExitStack) -> tuple[Database, float]:
    """Open a database; returns when its newest file was written, too."""
    for tries_left in reversed(range(OPEN_TRIES)):
        with ExitStack() as own:
            view = own.enter_context(closing(View(path, work)))
            try:
                database = own.enter_context(closing(Database(view)))
            except UsageError:
                if not tries_left:
                    raise
                continue
            stack.push(own.pop_all())
            return database, view.written_s
    raise AssertionError("the last try returns or raises")


def bound_memory(library: Any, options: Any) -> None:
    """Keep little of a database in memory, whatever its size; walks are to be read with `once`.

    RocksDB keeps the index of every open file, which grows with the store (some MiB for each GiB), unless it belongs to
    the cache: that has room for the index of the file that is being read.
    """
    tables = library.BlockBasedOptions()
    tables.set_block_cache(library.Cache(INDEX_CACHE_BYTES))
    tables.set_cache_index_and_filter_blocks(True)
    options.set_block_based_table_factory(tables)


def once(library: Any) -> Any:
    """Give what a walk from start to end is read with: no block of data is kept."""
    options = library.ReadOptions()
    options.fill_cache(False)
    return options


def load() -> Any:
    """Load rocksdict. Raises `UsageError`: it is not installed."""
    try:
        import rocksdict
    except ImportError as error:
        raise UsageError(f"verify needs rocksdict: {INSTALL} ({error})") from error
    return rocksdict
