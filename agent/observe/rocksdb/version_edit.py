"""One record of a MANIFEST -> the version edit in it.

Two tables, `PARTS` and `FILE_FIELDS`, say what of it is read, what is passed over, and why. A part that neither
names is reported. Key ranges of files are keys of the application: they are passed over by length and never read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from agent.layout.rocksdb_text import parse_identity
from agent.observe.rocksdb.coding import Cursor, DamagedError

_IGNORABLE = 1 << 13  # kTagSafeIgnoreMask
_CUSTOM_NOT_IGNORABLE = 1 << 6  # kCustomTagNonSafeIgnoreMask
_MAX_FILES = (
    20_000  # added or deleted by one edit; a store has tens. Keeps a hostile manifest from filling the memory
)
_MAX_NUMBER = (1 << 62) - 1  # kFileNumberMask
_MAX_FILE_BYTES = 1 << 45  # so that sums over all files stay below 2**63, which readers of events rely on
_MAX_LEVEL = 63
_ANY = (1 << 70) - 1
_MAX_SEQUENCE = (1 << 56) - 1  # kMaxSequenceNumber: represents "none"


BLOB_HEADER_BYTES, BLOB_FOOTER_BYTES = 30, 32
"""Around the records of a blob file: BlobLogHeader::kSize, BlobLogFooter::kSize."""


class LiveFile(NamedTuple):
    """An SST file that a manifest names."""

    number: int  # file number; the file is `<number>.sst`, at least six digits
    level: int  # level it is on
    family_id: int  # id of its column family
    size_bytes: int  # size, fixed once written
    smallest_sequence: int  # lowest sequence number in it; 0 after a compaction that forgot the order
    largest_sequence: int  # highest sequence number in it; 0 as above
    # which of the database's paths it is on; 0 = the first one, which is its own directory unless the application
    # chose others (`db_paths`, `cf_paths`)
    path_id: int = 0
    oldest_blob: int = 0  # number of the oldest blob file that holds values of it; 0 = none does
    # session of RocksDB that wrote it, as a number; 0 = the manifest does not say (before 7.3)
    session: int = 0

    @property
    def name(self) -> str:
        """Name in the directory of the database."""
        return f"{self.number:06d}.sst"


@dataclass(frozen=True, slots=True)
class BlobFile:
    """A blob file that a manifest names: values that are too large for an SST file (`enable_blob_files`)."""

    number: int  # file number; the file is `<number>.blob`
    family_id: int  # id of its column family
    values: int  # number of values in it
    size_bytes: int  # size, fixed once written
    dropped: int = 0  # how many of its values no SST file needs any more

    @property
    def name(self) -> str:
        """Name in the directory of the database, which is always the first path."""
        return f"{self.number:06d}.blob"


@dataclass(slots=True)
class VersionEdit:
    """One change of the set of files.

    `deleted` holds (level, number), `blobs_dropped` (number, values); `unknown` names parts that were passed over and
    that no table here names.
    """

    family_id: int = 0
    family_added: str | None = None
    family_dropped: bool = False
    next_file: int | None = None
    last_sequence: int | None = None
    group_left: int | None = None
    added: list[LiveFile] = field(default_factory=list)
    deleted: list[tuple[int, int]] = field(default_factory=list)
    blobs: list[BlobFile] = field(default_factory=list)
    blobs_dropped: list[tuple[int, int]] = field(default_factory=list)
    database_id: str | None = None
    unknown: set[str] = field(default_factory=set)


Reader = Callable[[Cursor, VersionEdit], None]


def parse_edit(record: bytes) -> VersionEdit:
    """Decode one record; DamagedError if it is none, or has a part that must not be ignored and is not known.

    Source:
        RocksDB db/version_edit.h and .cc, 5.7 to 11.9.
    """
    edit = VersionEdit()
    cursor = Cursor(record)
    while cursor.position < cursor.end:
        tag = cursor.varint()
        part = PARTS.get(tag)
        if part is not None:
            part.reader(cursor, edit)
        elif tag & _IGNORABLE:
            cursor.skip_string()
            edit.unknown.add(f"part {tag}")
        else:
            raise DamagedError(f"unknown part {tag} of a version edit")
    if edit.family_id:
        # the family's id follows the files that it applies to
        edit.added = [one._replace(family_id=edit.family_id) for one in edit.added]
        edit.blobs = [replace(one, family_id=edit.family_id) for one in edit.blobs]
    return edit


def _at_most(limit: int, cursor: Cursor) -> int:
    value = cursor.varint()
    if value > limit:
        raise DamagedError(f"number {value} where at most {limit} makes sense")
    return value


def _new_file(
    cursor: Cursor, edit: VersionEdit, *, has_path: bool = False, has_sequences: bool = True
) -> None:
    _require_room(edit.added)
    level, number = _at_most(_MAX_LEVEL, cursor), _at_most(_MAX_NUMBER, cursor)
    path_id = cursor.varint() if has_path else 0
    size_bytes = _at_most(_MAX_FILE_BYTES, cursor)
    cursor.skip_string()  # smallest key
    cursor.skip_string()  # largest key
    smallest, largest = (cursor.varint(), cursor.varint()) if has_sequences else (0, 0)
    if largest >= _MAX_SEQUENCE:
        smallest = largest = 0
    edit.added.append(LiveFile(number, level, 0, size_bytes, min(smallest, largest), largest, path_id))


def _require_room(named: list[Any]) -> None:
    if len(named) >= _MAX_FILES:
        raise DamagedError("too many files in one version edit")


def _new_file_4(cursor: Cursor, edit: VersionEdit) -> None:
    _new_file(cursor, edit)
    while (tag := cursor.varint()) != 1:  # kTerminate
        known = FILE_FIELDS.get(tag)
        if known is not None and known.reader is not None:
            edit.added[-1] = edit.added[-1]._replace(**known.reader(cursor.string()))
            continue
        if known is None and tag & _CUSTOM_NOT_IGNORABLE:
            raise DamagedError(f"unknown field {tag} of a file")
        cursor.skip_string()
        if known is None:
            edit.unknown.add(f"field {tag} of a file")


def _pass_custom_fields(cursor: Cursor, edit: VersionEdit) -> None:
    while (tag := cursor.varint()) != 0:  # kEndMarker
        if tag & _CUSTOM_NOT_IGNORABLE:
            raise DamagedError(f"unknown field {tag} of a blob file")
        cursor.skip_string()
        edit.unknown.add(f"field {tag} of a blob file")


def _deleted_file(cursor: Cursor, edit: VersionEdit) -> None:
    if len(edit.deleted) >= _MAX_FILES:
        raise DamagedError("too many deletions in one version edit")
    edit.deleted.append((cursor.varint(), cursor.varint()))


def _number(name: str, limit: int) -> Reader:
    def read(cursor: Cursor, edit: VersionEdit) -> None:
        setattr(edit, name, _at_most(limit, cursor))

    return read


def _family_add(cursor: Cursor, edit: VersionEdit) -> None:
    edit.family_added = cursor.string().decode("utf-8", "surrogateescape")


def _family_drop(cursor: Cursor, edit: VersionEdit) -> None:
    edit.family_dropped = True


def _database_id(cursor: Cursor, edit: VersionEdit) -> None:
    edit.database_id = parse_identity(cursor.string())


def _blob_file(cursor: Cursor, edit: VersionEdit) -> None:
    _require_room(edit.blobs)
    number, values = _at_most(_MAX_NUMBER, cursor), cursor.varint()
    size_bytes = BLOB_HEADER_BYTES + _at_most(_MAX_FILE_BYTES, cursor) + BLOB_FOOTER_BYTES
    cursor.skip_string()  # method and value of a checksum over the whole file, which is not read
    cursor.skip_string()
    edit.blobs.append(BlobFile(number, 0, values, size_bytes))
    _pass_custom_fields(cursor, edit)


def _blob_garbage(cursor: Cursor, edit: VersionEdit) -> None:
    _require_room(edit.blobs_dropped)
    edit.blobs_dropped.append((cursor.varint(), cursor.varint()))
    cursor.varint()  # their bytes
    _pass_custom_fields(cursor, edit)


def _pass_number(cursor: Cursor, edit: VersionEdit) -> None:
    cursor.varint()


def _pass_string(cursor: Cursor, edit: VersionEdit) -> None:
    cursor.skip_string()


def _pass_cursor(cursor: Cursor, edit: VersionEdit) -> None:
    cursor.varint()  # then a key
    cursor.skip_string()


def _pass_wal_addition(cursor: Cursor, edit: VersionEdit) -> None:
    cursor.varint()
    while (tag := cursor.varint()) != 1:  # WalAdditionTag::kTerminate
        if tag != 2:  # kSyncedSize
            raise DamagedError(f"unknown field {tag} of a WAL")
        cursor.varint()


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a version edit."""

    name: str  # name in RocksDB
    reader: Reader  # reads it, or passes over exactly its length
    why_not: str = ""  # why its content decides nothing; empty = it is read


@dataclass(frozen=True, slots=True)
class FileField:
    """The same of a field of an added file; all of them have a length."""

    name: str
    why_not: str = ""
    reader: Callable[[bytes], dict[str, int]] | None = None  # the field of `LiveFile` that it says


_NO_WAL = "Kafka Streams writes without a log: what a log holds is of no store of it"
_WORK = "where the next compaction goes on, or work that RocksDB does again if it is lost"
_COUNTED = "RocksDB counts on by itself"

PARTS: dict[int, Part] = {
    1: Part("kComparator", _pass_string, "the order of keys, which are not read"),
    2: Part("kLogNumber", _pass_number, _NO_WAL),
    3: Part("kNextFileNumber", _number("next_file", _MAX_NUMBER)),
    4: Part("kLastSequence", _number("last_sequence", _MAX_SEQUENCE)),
    5: Part("kCompactCursor", _pass_cursor, _WORK),
    6: Part("kDeletedFile", _deleted_file),
    7: Part("kNewFile", partial(_new_file, has_path=False, has_sequences=False)),
    9: Part("kPrevLogNumber", _pass_number, _NO_WAL),
    10: Part("kMinLogNumberToKeep", _pass_number, _NO_WAL),
    100: Part("kNewFile2", _new_file),
    102: Part("kNewFile3", partial(_new_file, has_path=True)),
    103: Part("kNewFile4", _new_file_4),
    200: Part("kColumnFamily", _number("family_id", _MAX_NUMBER)),
    201: Part("kColumnFamilyAdd", _family_add),
    202: Part("kColumnFamilyDrop", _family_drop),
    203: Part("kMaxColumnFamily", _pass_number, _COUNTED),
    300: Part("kInAtomicGroup", _number("group_left", _ANY)),
    400: Part("kBlobFileAddition", _blob_file),
    401: Part("kBlobFileGarbage", _blob_garbage),
    _IGNORABLE + 1: Part("kDbId", _database_id),
    # Ignorable by number, but the first releases that wrote these four gave them no length
    # (those before and behind them have one, like any unknown ignorable part).
    _IGNORABLE + 2: Part("kBlobFileAddition_DEPRECATED", _blob_file),
    _IGNORABLE + 3: Part("kBlobFileGarbage_DEPRECATED", _blob_garbage),
    _IGNORABLE + 4: Part("kWalAddition", _pass_wal_addition, _NO_WAL),
    _IGNORABLE + 5: Part("kWalDeletion", _pass_number, _NO_WAL),
    _IGNORABLE + 6: Part("kFullHistoryTsLow", _pass_string, "user-defined timestamps, of keys"),
    _IGNORABLE + 7: Part("kWalAddition2", _pass_string, _NO_WAL),
    _IGNORABLE + 8: Part("kWalDeletion2", _pass_string, _NO_WAL),
    _IGNORABLE + 9: Part("kPersistUserDefinedTimestamps", _pass_string, "user-defined timestamps, of keys"),
    _IGNORABLE + 10: Part("kSubcompactionProgress", _pass_string, _WORK),
    _IGNORABLE + 11: Part("kLastCompactedManifestFileSize", _pass_string, "when the next manifest begins"),
}
"""Everything that RocksDB 5.7 to 11.9 writes into a version edit (`enum Tag`, db/version_edit.h)."""

_IN_FILE = "the properties of the file say it, too"
_OF_KEYS = "a bound of user-defined timestamps, of keys"

FILE_FIELDS: dict[int, FileField] = {
    2: FileField("kNeedCompaction", _WORK),
    3: FileField("kMinLogNumberToKeepHack", _NO_WAL),
    4: FileField("kOldestBlobFileNumber", reader=lambda x: {"oldest_blob": _at_most(_MAX_NUMBER, Cursor(x))}),
    5: FileField("kOldestAncesterTime", _IN_FILE),
    6: FileField("kFileCreationTime", _IN_FILE),
    7: FileField("kFileChecksum", "a checksum over the whole file, which is not read"),
    8: FileField("kFileChecksumFuncName", "a checksum over the whole file, which is not read"),
    9: FileField("kTemperature", "where a file is kept, which RocksDB takes as a hint"),
    10: FileField("kMinTimestamp", _OF_KEYS),
    11: FileField("kMaxTimestamp", _OF_KEYS),
    12: FileField("kUniqueId", reader=lambda x: {"session": int.from_bytes(x[:8], "little")}),
    13: FileField("kEpochNumber", "the order of files of level 0, which numbers show"),
    14: FileField("kCompensatedRangeDeletionSize", _WORK),
    15: FileField("kTailSize", "a hint for reading; the footer says what counts"),
    16: FileField("kUserDefinedTimestampsPersisted", _OF_KEYS),
    17: FileField("kFileOpenMetadata", "a hint for opening; the footer says what counts"),
    65: FileField("kPathId", reader=lambda x: {"path_id": x[0] if x else 0}),
}
"""Everything that it writes there of an added file (`enum NewFileCustomTag`)."""
