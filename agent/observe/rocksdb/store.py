"""One database, read as a whole: manifest, counters of its SST files, entries of its `offsets` family."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from agent.inventory.disk import EntryKind, Files, FileStat, Unseen
from agent.layout import names
from agent.layout.rocksdb_text import MAX_LOG_HEAD_BYTES, other_paths
from agent.observe.rocksdb.cache import FileContent, SstCache
from agent.observe.rocksdb.coding import (
    DamagedError,
    MeteredDisk,
    RefusedError,
    Unread,
    UnseenError,
    UnsupportedError,
)
from agent.observe.rocksdb.manifest import ManifestCache, read_manifest
from agent.observe.rocksdb.offsets import OffsetsFacts, OffsetsRecord, decode_records, summarize
from agent.observe.rocksdb.properties import Properties
from agent.observe.rocksdb.replay import ManifestView, manifest_name
from agent.observe.rocksdb.sst import Table, check_blob_file, open_table, read_entries
from agent.observe.rocksdb.version_edit import BlobFile, LiveFile

MAX_FILES = 10_000
"""Read no more SST files of one database."""

MAX_READ_BYTES = 64 << 20
"""Read no more during one reading of a database, all tries together (each read counts 512 bytes on top)."""
MAX_RECORDS = 40_000
"""Keep no more entries of one `offsets` family; a store has one per changelog partition and file."""

FileT = TypeVar("FileT", LiveFile, BlobFile)

_TRIES = 5
_ELSEWHERE = "elsewhere: it is on another path of the database (db_paths, cf_paths)"


@dataclass(frozen=True, slots=True)
class EntryInterval:
    """Bounds of the number of live entries, both included; memtable content is not counted."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A live SST file."""

    file: LiveFile  # what the manifest says of it
    mtime_us: int | None = None  # when it was written, microseconds since the epoch; None = not seen
    properties: Properties | None = None  # its counters; None = not read, `problem` says why
    # `corrupt: ...`, `unsupported: ...`, `elsewhere: ...` or why it was not seen; None = all well
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """What a database has on disk.

    Deletions and the interval are of the data families (all but `offsets`); None if a file's counters are not known.
    """

    manifest: ManifestView
    files: tuple[FileFacts, ...]  # its live files, those of the `offsets` family included, by number
    deletions: int | None
    live: EntryInterval | None  # bounds of the number of live entries
    offsets: OffsetsFacts | None  # the `offsets` family; None = the store has none (before 4.3)
    missing_files: tuple[str, ...]  # names of files that a stable manifest names and that are not there
    # (name, problem) of blob files that are not as they were written
    blob_problems: tuple[tuple[str, str], ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that could not be read, `FILE: KIND: sentence` each: manifest, files, entries of `offsets`."""
        said = [self.manifest.problem] if self.manifest.problem else []
        if self.manifest.unknown:
            said.append(
                f"{manifest_name(self.manifest.number)}: unsupported: {self.manifest.unknown[0]}, which a later RocksDB"
                " wrote"
            )
        said += [f"{one.file.name}: {one.problem}" for one in self.files if one.problem]
        said += [f"{name}: {problem}" for name, problem in self.blob_problems]
        if self.offsets is not None:  # those of its files are among the above
            said += [f"offsets: unsupported: {x}" for x in self.offsets.problems if x.startswith("entry ")]
        return tuple(said)


def read_store(
    disk: Files,
    database: str,
    cache: SstCache | None = None,
    manifests: ManifestCache | None = None,
    *,
    with_counters: bool = True,
    with_checks: bool = False,
) -> StoreFacts | Unread:
    """Read a database: manifest, then one stat per file, and three small reads of each file that is not cached.

    A file that is gone is normal beside a compaction: then everything begins again with the manifest. It is
    reported as missing only when the manifest, read again afterwards, still names it. Never more than `MAX_READ_BYTES`
    are read: what is left then is `too-large`. Without `with_counters` only the `offsets` family is read; `with_checks`
    as in `open_table`. Unseen.RACED if files kept vanishing.
    """
    cache = SstCache() if cache is None else cache
    disk = MeteredDisk(disk, MAX_READ_BYTES)
    view = read_manifest(disk, database, manifests)
    for _ in range(_TRIES):
        if isinstance(view, Unread):
            return view
        if len(view.live) + len(view.blobs) > MAX_FILES:
            return Unread(
                Unseen.TOO_LARGE, f"{manifest_name(view.number)}: {Unseen.TOO_LARGE}: too many files"
            )
        reader = _Reader(disk, database, cache, view, with_counters, with_checks)
        reader.read()
        if not reader.gone:
            return reader.facts(())
        view = read_manifest(disk, database, manifests)
        if isinstance(view, ManifestView) and not view.torn:
            if reader.gone <= view.names:
                return reader.facts(tuple(sorted(reader.gone)))
        elif isinstance(view, ManifestView):
            # what the lost end of the manifest removed cannot be known
            return reader.facts(())
    return Unread(Unseen.RACED)


@dataclass(slots=True)
class _Reader:
    """One walk over the live files of one manifest."""

    _disk: Files
    _database: str
    _cache: SstCache
    _view: ManifestView
    _with_counters: bool
    _with_checks: bool
    _files: dict[int, FileFacts] = field(default_factory=dict)
    _records: list[OffsetsRecord] = field(default_factory=list)
    _blob_problems: list[tuple[str, str]] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)

    def read(self) -> None:
        """Read every file that is asked for."""
        offsets_id = self._view.offsets_family_id
        for file in newest_first(self._view.live):
            if file.family_id == offsets_id or self._with_counters:
                self._read_file(file, is_offsets=file.family_id == offsets_id)
            else:
                self._files[file.number] = FileFacts(file)
        for blob in self._view.blobs if self._with_counters else ():
            path = f"{self._database}/{blob.name}"
            found = self._stat(blob, path)
            if not isinstance(found, FileStat):
                self._blob_problems.append((blob.name, found))
            elif (content := self._content(blob, path, found, _read_blob)).problem:
                self._blob_problems.append((blob.name, content.problem))

    def _read_file(self, file: LiveFile, *, is_offsets: bool) -> None:
        if file.path_id:
            self._files[file.number] = FileFacts(file, problem=_ELSEWHERE)
            return
        path = f"{self._database}/{file.name}"
        found = self._stat(file, path)
        if not isinstance(found, FileStat):
            self._files[file.number] = FileFacts(file, problem=found)
            return
        content = self._content(file, path, found, _read_offsets if is_offsets else _read_counters)
        problem = content.problem or self._keep(content)
        self._files[file.number] = FileFacts(file, found.mtime_us, content.properties, problem)

    def _keep(self, content: FileContent) -> str | None:
        """Take a file's records over; the problem if there are too many."""
        if len(self._records) + len(content.records) > MAX_RECORDS:
            return "unsupported: too many entries in `offsets`"
        self._records += content.records
        return None

    def _stat(self, file: LiveFile | BlobFile, path: str) -> FileStat | str:
        """Stat a file; the problem if it is not there as it was written."""
        stat = self._disk.stat(path)
        if isinstance(stat, Unseen):
            return self._unseen(file, stat)
        if stat.kind is not EntryKind.FILE:
            return f"unsupported: a {stat.kind}, not followed"
        if stat.size_bytes != file.size_bytes:
            return f"corrupt: file of {stat.size_bytes} bytes, the manifest says {file.size_bytes}"
        return stat

    def _move_elsewhere(self) -> bool:
        """Take files of which none is here for what LOG says: RocksDB looks for them on other paths."""
        if any(one.mtime_us is not None for one in self._files.values()):
            return False
        log = self._disk.read_at(f"{self._database}/{names.INFO_LOG_FILE}", 0, MAX_LOG_HEAD_BYTES)
        paths = () if isinstance(log, Unseen) else other_paths(log, self._database)
        problem = f"elsewhere: LOG says that it is in {' or '.join(paths)} (db_paths)"
        for number, one in self._files.items() if paths else ():
            if one.file.name in self.gone:
                self._files[number] = FileFacts(one.file, problem=problem)
        return bool(paths)

    def _content(
        self, file: FileT, path: str, stat: FileStat, read: Callable[[Files, str, FileT, bool], FileContent]
    ) -> FileContent:
        """Read what the cache does not know."""
        key = (path, stat.inode, stat.size_bytes, stat.mtime_us)
        content = self._cache.get(key)
        if content is not None:
            return content
        try:
            with self._disk.stay_on(path):
                content = read(self._disk, path, file, self._with_checks)
        except UnseenError as error:
            return FileContent(problem=self._unseen(file, error.unseen))
        except RefusedError as error:
            return FileContent(problem=f"corrupt: {error}")  # read again: a volume may come to itself
        except (DamagedError, UnsupportedError) as error:
            content = FileContent(problem=f"unsupported: {error}")
        self._cache.put(key, content)
        return content

    def _unseen(self, file: LiveFile | BlobFile, unseen: Unseen) -> str:
        if unseen is Unseen.VANISHED:
            self.gone.add(file.name)
        return unseen.value

    def facts(self, missing: tuple[str, ...]) -> StoreFacts:
        """Sum up."""
        if missing and self._move_elsewhere():
            missing = ()
        offsets_id = self._view.offsets_family_id
        files = tuple(self._files[number] for number in sorted(self._files))
        data = [one for one in files if one.file.family_id != offsets_id]
        known = [one.properties for one in data if one.properties is not None]
        is_complete = self._with_counters and len(known) == len(data)
        return StoreFacts(
            manifest=self._view,
            files=files,
            deletions=sum(one.deletions for one in known) if is_complete else None,
            live=_live(data) if is_complete else None,
            offsets=None if offsets_id is None else self._offsets(files, offsets_id),
            missing_files=missing,
            blob_problems=tuple(self._blob_problems),
        )

    def _offsets(self, files: tuple[FileFacts, ...], offsets_id: int) -> OffsetsFacts:
        problems = [
            f"{one.file.name}: {one.problem}"
            for one in files
            if one.problem and one.file.family_id == offsets_id
        ]
        return summarize(self._records, problems)


def _live(data: list[FileFacts]) -> EntryInterval | None:
    families: dict[int, list[tuple[LiveFile, Properties]]] = {}
    for one in data:
        if one.properties is not None:
            families.setdefault(one.file.family_id, []).append((one.file, one.properties))
    low = high = 0
    for files in families.values():
        interval = live_entries(files)
        if interval is None:
            return None
        low += interval.low
        high += interval.high
    return EntryInterval(low, high)


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


def _open(disk: Files, path: str, file: LiveFile, with_checks: bool) -> Table:
    """Open an SST file; another file under its name is refused, as RocksDB does since 7.6.

    Source:
        RocksDB db/version_edit_handler.cc and table/block_based_table_reader.cc, "Mismatch in unique ID" (10.1).
    """
    table = open_table(disk, path, file.size_bytes, with_checks=with_checks)
    if file.session and table.properties.session not in (None, file.session):
        raise RefusedError("not the file that the manifest names: another session of RocksDB wrote it")
    return table


def _read_counters(disk: Files, path: str, file: LiveFile, with_checks: bool) -> FileContent:
    return FileContent(_open(disk, path, file, with_checks).properties)


def _read_offsets(disk: Files, path: str, file: LiveFile, with_checks: bool) -> FileContent:
    table = _open(disk, path, file, with_checks)
    if table.properties.range_deletions:
        return FileContent(table.properties, problem="unsupported: deletions of key ranges")
    return FileContent(table.properties, tuple(decode_records(read_entries(disk, table), file.number)))


def _read_blob(disk: Files, path: str, file: BlobFile, with_checks: bool) -> FileContent:
    check_blob_file(disk, path, file)
    return FileContent()
