"""An SST file, opened: footer, metaindex, properties; data blocks only on request.

Opening decodes the footer, the metaindex and the properties block and nothing else: none of them holds a key or a value
of the application (`tests/agent/observe/rocksdb/test_store.py` proves that by watching the reads). Blocks beside them
that hold keys only pass through a checksum, of a store that no process has open: RocksDB read them at its open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agent.inventory.disk import Files
from agent.observe.rocksdb import checksum
from agent.observe.rocksdb.block import TRAILER_BYTES, Handle, entries, index_handles, read_handle
from agent.observe.rocksdb.checksum import masked_crc32c
from agent.observe.rocksdb.coding import Cursor, DamagedError, RefusedError, UnsupportedError, read_exactly
from agent.observe.rocksdb.properties import Properties, parse_properties
from agent.observe.rocksdb.version_edit import BLOB_FOOTER_BYTES, BLOB_HEADER_BYTES, BlobFile

MAX_BLOCK_BYTES = 1 << 20
"""Read no larger block: properties have 1 to 2 KB, blocks of the `offsets` family less."""
MAX_CHECKED_BYTES = 256 << 10
"""Compare the checksum of no larger block that is not read for what is in it: that takes 10 ms."""
MAX_ENTRIES = 10_000
"""Give up on a block, or on the data of one file, with more entries."""
MAX_BLOCKS = 1_000
"""Give up on a file of the `offsets` family with more data blocks."""
MAX_OFFSETS_BYTES = 4 << 20
"""Give up on a larger file of the `offsets` family; its memtable has 1 MiB, its files 1 to 2 KB."""

_MAGIC = 0x88E241B785F4CFF7  # kBlockBasedTableMagicNumber
_LEGACY_MAGIC = 0xDB4775248B80FB57  # kLegacyBlockBasedTableMagicNumber, format version 0
_OTHER_MAGICS = frozenset({0x8242229663BF9564, 0x4F3418EB7A8F13B8, 0x926789D0C5F17873})
"""Of plain tables (two forms) and cuckoo tables, which an application may choose."""
_LEGACY_FOOTER_BYTES = 48
_FOOTER_BYTES = 53
_LAST_FORMAT = 7
_HANDLES_BYTES = 40  # room for two block handles
_EXTENDED_MAGIC = b"\x3e\x00\x7a\x00"
_TWO_LEVELS, _FIRST_KEYS = 2, 3  # BlockBasedTableOptions::IndexType
_PROPERTIES_BLOCKS = (b"rocksdb.properties", b"rocksdb.stats")  # the second one: before RocksDB 2.7


@dataclass(frozen=True, slots=True)
class Footer:
    """What the last bytes of the file say; `index` None = the metaindex says where the index is."""

    checksum_kind: int
    metaindex: Handle
    index: Handle | None
    base_checksum: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """An opened SST file."""

    path: str  # where it is
    size_bytes: int  # its size
    footer: Footer  # its footer
    index: Handle  # its (top-level) index block
    properties: Properties  # its properties


def open_table(disk: Files, path: str, size_bytes: int, *, with_checks: bool = False) -> Table:
    """Read footer, metaindex and properties of a file of known size.

    `with_checks` compares the checksums of its other blocks that RocksDB reads at an open, too: index, filter, deleted
    ranges, dictionary. They hold keys, so they are not decoded; beyond `MAX_CHECKED_BYTES` one is left out.

    Raises:
        RefusedError: not an SST file, cut off, or a wrong checksum.
        DamagedError: a content that makes no sense here.
        UnsupportedError: a format or compression that is not read here.
        UnseenError: the disk could not be read.
    """
    footer = _read_footer(disk, path, size_bytes)
    places = dict(entries(_read_block(disk, path, footer, footer.metaindex), MAX_ENTRIES))
    where = next((places[name] for name in _PROPERTIES_BLOCKS if name in places), None)
    if where is None:
        raise DamagedError("file has no properties")
    properties = _read_block(disk, path, footer, read_handle(Cursor(where)))
    index = footer.index
    if index is None:
        if b"rocksdb.index" not in places:
            raise DamagedError("file does not say where its index is")
        index = read_handle(Cursor(places[b"rocksdb.index"]))
    if with_checks:
        named = [place for name, place in places.items() if name not in _PROPERTIES_BLOCKS]
        _check_others(disk, path, footer, [index, *(read_handle(Cursor(place)) for place in named)])
    return Table(path, size_bytes, footer, index, parse_properties(entries(properties, MAX_ENTRIES)))


def _check_others(disk: Files, path: str, footer: Footer, handles: list[Handle]) -> None:
    """Compare checksums of blocks that hold keys.

    Recordings blank all that holds keys, from the first byte on: such a file is not judged by it.
    """
    checked = [x for x in dict.fromkeys(handles) if x.size <= MAX_CHECKED_BYTES]
    if footer.checksum_kind not in checksum.VERIFIED_KINDS or not checked:
        return
    before = max(0, min(x.offset for x in checked) - TRAILER_BYTES)  # the trailer of the last data block
    pieces = [(before, TRAILER_BYTES), *((x.offset, x.size + TRAILER_BYTES) for x in checked)]
    read = [read_exactly(disk, path, offset, length) for offset, length in pieces]
    if not any(map(any, read)):
        return
    for handle, data in zip(checked, read[1:], strict=True):
        _require_sound(data, footer, handle)


def read_entries(disk: Files, table: Table) -> Iterator[tuple[bytes, bytes]]:
    """Walk through all entries: internal key (with its 8 bytes of sequence and type) and value. Raises as `open_table`.

    Only for files of the `offsets` family.
    """
    if table.size_bytes > MAX_OFFSETS_BYTES:
        raise UnsupportedError(f"`offsets` file of {table.size_bytes} bytes")
    left = MAX_ENTRIES
    for handle in _data_blocks(disk, table):
        for item in entries(_read_block(disk, table.path, table.footer, handle), left):
            left -= 1
            yield item


def _data_blocks(disk: Files, table: Table) -> list[Handle]:
    handles = _index(disk, table, table.index, MAX_BLOCKS)
    if table.properties.index_type != _TWO_LEVELS:
        return handles
    blocks: list[Handle] = []
    for handle in handles:
        blocks += _index(disk, table, handle, MAX_BLOCKS - len(blocks))
        _require_room(blocks, table)
    return blocks


def _index(disk: Files, table: Table, handle: Handle, limit: int) -> list[Handle]:
    handles = index_handles(
        _read_block(disk, table.path, table.footer, handle),
        delta_encoded=table.properties.index_delta_encoded,
        first_keys=table.properties.index_type == _FIRST_KEYS,
        limit=limit,
    )
    _require_room(handles, table)
    return handles


def _require_room(handles: list[Handle], table: Table) -> None:
    """Refuse blocks that overlap so much that together they are larger than their file."""
    if sum(one.size + TRAILER_BYTES for one in handles) > table.size_bytes:
        raise DamagedError("blocks of an index are larger than their file")


def _read_footer(disk: Files, path: str, size_bytes: int) -> Footer:
    if size_bytes < _LEGACY_FOOTER_BYTES:
        raise RefusedError("file is too short")
    start = max(0, size_bytes - _FOOTER_BYTES)
    data = read_exactly(disk, path, start, size_bytes - start)
    magic = int.from_bytes(data[-8:], "little")
    if magic == _LEGACY_MAGIC:
        cursor = Cursor(data, len(data) - _LEGACY_FOOTER_BYTES)
        return Footer(checksum.CRC32C, read_handle(cursor), read_handle(cursor))
    if magic in _OTHER_MAGICS:
        raise UnsupportedError("not a block-based SST file")
    if magic != _MAGIC or len(data) < _FOOTER_BYTES:
        raise RefusedError("file does not end like a block-based SST file")
    version = int.from_bytes(data[-12:-8], "little")
    kind = data[0]
    if version > _LAST_FORMAT or kind not in checksum.KINDS:
        raise UnsupportedError(f"format version {version} with checksum kind {kind}")
    if version < 6:
        cursor = Cursor(data, 1, 1 + _HANDLES_BYTES)
        return Footer(kind, read_handle(cursor), read_handle(cursor))
    return _extended_footer(data, start, kind)


def _extended_footer(data: bytes, offset: int, kind: int) -> Footer:
    if data[1:5] != _EXTENDED_MAGIC:
        raise RefusedError("footer without its second magic number")
    if any(data[33:41]):
        raise UnsupportedError("footer with a feature of a later RocksDB")
    stored, base, metaindex_size = (int.from_bytes(data[at : at + 4], "little") for at in (5, 9, 13))
    computed = checksum.compute(kind, data[:5] + bytes(4) + data[9:])
    if computed is not None:
        expected = (computed + checksum.context_modifier(base, offset)) & 0xFFFFFFFF
        if stored != expected:
            raise RefusedError("checksum of the footer is wrong")
    # the metaindex is right before the footer
    start = offset - TRAILER_BYTES - metaindex_size
    if start < 0:
        raise RefusedError("metaindex begins before the file")
    return Footer(kind, Handle(start, metaindex_size), None, base)


def _read_block(disk: Files, path: str, footer: Footer, handle: Handle) -> bytes:
    if handle.size > MAX_BLOCK_BYTES:
        raise DamagedError(f"block of {handle.size} bytes")
    data = read_exactly(disk, path, handle.offset, handle.size + TRAILER_BYTES)
    _require_sound(data, footer, handle)
    if data[handle.size] != 0:
        raise UnsupportedError(f"compressed block (kind {data[handle.size]})")
    return data[: handle.size]


def _require_sound(data: bytes, footer: Footer, handle: Handle) -> None:
    computed = checksum.compute(footer.checksum_kind, data[: handle.size + 1])
    if computed is not None:
        modifier = checksum.context_modifier(footer.base_checksum, handle.offset)
        if int.from_bytes(data[-4:], "little") != (computed + modifier) & 0xFFFFFFFF:
            raise RefusedError(f"checksum of the block at {handle.offset} is wrong")


_BLOB_MAGIC, _BLOB_VERSION = 2_395_959, 1  # kMagicNumber, kVersion1
_CRC_BYTES = 4


def check_blob_file(disk: Files, path: str, file: BlobFile) -> None:
    """Read header and footer of a file of the size that the manifest says. Raises as `open_table`.

    Source:
        BlobFileReader::ReadHeader and ReadFooter, BlobLogHeader and BlobLogFooter::DecodeFrom (6.18 to 11.9).
    """
    header = read_exactly(disk, path, 0, BLOB_HEADER_BYTES)
    magic, version, family_id = (int.from_bytes(header[at : at + 4], "little") for at in (0, 4, 8))
    has_ttl, expires = header[12] & 1, any(header[14:])
    if magic != _BLOB_MAGIC or family_id != file.family_id or has_ttl or expires:
        raise RefusedError("file does not begin like a blob file of its column family")
    if version != _BLOB_VERSION:
        raise UnsupportedError(f"blob file of version {version}")
    footer = read_exactly(disk, path, file.size_bytes - BLOB_FOOTER_BYTES, BLOB_FOOTER_BYTES)
    if int.from_bytes(footer[:4], "little") != _BLOB_MAGIC or any(footer[12:28]):
        raise RefusedError("file does not end like a blob file")
    if int.from_bytes(footer[-_CRC_BYTES:], "little") != masked_crc32c(footer[:-_CRC_BYTES]):
        raise RefusedError("checksum of the footer is wrong")
