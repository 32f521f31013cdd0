"""What a database has on disk of a time of which its manifest knows nothing: an older backup was put over it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent.inventory.disk import EntryKind, Files, FileStat, Unseen
from agent.layout import names
from agent.observe.rocksdb.coding import DamagedError, MeteredDisk, UnseenError, UnsupportedError
from agent.observe.rocksdb.manifest import parse_manifest
from agent.observe.rocksdb.replay import ManifestView, manifest_name
from agent.observe.rocksdb.sst import open_table

MOST_OPENED = 16
"""Open no more SST files that a manifest does not name, the newest: the flushes of a close are its last files but for
what a compaction finished meanwhile. With `MOST_BYTES` that bounds what a directory full of them can cost."""

MOST_BYTES = 1 << 20
"""Read no more of them, all together; footer and properties of one take 4 KB."""


def later_file(
    disk: Files, database: str, found: Sequence[str], view: ManifestView, opened_us: int
) -> tuple[int, str] | None:
    """Find the oldest file (mtime, name) that RocksDB finished after the last change of the manifest, unknown to it.

    Either an SST file of a number that the manifest had not given out: one that a flush made, because what a cancelled
    or killed compaction leaves says nothing. Or a manifest of a higher number that names more data, unless the database
    was opened after it (`opened_us`): an open keeps what a killed one left. Where no name in `found` has such a number,
    nothing is read.

    Source:
        VersionSet::ProcessManifestWrites: an edit carries the next file number, from which a new manifest has its own.
        MemTableList::TryInstallMemtableFlushResults (5.14: InstallMemtableFlushResults) names files of flushes in
        order, DBImpl::WaitForFlushMemTables returns after that. DBImpl::PurgeObsoleteFiles (5.7 to 10.1), at an open,
        deletes SST files that the manifest does not name, and keeps higher manifests.
    """
    if view.torn:
        return None  # what its lost end named cannot be known
    manifests = [x for x in found if _number(names.MANIFEST_FILE, x) > view.number]
    tables = [x for x in found if _number(names.SST_FILE, x) >= view.next_file]
    if not manifests and not tables:
        return None
    known = disk.stat(f"{database}/{manifest_name(view.number)}")
    if not isinstance(known, FileStat):
        return None
    metered = MeteredDisk(disk, MOST_BYTES)
    newest = sorted(tables, key=lambda x: _number(names.SST_FILE, x))[-MOST_OPENED:]
    later = []
    for name in (*manifests, *newest):
        path = f"{database}/{name}"
        stat = disk.stat(path)
        if (
            not isinstance(stat, FileStat)
            or stat.kind is not EntryKind.FILE
            or stat.mtime_us <= known.mtime_us
        ):
            continue
        if name in newest:
            counts = _is_flushed(metered, path, stat.size_bytes)
        else:
            counts = stat.mtime_us > opened_us and _knows_more(metered, path, view)
        if counts:
            later.append((stat.mtime_us, name))
    return min(later, default=None)


def _number(pattern: re.Pattern[str], name: str) -> int:
    match = pattern.fullmatch(name)
    return int(match[1]) if match else -1


def _knows_more(disk: Files, path: str, view: ManifestView) -> bool:
    content = disk.read_at(path, 0, MOST_BYTES)
    return (
        not isinstance(content, Unseen)
        and parse_manifest(content, view.number).flushed_sequence > view.flushed_sequence
    )


def _is_flushed(disk: Files, path: str, size_bytes: int) -> bool:
    try:
        return open_table(disk, path, size_bytes).properties.is_flushed
    except (DamagedError, UnsupportedError, UnseenError):
        return False  # cut off, as a kill leaves it
