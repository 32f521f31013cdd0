"""A store's digest (`agent.contract.buckets`), made of a view of it and of nothing else: no broker is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from agent.contract import buckets as contract
from agent.contract.buckets import StoreDigest, StoreState
from agent.errors import LayoutError
from agent.inventory.disk import Disk, LockState, Unseen
from agent.layout import names
from agent.layout.rocksdb_text import MAX_IDENTITY_BYTES, parse_identity
from agent.observe.rocksdb.coding import Unread
from agent.observe.rocksdb.replay import ManifestView
from agent.observe.rocksdb.store import StoreFacts, read_store
from agent.verify.buckets import Buckets
from agent.verify.kinds import STORE_KINDS, Kind, is_index, record_key, record_value
from agent.verify.places import Store
from agent.verify.shape import kind_of_one, kind_of_segments, times_of_disk
from agent.verify.stores import Database, Opened
from agent.verify.versions import split_key

PAUSE_EVERY = 1_000
"""Entries between two pauses: some milliseconds of work."""


def digest_store(
    store: Store,
    kinds: Mapping[str, Kind],
    now_us: int,
    disk: Disk,
    work: Path,
    number: int,
    pause: Callable[[], None] = lambda: None,
) -> StoreDigest:
    """Digest one store; nothing is written into its directory.

    `kinds`: store -> kind, where it cannot be known. `now_us`: when it is made, microseconds since the epoch. `disk`:
    the state directory. `work`: private directory for the views. `number`: buckets of each database. `pause`: called
    again and again: rests, or ends it.

    Raises `UsageError`: the store cannot be read. Raises `LayoutError`: its form is not known. Raises `OverflowError`:
    a bucket has too many entries to be packed.
    """
    with ExitStack() as stack:
        return _Reading(store, disk, work, stack, pause).digest(kinds, now_us, number)


class _Reading:
    """One reading; the order matters: offsets first, then files."""

    def __init__(
        self, store: Store, disk: Disk, work: Path, stack: ExitStack, pause: Callable[[], None]
    ) -> None:
        self._store = store
        self._pause = pause
        self._disk = disk
        self._checkpoint_us = self._written_us(f"{self._task()}/{names.CHECKPOINT_FILE}")
        self._facts = {segment: self._read(path) for segment, path in store.databases.items()}
        self._identities = {segment: self._identity(path) for segment, path in store.databases.items()}
        self._opened = Opened(store, work, stack)
        self._moved = {
            segment for segment, path in store.databases.items() if self._has_moved(segment, self._read(path))
        }
        self._locks = {self._lock(path) for path in store.databases.values()}

    def digest(self, kinds: Mapping[str, Kind], now_us: int, number: int) -> StoreDigest:
        """Count all entries."""
        store = self._store
        topic = self._opened.topic() or store.changelog
        kind = kinds.get(store.name) or self._kind()
        databases = tuple(
            self._database(segment, kind, topic, number) for segment in sorted(self._opened.databases)
        )
        return StoreDigest(
            application_id=store.application,
            task_id=store.task,
            store=store.name,
            kind=STORE_KINDS[kind],
            state=self._state(all(one.is_exact for one in databases)),
            topic=topic,
            partition=store.partition,
            offset=self._opened.rest(topic),
            made_us=now_us,
            buckets=number,
            databases=databases,
        )

    def _database(self, segment: int, kind: Kind, topic: str, number: int) -> contract.Database:
        counted = Buckets(number)
        for count, (key, value) in enumerate(_records(self._opened.databases[segment], kind), 1):
            counted.add(key, value)
            if not count % PAUSE_EVERY:
                self._pause()
        self._pause()
        offset = self._opened.offset(topic, segment)
        return contract.Database(
            segment_ms=segment if kind.is_segmented else None,
            offset=offset,
            is_exact=offset is not None and self._is_exact(segment, topic),
            written_us=int(self._opened.written_s[segment] * 1e6),
            entries=counted.entries,
            packed=contract.pack(counted.rows()),
            identity=self._identities[segment],
        )

    # ------------------------------------------------------------------------------------------ what it says

    def _is_exact(self, segment: int, topic: str) -> bool:
        """Return whether nothing was flushed behind the offset."""
        facts = self._facts[segment]
        if segment in self._moved or not isinstance(facts, StoreFacts) or facts.problems:
            return False
        if self._opened.claims[segment] is None:
            # up to 4.2 all is flushed, then `.checkpoint` is written; up to 2.5 the offset is one less than it might be
            written_us = self._opened.written_s[segment] * 1e6
            return self._store.has_process_file and written_us <= self._checkpoint_us
        wanted = f"{topic}-{self._store.partition}"
        found = [] if facts.offsets is None else [x for name, x in facts.offsets.offsets if name == wanted]
        return bool(found) and _is_offset_last(facts.manifest, found[0].sequence)

    def _state(self, is_exact: bool) -> StoreState:
        if LockState.HELD in self._locks:
            return StoreState.OPEN
        return StoreState.CLOSED if is_exact and self._opened.databases else StoreState.KILLED

    def _kind(self) -> Kind:
        samples = self._opened.samples()
        if self._store.database:
            return kind_of_one([x for _, x in samples])
        if not samples:
            raise LayoutError("it has no entry that shows its kind: give --kind")
        times = times_of_disk(self._opened.databases)  # the retention is not known
        return kind_of_segments(samples, [], times)

    # -------------------------------------------------------------------------------------------- the disk

    def _task(self) -> str:
        return f"{self._store.application}/{self._store.task}"

    def _path(self, path: Path) -> str:
        return f"{self._task()}/{path.relative_to(self._store.directory)}"

    def _read(self, path: Path) -> StoreFacts | Unread:
        return read_store(self._disk, self._path(path), with_counters=False)

    def _has_moved(self, segment: int, now: StoreFacts | Unread) -> bool:
        before = self._facts[segment]
        if isinstance(before, Unread) or isinstance(now, Unread):
            return True
        return before.manifest != now.manifest

    def _identity(self, path: Path) -> str | None:
        content = self._disk.read_at(f"{self._path(path)}/{names.IDENTITY_FILE}", 0, MAX_IDENTITY_BYTES)
        return None if isinstance(content, Unseen) else parse_identity(content)

    def _written_us(self, path: str) -> int:
        stat = self._disk.stat(path)
        return 0 if isinstance(stat, Unseen) else stat.mtime_us

    def _lock(self, path: Path) -> LockState:
        state = self._disk.lock_state(f"{self._path(path)}/{names.STORE_LOCK_FILE}")
        return LockState.UNKNOWN if isinstance(state, Unseen) else state


def _is_offset_last(manifest: ManifestView, sequence: int) -> bool:
    """Return whether the offset was written after all data (4.3+); sequence 0 = a compaction took its entry's away.

    Source:
        docs/state-format.md#what-the-last-close-wrote: offset, position and status follow the data of a clean close,
        the status alone that of a dirty one.
    """
    opened = manifest.opened_sequence
    if sequence:
        # what a compaction left without a sequence at the open is older than all that came since
        is_above = not manifest.has_zeroed or (opened is not None and sequence > opened)
        return manifest.flushed_sequence < sequence and is_above
    last = max(
        (
            x.largest_sequence
            for x in manifest.new_files
            if x.is_flush and x.family_id == manifest.offsets_family_id
        ),
        default=0,
    )
    return opened is not None and opened < manifest.flushed_sequence < last - 1


def _records(database: Database, kind: Kind) -> Iterator[tuple[bytes, bytes]]:
    """Give key and value of the record behind each entry; of a versioned store the latest version, behind its time."""
    for key, family, value in database.entries():
        if kind is Kind.VERSIONED:
            is_latest, own = split_key(key)
            if is_latest:
                yield own, value
        elif not is_index(kind, key):
            yield record_key(kind, key), record_value(kind, family, value)
