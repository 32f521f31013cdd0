"""One database, read as a whole: manifest, counters of its SST files, entries of its `offsets` family."""

from __future__ import annotations

from dataclasses import dataclass

from agent.inventory.disk import Disk, EntryKind, Unseen
from agent.layout import names
from agent.layout.rocksdb_text import MAX_LOG_HEAD_BYTES, other_paths
from agent.observe.rocksdb.cache import FileContent, SstCache
from agent.observe.rocksdb.coding import DamagedError, RefusedError, UnsupportedError
from agent.observe.rocksdb.intervals import EntryInterval, live_entries, newest_first
from agent.observe.rocksdb.manifest import ManifestCache, read_manifest
from agent.observe.rocksdb.offsets import OffsetsFacts, OffsetsRecord, decode_records, summarize
from agent.observe.rocksdb.properties import Properties
from agent.observe.rocksdb.reading import MeteredDisk, Unread
from agent.observe.rocksdb.replay import ManifestView, manifest_name
from agent.observe.rocksdb.sst import UnseenError, open_table, read_entries
from agent.observe.rocksdb.version_edit import LiveFile

MAX_FILES = 10_000
"""Read no more SST files of one database."""

MAX_READ_BYTES = 64 << 20
"""Read no more during one reading of a database, all tries together (each read counts 512 bytes on top)."""
MAX_RECORDS = 40_000
"""Keep no more entries of one `offsets` family; a store has one per changelog partition and file."""

_TRIES = 5
_ELSEWHERE = "elsewhere: it is on another path of the database (db_paths, cf_paths)"


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A live SST file.

    Args of the dataclass:
        file: What the manifest says of it.
        mtime_us: When it was written, microseconds since the epoch; None = not seen.
        properties: Its counters; None = not read, `problem` says why.
        is_verified: Whether the checksums of what was read were compared.
        problem: `corrupt: ...`, `unsupported: ...`, `elsewhere: ...` or why it was not seen; None = all well.
    """

    file: LiveFile
    mtime_us: int | None = None
    properties: Properties | None = None
    is_verified: bool = True
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """What a database has on disk.

    Sums and the interval are of the data families (all but `offsets`) and None if a file's counters are not known.

    Args of the dataclass:
        manifest: The manifest.
        files: Its live files, those of the `offsets` family included, by number.
        entries: Entries, deletions included.
        deletions: Deletions.
        raw_key_bytes: Size of all keys.
        raw_value_bytes: Size of all values.
        live: Bounds of the number of live entries.
        offsets: The `offsets` family; None = the store has none (before 4.3).
        missing_files: Files that a stable manifest names and that are not there.
    """

    manifest: ManifestView
    files: tuple[FileFacts, ...]
    entries: int | None
    deletions: int | None
    raw_key_bytes: int | None
    raw_value_bytes: int | None
    live: EntryInterval | None
    offsets: OffsetsFacts | None
    missing_files: tuple[int, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that could not be read, `FILE: KIND: sentence` each: manifest, files, entries of `offsets`."""
        said = [self.manifest.problem] if self.manifest.problem else []
        said += [f"{sst_name(one.file.number)}: {one.problem}" for one in self.files if one.problem]
        if self.offsets is not None:  # those of its files are among the above
            said += [f"offsets: unsupported: {x}" for x in self.offsets.problems if x.startswith("entry ")]
        return tuple(said)


def sst_name(number: int) -> str:
    """Name the SST file of this number."""
    return f"{number:06d}.sst"


def read_store(
    disk: Disk,
    database: str,
    cache: SstCache | None = None,
    manifests: ManifestCache | None = None,
    *,
    with_counters: bool = True,
) -> StoreFacts | Unread:
    """Read a database.

    A file that is gone is normal beside a compaction: then everything begins again with the manifest. It is
    reported as missing only when the manifest, read again afterwards, still names it.

    Args:
        disk: What to read.
        database: Directory of the store or segment.
        cache: Remembers files from one call to the next.
        manifests: Remembers manifests from one call to the next.
        with_counters: Read the properties of data files, too; without, only the `offsets` family is read.

    Returns:
        The facts; Unseen.RACED as the reason if files kept vanishing, or what `read_manifest` says.

    Cost:
        Manifest, then one stat per file, and three small reads of each file that the cache does not know. Never
        more than `MAX_READ_BYTES`: what is left then is `too-large`.
    """
    cache = SstCache() if cache is None else cache
    disk = MeteredDisk(disk, MAX_READ_BYTES)
    view = read_manifest(disk, database, manifests)
    for _ in range(_TRIES):
        if isinstance(view, Unread):
            return view
        if len(view.live) > MAX_FILES:
            return Unread(
                Unseen.TOO_LARGE, f"{manifest_name(view.number)}: {Unseen.TOO_LARGE}: too many files"
            )
        reader = _Reader(disk, database, cache, view, with_counters=with_counters)
        reader.read()
        if not reader.gone:
            return reader.facts(())
        view = read_manifest(disk, database, manifests)
        if isinstance(view, ManifestView) and not view.torn:
            still_named = {file.number for file in view.live}
            if reader.gone <= still_named:
                return reader.facts(tuple(sorted(reader.gone)))
        elif isinstance(view, ManifestView):
            # what the lost end of the manifest removed cannot be known
            return reader.facts(())
    return Unread(Unseen.RACED)


class _Reader:
    """One walk over the live files of one manifest."""

    def __init__(
        self, disk: Disk, database: str, cache: SstCache, view: ManifestView, *, with_counters: bool
    ) -> None:
        self._disk = disk
        self._database = database
        self._cache = cache
        self._view = view
        self._with_counters = with_counters
        self._files: dict[int, FileFacts] = {}
        self._records: list[OffsetsRecord] = []
        self.gone: set[int] = set()

    def read(self) -> None:
        """Read every file that is asked for."""
        offsets_id = self._view.offsets_family_id
        for file in newest_first(self._view.live):
            if file.family_id == offsets_id or self._with_counters:
                self._read_file(file, is_offsets=file.family_id == offsets_id)
            else:
                self._files[file.number] = FileFacts(file)

    def _read_file(self, file: LiveFile, *, is_offsets: bool) -> None:
        if file.path_id:
            self._files[file.number] = FileFacts(file, problem=_ELSEWHERE)
            return
        path = f"{self._database}/{sst_name(file.number)}"
        stat = self._disk.stat(path)
        if isinstance(stat, Unseen):
            self._unseen(file, stat)
            return
        if stat.kind is not EntryKind.FILE:
            self._files[file.number] = FileFacts(file, problem=f"unsupported: a {stat.kind}, not followed")
            return
        if stat.size_bytes != file.size_bytes:
            problem = f"corrupt: file of {stat.size_bytes} bytes, the manifest says {file.size_bytes}"
            self._files[file.number] = FileFacts(file, stat.mtime_us, problem=problem)
            return
        key = (path, stat.inode, stat.size_bytes, stat.mtime_us)
        content = self._cache.get(key)
        if content is None:
            try:
                with self._disk.stay_on(path):
                    content = _read_file(self._disk, path, file, is_offsets=is_offsets)
            except UnseenError as error:
                self._unseen(file, error.unseen)
                return
            if not (content.problem or "").startswith("corrupt"):
                self._cache.put(key, content)  # what is damaged is read again: a volume may come to itself
        self._files[file.number] = FileFacts(
            file,
            stat.mtime_us,
            content.properties,
            content.is_verified,
            content.problem or self._keep(content),
        )

    def _keep(self, content: FileContent) -> str | None:
        """Take a file's records over; the problem if there are too many."""
        if len(self._records) + len(content.records) > MAX_RECORDS:
            return "unsupported: too many entries in `offsets`"
        self._records += content.records
        return None

    def _unseen(self, file: LiveFile, unseen: Unseen) -> None:
        if unseen is Unseen.VANISHED:
            self.gone.add(file.number)
        self._files[file.number] = FileFacts(file, problem=unseen.value)

    def _move_elsewhere(self) -> bool:
        """Take files of which none is here for what LOG says: RocksDB looks for them on other paths."""
        if any(one.mtime_us is not None for one in self._files.values()):
            return False
        log = self._disk.read_at(f"{self._database}/{names.INFO_LOG_FILE}", 0, MAX_LOG_HEAD_BYTES)
        paths = () if isinstance(log, Unseen) else other_paths(log, self._database)
        for number in self.gone if paths else ():
            problem = f"elsewhere: LOG says that it is in {' or '.join(paths)} (db_paths)"
            self._files[number] = FileFacts(self._files[number].file, problem=problem)
        return bool(paths)

    def facts(self, missing: tuple[int, ...]) -> StoreFacts:
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
            entries=sum(one.entries for one in known) if is_complete else None,
            deletions=sum(one.deletions for one in known) if is_complete else None,
            raw_key_bytes=sum(one.raw_key_bytes for one in known) if is_complete else None,
            raw_value_bytes=sum(one.raw_value_bytes for one in known) if is_complete else None,
            live=_live(data) if is_complete else None,
            offsets=None if offsets_id is None else self._offsets(files, offsets_id),
            missing_files=missing,
        )

    def _offsets(self, files: tuple[FileFacts, ...], offsets_id: int) -> OffsetsFacts:
        problems = [
            f"{sst_name(one.file.number)}: {one.problem}"
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


def _read_file(disk: Disk, path: str, file: LiveFile, *, is_offsets: bool) -> FileContent:
    try:
        table = open_table(disk, path, file.size_bytes)
        if not is_offsets:
            return FileContent(table.properties, is_verified=table.is_verified)
        if table.properties.range_deletions:
            return FileContent(table.properties, problem="unsupported: deletions of key ranges")
        records = tuple(decode_records(read_entries(disk, table), file.number))
    except RefusedError as error:
        return FileContent(problem=f"corrupt: {error}")
    except (DamagedError, UnsupportedError) as error:
        return FileContent(problem=f"unsupported: {error}")
    return FileContent(table.properties, records, table.is_verified)
