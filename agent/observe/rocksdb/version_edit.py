"""One record of a MANIFEST -> the version edit in it.

Kept: files added and deleted, column families, counters. Key ranges of files are keys of the application:
they are passed over by length and never read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from agent.observe.rocksdb.coding import Cursor, DamagedError

_IGNORABLE = 1 << 13  # kTagSafeIgnoreMask
_CUSTOM_NOT_IGNORABLE = 1 << 6  # kCustomTagNonSafeIgnoreMask
_PATH_ID = 65  # NewFileCustomTag::kPathId
_MAX_FILES = (
    20_000  # added or deleted by one edit; a store has tens. Keeps a hostile manifest from filling the memory
)
_MAX_NUMBER = (1 << 62) - 1  # kFileNumberMask
_MAX_FILE_BYTES = 1 << 45  # so that sums over all files stay below 2**63, which readers of events rely on
_MAX_LEVEL = 63
_MAX_SEQUENCE = (1 << 56) - 1  # kMaxSequenceNumber: represents "none"


@dataclass(frozen=True, slots=True)
class LiveFile:
    """An SST file that a manifest names.

    Args of the dataclass:
        number: File number; the file is `<number>.sst`, at least six digits.
        level: Level it is on.
        family_id: Id of its column family.
        size_bytes: Size, fixed once written.
        smallest_sequence: Lowest sequence number in it; 0 after a compaction that forgot the order.
        largest_sequence: Highest sequence number in it; 0 as above.
        path_id: Which of the database's paths it is on; 0 = the first one, which is its own directory unless the
            application chose others (`db_paths`, `cf_paths`).
    """

    number: int
    level: int
    family_id: int
    size_bytes: int
    smallest_sequence: int
    largest_sequence: int
    path_id: int = 0


@dataclass(slots=True)
class VersionEdit:
    """One change of the set of files. `deleted` holds (level, number)."""

    family_id: int = 0
    family_added: str | None = None
    family_dropped: bool = False
    next_file: int | None = None
    last_sequence: int | None = None
    group_left: int | None = None
    added: list[LiveFile] = field(default_factory=list)
    deleted: list[tuple[int, int]] = field(default_factory=list)


def parse_edit(record: bytes) -> VersionEdit:
    """Decode one record.

    Raises:
        DamagedError: not a version edit, or one with a part that must not be ignored and is not known.

    Source:
        RocksDB db/version_edit.h and .cc, 5.7 to 11.9.
    """
    edit = VersionEdit()
    cursor = Cursor(record)
    while not cursor.is_at_end:
        tag = cursor.varint()
        reader = _READERS.get(tag)
        if reader is not None:
            reader(cursor, edit)
        elif tag & _IGNORABLE:
            cursor.skip_string()
        else:
            raise DamagedError(f"unknown part {tag} of a version edit")
    if edit.family_id:
        # the family's id follows the files that it applies to
        edit.added = [_with_family(one, edit.family_id) for one in edit.added]
    return edit


def _at_most(limit: int, cursor: Cursor) -> int:
    value = cursor.varint()
    if value > limit:
        raise DamagedError(f"number {value} where at most {limit} makes sense")
    return value


def _with_family(one: LiveFile, family_id: int) -> LiveFile:
    return LiveFile(
        one.number,
        one.level,
        family_id,
        one.size_bytes,
        one.smallest_sequence,
        one.largest_sequence,
        one.path_id,
    )


def _new_file(cursor: Cursor, edit: VersionEdit, *, has_path: bool, has_sequences: bool) -> None:
    if len(edit.added) >= _MAX_FILES:
        raise DamagedError("too many files in one version edit")
    level, number = _at_most(_MAX_LEVEL, cursor), _at_most(_MAX_NUMBER, cursor)
    path_id = cursor.varint() if has_path else 0
    size_bytes = _at_most(_MAX_FILE_BYTES, cursor)
    cursor.skip_string()  # smallest key
    cursor.skip_string()  # largest key
    smallest, largest = (cursor.varint(), cursor.varint()) if has_sequences else (0, 0)
    if largest >= _MAX_SEQUENCE:
        smallest = largest = 0
    edit.added.append(LiveFile(number, level, 0, size_bytes, min(smallest, largest), largest, path_id))


def _new_file_1(cursor: Cursor, edit: VersionEdit) -> None:
    _new_file(cursor, edit, has_path=False, has_sequences=False)


def _new_file_2(cursor: Cursor, edit: VersionEdit) -> None:
    _new_file(cursor, edit, has_path=False, has_sequences=True)


def _new_file_3(cursor: Cursor, edit: VersionEdit) -> None:
    _new_file(cursor, edit, has_path=True, has_sequences=True)


def _new_file_4(cursor: Cursor, edit: VersionEdit) -> None:
    _new_file(cursor, edit, has_path=False, has_sequences=True)
    while (tag := cursor.varint()) != 1:  # kTerminate
        if tag == _PATH_ID:
            path = cursor.string()
            edit.added[-1] = replace(edit.added[-1], path_id=path[0] if path else 0)
        elif tag & _CUSTOM_NOT_IGNORABLE:
            raise DamagedError(f"unknown field {tag} of a file")
        else:
            cursor.skip_string()


def _skip_custom_fields(cursor: Cursor) -> None:
    while (tag := cursor.varint()) != 0:  # kEndMarker
        if tag & _CUSTOM_NOT_IGNORABLE:
            raise DamagedError(f"unknown field {tag} of a file")
        cursor.skip_string()


def _deleted_file(cursor: Cursor, edit: VersionEdit) -> None:
    if len(edit.deleted) >= _MAX_FILES:
        raise DamagedError("too many deletions in one version edit")
    edit.deleted.append((cursor.varint(), cursor.varint()))


def _next_file(cursor: Cursor, edit: VersionEdit) -> None:
    edit.next_file = _at_most(_MAX_NUMBER, cursor)


def _last_sequence(cursor: Cursor, edit: VersionEdit) -> None:
    edit.last_sequence = _at_most(_MAX_SEQUENCE, cursor)


def _family(cursor: Cursor, edit: VersionEdit) -> None:
    edit.family_id = _at_most(_MAX_NUMBER, cursor)


def _family_add(cursor: Cursor, edit: VersionEdit) -> None:
    edit.family_added = cursor.string().decode("utf-8", "surrogateescape")


def _family_drop(cursor: Cursor, edit: VersionEdit) -> None:
    edit.family_dropped = True


def _in_group(cursor: Cursor, edit: VersionEdit) -> None:
    edit.group_left = cursor.varint()


def _skip_number(cursor: Cursor, edit: VersionEdit) -> None:
    cursor.varint()


def _skip_string(cursor: Cursor, edit: VersionEdit) -> None:
    cursor.skip_string()


def _skip_cursor(cursor: Cursor, edit: VersionEdit) -> None:
    cursor.varint()
    cursor.skip_string()  # a key


def _skip_blob_file(cursor: Cursor, edit: VersionEdit) -> None:
    for _ in range(3):
        cursor.varint()
    cursor.skip_string()
    cursor.skip_string()
    _skip_custom_fields(cursor)


def _skip_blob_garbage(cursor: Cursor, edit: VersionEdit) -> None:
    for _ in range(3):
        cursor.varint()
    _skip_custom_fields(cursor)


def _skip_wal_addition(cursor: Cursor, edit: VersionEdit) -> None:
    cursor.varint()
    while (tag := cursor.varint()) != 1:  # WalAdditionTag::kTerminate
        if tag != 2:  # kSyncedSize
            raise DamagedError(f"unknown field {tag} of a WAL")
        cursor.varint()


_READERS: dict[int, Callable[[Cursor, VersionEdit], None]] = {
    1: _skip_string,  # kComparator
    2: _skip_number,  # kLogNumber
    3: _next_file,
    4: _last_sequence,
    5: _skip_cursor,  # kCompactCursor
    6: _deleted_file,
    7: _new_file_1,
    9: _skip_number,  # kPrevLogNumber
    10: _skip_number,  # kMinLogNumberToKeep
    100: _new_file_2,
    102: _new_file_3,
    103: _new_file_4,
    200: _family,
    201: _family_add,
    202: _family_drop,
    203: _skip_number,  # kMaxColumnFamily
    300: _in_group,
    400: _skip_blob_file,
    401: _skip_blob_garbage,
    # Ignorable by number, but the first releases that wrote them gave them no length
    # (8193 kDbId and everything from 8198 on have one, like any unknown ignorable part).
    _IGNORABLE + 2: _skip_blob_file,
    _IGNORABLE + 3: _skip_blob_garbage,
    _IGNORABLE + 4: _skip_wal_addition,
    _IGNORABLE + 5: _skip_number,  # kWalDeletion
}
