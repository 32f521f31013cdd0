"""The MANIFEST of a database: which SST files are live, and how far data was ever flushed."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from agent.inventory.disk import Disk, FileStat, Unseen
from agent.layout.rocksdb_text import MAX_CURRENT_BYTES, parse_current
from agent.observe.rocksdb.coding import DamagedError
from agent.observe.rocksdb.log_records import LogContent, read_records
from agent.observe.rocksdb.reading import read_whole
from agent.observe.rocksdb.version_edit import LiveFile, VersionEdit, parse_edit

MAX_MANIFEST_BYTES = 8 << 20
"""Read no more than this; a store's manifest has a few KB (RocksDB starts a new one at every open)."""

OFFSETS_FAMILY = "offsets"
"""Column family in which Kafka Streams 4.3+ keeps offsets and status (AbstractColumnFamilyAccessor)."""

CACHED_MANIFESTS = 512
"""Default bound of their number; that of a small store takes 2 KB in memory."""

CACHED_MANIFEST_BYTES = 2 << 20
"""Default bound of their size on disk, all together; in memory they take up to six times that."""

_MAX_NAMED_FILES = 100_000
_MAX_GROUP = 1_000  # an atomic group has one edit per column family
_MAX_FAMILIES = 256  # ever added; Kafka Streams has three
_MAX_NUMBER = (1 << 62) - 1
_TRIES = 5


class Origin(StrEnum):
    """How a file came into the manifest."""

    SNAPSHOT = "snapshot"  # it was there when the manifest began
    FLUSH = "flush"  # added by an edit that removed no file
    COMPACTION = "compaction"  # added by an edit that removed its inputs


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that the manifest named at some time, live or not.

    Args of the dataclass:
        number: File number.
        family_id: Its column family.
        largest_sequence: Highest sequence number in it; 0 = compacted, order unknown.
        origin: How it came.
    """

    number: int
    family_id: int
    largest_sequence: int
    origin: Origin

    @property
    def is_flush(self) -> bool:
        """Whether it brought new data while this manifest was in use."""
        return self.origin is Origin.FLUSH

    @property
    def in_snapshot(self) -> bool:
        """Whether it is older than this manifest."""
        return self.origin is Origin.SNAPSHOT


@dataclass(frozen=True, slots=True)
class ManifestView:
    """What a manifest says.

    Args of the dataclass:
        number: Number of the manifest.
        last_sequence: Last sequence number it records (what the writer had given out, flushed or not).
        next_file: Next file number it records.
        families: (id, name) of the column families, by id.
        live: Live files, by number.
        new_files: Every file it ever named, in the order of appearance, each once.
        flushed_sequence: Highest sequence number among `new_files` of the data families.
        snapshot_sequence: The same for the files that were there when the manifest began.
        torn: Its end is cut off or damaged: what came later is unknown.
    """

    number: int
    last_sequence: int
    next_file: int
    families: tuple[tuple[int, str], ...]
    live: tuple[LiveFile, ...]
    new_files: tuple[NewFile, ...]
    flushed_sequence: int
    snapshot_sequence: int
    torn: bool

    @property
    def offsets_family_id(self) -> int | None:
        """Id of the `offsets` family; None if the store has none (before 4.3)."""
        return next((family_id for family_id, name in self.families if name == OFFSETS_FAMILY), None)

    @property
    def data_files(self) -> tuple[NewFile, ...]:
        """Every file ever named that holds data of the application, in the order of appearance."""
        return tuple(one for one in self.new_files if one.family_id != self.offsets_family_id)


def read_manifest(disk: Disk, database: str, cache: ManifestCache | None = None) -> ManifestView | Unseen:
    """Read the current manifest of a database, whole.

    On RocksDB 5.7 and 5.14 (Kafka Streams 2.0, 2.1) the first flush of a new store shows only in the snapshot
    that the next manifest begins with.

    Args:
        disk: Where to look.
        database: Directory of the store or segment.
        cache: Remembers how far each manifest was replayed, from one call to the next.

    Returns:
        The view; Unseen.RACED if a writer replaced it during every try, Unseen.VANISHED if there is no
        database or `CURRENT` names a manifest that is not there, Unseen.UNREADABLE if `CURRENT` is garbage.
    """
    outcome: ManifestView | Unseen = Unseen.RACED
    named = _current(disk, database)
    for _ in range(_TRIES):
        if isinstance(named, Unseen):
            return named
        previous = outcome
        outcome = _read(disk, database, named, cache)
        before, named = named, _current(disk, database)
        if named != before:
            outcome = Unseen.RACED
        elif not _may_be_unfinished(outcome) or outcome == previous:
            return outcome
    return outcome


def _read(disk: Disk, database: str, number: int, cache: ManifestCache | None) -> ManifestView | Unseen:
    path = f"{database}/MANIFEST-{number:06d}"
    stat = disk.stat(path) if cache is not None else None
    if isinstance(stat, Unseen):
        return stat
    if cache is not None and stat is not None:
        known = cache.same(path, stat)
        if known is not None:
            return known
    content = read_whole(disk, path, MAX_MANIFEST_BYTES)
    if isinstance(content, Unseen):
        return content
    if cache is None or stat is None:
        return parse_manifest(content, number)
    return cache.replay(path, stat, content, number)


def _may_be_unfinished(outcome: ManifestView | Unseen) -> bool:
    """A missing or torn manifest is believed only at a second look: a writer may be at work."""
    return outcome is Unseen.VANISHED or (isinstance(outcome, ManifestView) and outcome.torn)


def parse_manifest(content: bytes, number: int) -> ManifestView:
    """Replay a manifest; total: damage ends the replay and is told by `torn`."""
    return _continue(_Replay(), read_records(content), number)


def _continue(replay: _Replay, log: LogContent, number: int) -> ManifestView:
    torn = log.torn
    for record in log.records:
        try:
            replay.take(parse_edit(record))
        except DamagedError:
            torn = True
            break
    return replay.view(number, torn=torn or replay.is_group_open)


def _current(disk: Disk, database: str) -> int | Unseen:
    content = disk.read_at(f"{database}/CURRENT", 0, MAX_CURRENT_BYTES)
    if isinstance(content, Unseen):
        return content
    number = parse_current(content)
    return Unseen.UNREADABLE if number is None or number > _MAX_NUMBER else number


class _Replay:
    """Applies version edits in order."""

    def __init__(self) -> None:
        self._families = {0: "default"}  # never written down, always there
        self._live: dict[int, LiveFile] = {}
        self._named: dict[int, NewFile] = {}
        self._group: list[VersionEdit] = []
        self._files_in_group = 0
        self._families_added = 0
        self._last_sequence = 0
        self._next_file = 0
        self._in_snapshot = True

    @property
    def is_group_open(self) -> bool:
        """Whether an atomic group of edits is incomplete: none of it counts."""
        return bool(self._group)

    def take(self, edit: VersionEdit) -> None:
        if len(self._named) + self._files_in_group > _MAX_NAMED_FILES or len(self._group) > _MAX_GROUP:
            raise DamagedError("manifest names too many files")
        if edit.group_left is None:
            self._apply((edit,))
            return
        self._group.append(edit)
        self._files_in_group += len(edit.added) + len(edit.deleted)
        if edit.group_left == 0:
            group, self._group, self._files_in_group = self._group, [], 0
            self._apply(group)

    def _apply(self, edits: Iterable[VersionEdit]) -> None:
        for edit in edits:
            if edit.next_file is not None:
                # The snapshot that a manifest begins with carries no next file number, every later edit does.
                self._in_snapshot = False
                self._next_file = max(self._next_file, edit.next_file)
            if edit.last_sequence is not None:
                self._last_sequence = max(self._last_sequence, edit.last_sequence)
            if edit.family_added is not None:
                self._add_family(edit.family_id, edit.family_added)
            self._change_files(edit)
            if edit.family_dropped and self._families.pop(edit.family_id, None) is not None:
                self._live = {n: one for n, one in self._live.items() if one.family_id != edit.family_id}

    def _add_family(self, family_id: int, name: str) -> None:
        self._families_added += 1
        if self._families_added > _MAX_FAMILIES:
            raise DamagedError("manifest adds too many column families")
        self._families[family_id] = name

    def _change_files(self, edit: VersionEdit) -> None:
        for _, number in edit.deleted:
            self._live.pop(number, None)
        origin = Origin.COMPACTION if edit.deleted else Origin.FLUSH
        for one in edit.added:
            self._live[one.number] = one
            self._named.setdefault(
                one.number,
                NewFile(
                    one.number,
                    one.family_id,
                    one.largest_sequence,
                    Origin.SNAPSHOT if self._in_snapshot else origin,
                ),
            )

    def view(self, number: int, *, torn: bool) -> ManifestView:
        named = tuple(self._named.values())
        offsets = {family_id for family_id, name in self._families.items() if name == OFFSETS_FAMILY}
        data = [one for one in named if one.family_id not in offsets]
        return ManifestView(
            number=number,
            last_sequence=self._last_sequence,
            next_file=self._next_file,
            families=tuple(sorted(self._families.items())),
            live=tuple(self._live[key] for key in sorted(self._live)),
            new_files=named,
            flushed_sequence=max((one.largest_sequence for one in data), default=0),
            snapshot_sequence=max((one.largest_sequence for one in data if one.in_snapshot), default=0),
            torn=torn,
        )


@dataclass(slots=True)
class _Replayed:
    """A manifest as far as it was replayed.

    Args of the dataclass:
        stat: What the file was like before it was read; None = something follows the last record, so that it may
            be filled in without growing (a preallocated file that is written through memory).
        end: Offset behind the last record.
        checksum: CRC of everything before: RocksDB only appends, but a store made anew may begin a file of the
            same name, inode and size.
        replay: State after the last record.
        view: What it says.
    """

    stat: FileStat | None
    end: int
    checksum: int
    replay: _Replay
    view: ManifestView


class ManifestCache:
    """A bounded memory of replayed manifests: an unchanged one is not read, a longer one only continued."""

    def __init__(self, limit: int = CACHED_MANIFESTS, limit_bytes: int = CACHED_MANIFEST_BYTES) -> None:
        """Keep at most `limit` manifests of `limit_bytes`; what was not used for longest goes first."""
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._bytes = 0
        self._known: dict[str, _Replayed] = {}

    def __len__(self) -> int:
        """Count the manifests it knows."""
        return len(self._known)

    def same(self, path: str, stat: FileStat) -> ManifestView | None:
        """Look up a file that did not change; None = it did, or is not known."""
        known = self._known.get(path)
        if known is None or known.stat != stat:
            return None
        self._known[path] = self._known.pop(path)
        return known.view

    def replay(self, path: str, stat: FileStat, content: bytes, number: int) -> ManifestView:
        """Replay a file, from where the last call ended if it only grew since then."""
        known = self._forget(path)
        if known is not None and zlib.crc32(memoryview(content)[: known.end]) == known.checksum:
            replay, start = known.replay, known.end
        else:
            replay, start = _Replay(), 0
        log = read_records(content, start)
        view = _continue(replay, log, number)
        if not view.torn:  # what is damaged is read anew the next time
            checksum = zlib.crc32(memoryview(content)[: log.end])
            whole = stat if log.end == len(content) == stat.size_bytes else None
            self._known[path] = _Replayed(whole, log.end, checksum, replay, view)
            self._bytes += log.end
            while len(self._known) > self._limit or self._bytes > self._limit_bytes:
                self._forget(next(iter(self._known)))
        return view

    def _forget(self, path: str) -> _Replayed | None:
        known = self._known.pop(path, None)
        if known is not None:
            self._bytes -= known.end
        return known
