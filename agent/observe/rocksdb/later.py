"""What a database has on disk of a time of which its manifest knows nothing: an older backup was put over it."""

from __future__ import annotations

from collections.abc import Sequence

from agent.inventory.disk import Files, FileStat, Unseen
from agent.layout import names
from agent.observe.rocksdb.coding import DamagedError, MeteredDisk, UnseenError, UnsupportedError
from agent.observe.rocksdb.manifest import BYTES_PER_READING, parse_manifest
from agent.observe.rocksdb.replay import ManifestView, manifest_name
from agent.observe.rocksdb.sst import open_table

MOST_OPENED = 16
"""Open no more such files, those of the highest numbers: the flushes of a close are the last but for what a compaction
finished meanwhile."""

MOST_BYTES = 2 * BYTES_PER_READING
"""Read no more of them, all together; footer and properties of an SST file take 4 KB."""


def later_file(
    disk: Files, database: str, found: Sequence[str], view: ManifestView, opened_us: int
) -> tuple[tuple[int, str] | None, list[str]]:
    """Find the oldest file (mtime, name) that RocksDB finished after the last change of the manifest, unknown to it.

    Also gives what could not be read of such files, as `DatabaseReading.problems` has it.

    Either an SST file of a number that the manifest had not given out: one that a flush made, because what a cancelled
    or killed compaction leaves says nothing. Or a manifest of a higher number that names more data, unless the database
    was opened after it (`opened_us`): an open keeps what a killed one left. Where no name in `found` has such a number,
    nothing is read.

    Source:
        VersionSet::ProcessManifestWrites: every edit carries the next number of all files. DBImpl::FlushMemTable
        waits until MemTableList::TryInstallMemtableFlushResults has named the file. DBImpl::PurgeObsoleteFiles, at an
        open, deletes SST files that the manifest does not name, and keeps higher manifests (5.7 to 10.1).
    """
    patterns = (names.SST_FILE, names.MANIFEST_FILE)
    numbers = {x: int(m[1]) for x in found if (m := patterns[not _is_table(x)].fullmatch(x))}
    higher = [
        x for x, number in numbers.items() if number >= (view.next_file if _is_table(x) else view.number + 1)
    ]
    if view.torn or not higher:  # what a lost end named cannot be known
        return None, []
    current, metered = disk.stat(f"{database}/{manifest_name(view.number)}"), MeteredDisk(disk, MOST_BYTES)
    later: list[tuple[int, str]] = []
    problems: list[str] = []
    for name in sorted(higher, key=numbers.__getitem__)[-MOST_OPENED:]:
        path = f"{database}/{name}"
        stat = disk.stat(path)
        if isinstance(stat, Unseen) or isinstance(current, Unseen) or stat.mtime_us <= current.mtime_us:
            continue
        try:
            if _is_table(name):
                counts = _is_flushed(metered, path, stat)
            else:
                counts = stat.mtime_us > opened_us and _knows_more(metered, path, view)
        except UnseenError as error:
            counts = False
            if error.unseen is not Unseen.VANISHED:
                problems.append(f"{name}: {error.unseen}: the manifest does not name it")
        later += [(stat.mtime_us, name)] if counts else []
    return min(later, default=None), problems


def _is_table(name: str) -> bool:
    return name.endswith(".sst")


def _is_flushed(disk: Files, path: str, stat: FileStat) -> bool:
    try:
        return open_table(disk, path, stat.size_bytes).properties.is_flushed
    except (DamagedError, UnsupportedError):
        return False  # cut off, as a kill leaves it


def _knows_more(disk: Files, path: str, view: ManifestView) -> bool:
    content = disk.read_at(path, 0, BYTES_PER_READING)
    if isinstance(content, Unseen):
        raise UnseenError(content)
    return parse_manifest(content, view.number).flushed_sequence > view.flushed_sequence
