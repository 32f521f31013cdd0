"""A blob file: whether its ends are those that RocksDB wrote. Its records, keys with values, are never read."""

from __future__ import annotations

from agent.inventory.disk import Files
from agent.observe.rocksdb.coding import RefusedError, UnsupportedError
from agent.observe.rocksdb.crc32c import masked_crc32c
from agent.observe.rocksdb.reading import read_exactly
from agent.observe.rocksdb.version_edit import BLOB_FOOTER_BYTES, BLOB_HEADER_BYTES, BlobFile

_MAGIC, _VERSION = 2_395_959, 1  # kMagicNumber, kVersion1
_CRC_BYTES = 4


def check_blob_file(disk: Files, path: str, file: BlobFile) -> None:
    """Read header and footer of a file of the size that the manifest says. Raises as `open_table`.

    Source:
        BlobFileReader::ReadHeader and ReadFooter, BlobLogHeader and BlobLogFooter::DecodeFrom (6.18 to 11.9).
    """
    header = read_exactly(disk, path, 0, BLOB_HEADER_BYTES)
    magic, version, family_id = (int.from_bytes(header[at : at + 4], "little") for at in (0, 4, 8))
    has_ttl, expires = header[12] & 1, any(header[14:])
    if magic != _MAGIC or family_id != file.family_id or has_ttl or expires:
        raise RefusedError("file does not begin like a blob file of its column family")
    if version != _VERSION:
        raise UnsupportedError(f"blob file of version {version}")
    footer = read_exactly(disk, path, file.size_bytes - BLOB_FOOTER_BYTES, BLOB_FOOTER_BYTES)
    if int.from_bytes(footer[:4], "little") != _MAGIC or any(footer[12:28]):
        raise RefusedError("file does not end like a blob file")
    if int.from_bytes(footer[-_CRC_BYTES:], "little") != masked_crc32c(footer[:-_CRC_BYTES]):
        raise RefusedError("checksum of the footer is wrong")
