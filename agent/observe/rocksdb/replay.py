"""A manifest, replayed: version edits in order -> which files are live, and how far data was ever flushed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from agent.layout import names
from agent.observe.rocksdb.coding import UnsupportedError
from agent.observe.rocksdb.log_records import End
from agent.observe.rocksdb.version_edit import BlobFile, LiveFile, VersionEdit

GONE_KEPT = 32
"""Files that are no longer live are remembered one by one up to so many, the newest; see `Replay._thin`."""

_MAX_LIVE_FILES = 100_000
_MAX_GROUP = 1_000  # an atomic group has one edit per column family
_MAX_FAMILIES = 256  # ever added; Kafka Streams has three
_FILE_BYTES = 160  # what an edit that adds a file takes on disk
_UNKNOWN_KEPT = 8  # names of parts that are not known


class Origin(StrEnum):
    """How a file came into the manifest."""

    SNAPSHOT = "snapshot"  # it was there when the manifest began
    FLUSH = "flush"  # added by an edit that removed no file
    COMPACTION = "compaction"  # added by an edit that removed its inputs


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that the manifest named at some time, live or not."""

    number: int  # file number
    family_id: int  # its column family
    largest_sequence: int  # highest sequence number in it; 0 = compacted, order unknown
    origin: Origin  # how it came

    @property
    def is_flush(self) -> bool:
        """Whether it brought new data while this manifest was in use."""
        return self.origin is Origin.FLUSH


@dataclass(frozen=True, slots=True)
class ManifestView:
    """What a manifest says."""

    number: int  # number of the manifest
    last_sequence: int  # last sequence number it records (what the writer had given out, flushed or not)
    next_file: int  # next file number it records
    families: tuple[tuple[int, str], ...]  # (id, name) of the column families, by id
    live: tuple[LiveFile, ...]  # live files, by number
    # files it named, in the order of appearance, each once: every live one, and of the others those that decide (see
    # `GONE_KEPT`)
    new_files: tuple[NewFile, ...]
    flushed_sequence: int  # highest sequence number among all files of the data families that it ever named
    snapshot_sequence: int  # the same for the files that were there when the manifest began
    # last sequence number that had been given out when a process opened the database and began the manifest: all up
    # to it is on disk or gone, and what is written since is above it (Kafka Streams writes without a log; what
    # RocksDB recovers from one is above it, too). None = this manifest was not started by an open, or does not say.
    opened_sequence: int | None = None
    # it began with a data file without sequence numbers: a compaction into the last level sets all of them to 0, so
    # `snapshot_sequence` says too little
    has_zeroed: bool = False
    ending: End = End.WHOLE  # how it ends
    read_to: int = 0  # offset behind the last record that counts
    used_families: frozenset[int] = frozenset()  # ids of the column families of which it ever named a file
    blobs: tuple[BlobFile, ...] = ()  # live blob files, by number
    # what IDENTITY should say, where the manifest says it, too (RocksDB 9 and later); None = it does not
    database_id: str | None = None
    # parts of a later RocksDB, which itself lets an older one pass over them: what they say is not known
    unknown: tuple[str, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """Names of all live files."""
        return frozenset(x.name for x in self.live) | {x.name for x in self.blobs}

    @property
    def torn(self) -> bool:
        """Whether its end is cut off, damaged or not understood: what came later is unknown."""
        return self.ending is not End.WHOLE

    @property
    def problem(self) -> str | None:
        """What is wrong with it, as `KIND: sentence`; None = it was read whole."""
        said = _ENDINGS.get(self.ending)
        return None if said is None else f"{manifest_name(self.number)}: {said} at byte {self.read_to}"

    @property
    def families_in_use(self) -> tuple[str, ...]:
        """Names of the column families that have files or had some since the manifest began, by id."""
        return tuple(name for family_id, name in self.families if family_id in self.used_families)

    @property
    def offsets_family_id(self) -> int | None:
        """Id of the `offsets` family; None if the store has none (before 4.3)."""
        return next((family_id for family_id, name in self.families if name == names.OFFSETS_FAMILY), None)

    @property
    def data_files(self) -> tuple[NewFile, ...]:
        """Those of `new_files` that hold data of the application."""
        offsets_id = self.offsets_family_id
        return tuple([one for one in self.new_files if one.family_id != offsets_id])


_ENDINGS = {
    End.CUT: "cut: it ends inside the record",
    End.CORRUPT: "corrupt: no sound record",
    End.UNSUPPORTED: "unsupported: a record of an unknown form",
}


def manifest_name(number: int) -> str:
    """Name the manifest of this number."""
    return f"MANIFEST-{number:06d}"


class Replay:
    """Applies version edits in order."""

    def __init__(self) -> None:
        self._families = {0: "default"}  # never written down, always there
        self._live: dict[int, LiveFile] = {}
        self._named: dict[int, NewFile] = {}
        self._gone_most = 2 * GONE_KEPT
        self._flushed: dict[int, int] = {}  # family -> highest sequence number
        self._in_first: dict[int, int] = {}  # the same of the files that were there when the manifest began
        self._zeroed: set[int] = set()  # families
        self._opened: int | None = None
        self._group: list[VersionEdit] = []
        self._files_in_group = 0
        self._families_added = 0
        self._last_sequence = 0
        self._next_file = 0
        self._in_snapshot = True
        self._blobs: dict[int, BlobFile] = {}
        self._blobs_most = 2 * GONE_KEPT
        self._database_id: str | None = None
        self._unknown: set[str] = set()

    @property
    def size_bytes(self) -> int:
        """What its files would take in a manifest: a measure of the memory."""
        return _FILE_BYTES * (len(self._named) + len(self._blobs))

    def apply(self, edit: VersionEdit) -> None:
        """Apply an edit; UnsupportedError for more files or families than any store has."""
        if (
            len(self._live) + len(self._blobs) + self._files_in_group > _MAX_LIVE_FILES
            or len(self._group) > _MAX_GROUP
        ):
            raise UnsupportedError("manifest names too many files")
        if edit.group_left is None:
            self._apply((edit,))
            return
        self._group.append(edit)
        self._files_in_group += (
            len(edit.added) + len(edit.deleted) + len(edit.blobs) + len(edit.blobs_dropped)
        )
        if edit.group_left == 0:
            group, self._group, self._files_in_group = self._group, [], 0
            self._apply(group)

    def _apply(self, edits: Iterable[VersionEdit]) -> None:
        for edit in edits:
            if edit.next_file is not None:
                # The snapshot that a manifest begins with carries no next file number, every later edit does.
                if self._in_snapshot and not edit.added and not edit.deleted:
                    # An open. Where the first flush or compaction begins the manifest (RocksDB 5.14 and 5.15, or
                    # one that grew too long), its last sequence number counts what is still in memory.
                    self._opened = edit.last_sequence
                self._in_snapshot = False
                self._next_file = max(self._next_file, edit.next_file)
            if edit.last_sequence is not None:
                self._last_sequence = max(self._last_sequence, edit.last_sequence)
            if edit.family_added is not None:
                self._add_family(edit.family_id, edit.family_added)
            self._database_id = edit.database_id or self._database_id
            if len(self._unknown) < _UNKNOWN_KEPT:
                self._unknown |= edit.unknown
            self._change_files(edit)
            if edit.family_dropped and self._families.pop(edit.family_id, None) is not None:
                self._live = {n: one for n, one in self._live.items() if one.family_id != edit.family_id}
        if len(self._blobs) > self._blobs_most:
            self._drop_blobs()
            self._blobs_most = 2 * max(GONE_KEPT, len(self._blobs))

    def _add_family(self, family_id: int, name: str) -> None:
        self._families_added += 1
        if self._families_added > _MAX_FAMILIES:
            raise UnsupportedError("manifest adds too many column families")
        self._families[family_id] = name

    def _change_files(self, edit: VersionEdit) -> None:
        for _, number in edit.deleted:
            self._live.pop(number, None)
        origin = Origin.COMPACTION if edit.deleted else Origin.FLUSH
        for one in edit.added:
            self._live[one.number] = one
            if one.number not in self._named:
                self._name(one, Origin.SNAPSHOT if self._in_snapshot else origin)
        for blob in edit.blobs:
            self._blobs[blob.number] = blob
        for number, values in edit.blobs_dropped:
            if (held := self._blobs.get(number)) is not None:
                self._blobs[number] = replace(held, dropped=held.dropped + values)
        if len(self._named) - len(self._live) > self._gone_most:
            self._thin()

    def _drop_blobs(self) -> None:
        """Forget blob files that no SST file needs; RocksDB names none that it drops.

        Source:
            VersionBuilder::SaveBlobFilesTo (6.18 to 11.9): of a family it keeps those from the oldest one on that an
            SST file refers to, without those whose values are all dropped.
        """
        if not self._blobs:
            return
        oldest: dict[int, int] = {}  # family -> number
        for one in self._live.values():
            if one.oldest_blob:
                oldest[one.family_id] = min(one.oldest_blob, oldest.get(one.family_id, one.oldest_blob))
        self._blobs = {
            number: blob
            for number, blob in self._blobs.items()
            if oldest.get(blob.family_id, number + 1) <= number and blob.dropped < blob.values
        }

    def _name(self, one: LiveFile, origin: Origin) -> None:
        family_id, sequence = one.family_id, one.largest_sequence
        self._named[one.number] = NewFile(one.number, family_id, sequence, origin)
        self._flushed[family_id] = max(sequence, self._flushed.get(family_id, 0))
        if origin is Origin.SNAPSHOT:
            self._in_first[family_id] = max(sequence, self._in_first.get(family_id, 0))
            if not sequence:
                self._zeroed.add(family_id)

    def _thin(self) -> None:
        """Forget files that are gone and say nothing: a manifest of weeks names millions.

        When a file that is gone was written is unknown. The earliest possible time is taken, which is that of the
        next one below it that is live: of all that lie between the same two, the highest says everything.
        """
        recent = set(list(self._named)[-GONE_KEPT:])
        newest = max((one.number for one in self._named.values() if one.is_flush), default=0)
        kept = recent | {newest} | self._live.keys()
        ordered = sorted(self._named.values(), key=lambda one: (one.largest_sequence, one.number))
        offsets = self._offsets_families()
        for same in ([x for x in ordered if (x.family_id in offsets) is which] for which in (False, True)):
            for one, following in pairwise(same):
                if one.number not in kept and following.number not in kept:
                    del self._named[one.number]
        self._gone_most = len(self._named) - len(self._live) + max(GONE_KEPT, len(self._live) // 4)

    def _offsets_families(self) -> set[int]:
        return {family_id for family_id, name in self._families.items() if name == names.OFFSETS_FAMILY}

    def view(self, number: int, ending: End, read_to: int) -> ManifestView:
        """Return what was replayed so far."""
        if ending in (End.WHOLE, End.CUT):
            if self._in_snapshot:  # RocksDB refuses a manifest without the edit that follows it
                ending = End.CORRUPT
            elif self._group:  # an atomic group of edits is incomplete: none of it counts
                ending = End.CUT
        self._drop_blobs()
        offsets = self._offsets_families()
        return ManifestView(
            number=number,
            last_sequence=self._last_sequence,
            next_file=self._next_file,
            families=tuple(sorted(self._families.items())),
            live=tuple(self._live[key] for key in sorted(self._live)),
            new_files=tuple(self._named.values()),
            flushed_sequence=max((x for f, x in self._flushed.items() if f not in offsets), default=0),
            snapshot_sequence=max((x for f, x in self._in_first.items() if f not in offsets), default=0),
            opened_sequence=self._opened,
            used_families=frozenset(self._flushed),
            has_zeroed=bool(self._zeroed - offsets),
            ending=ending,
            read_to=read_to,
            blobs=tuple(self._blobs[key] for key in sorted(self._blobs)),
            database_id=self._database_id,
            unknown=tuple(sorted(self._unknown)),
        )
