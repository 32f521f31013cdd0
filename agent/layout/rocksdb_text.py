"""RocksDB's textual artefacts: `OPTIONS-*`, `CURRENT`, `IDENTITY` and the names of rotated info logs.

Every function is total: garbage gives "nothing found", never an exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from agent.layout.names import OLD_INFO_LOG_FILE

MAX_OPTIONS_BYTES = 256 << 10
"""Read no more of an OPTIONS file; Kafka Streams' have 5 to 20 KB."""
MAX_CURRENT_BYTES = 64
"""Read no more of CURRENT: `MANIFEST-NNNNNN` and a newline."""
MAX_IDENTITY_BYTES = 256
"""Read no more of IDENTITY: a UUID of 36 characters, with a newline on some releases."""

MAX_LOG_HEAD_BYTES = 32 << 10
"""Read no more of LOG: the summary of an opening is in its first lines."""

_VERSION_LINE = re.compile(rb"^[ \t]*rocksdb_version[ \t]*=[ \t]*(\d{1,6}(?:\.\d{1,6}){1,3})[ \t]*\r?$", re.M)
_FAMILY_LINE = re.compile(rb'^[ \t]*\[CFOptions[ \t]+"([^"\r\n]{1,1024})"\][ \t]*\r?$', re.M)
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)  # options_helper EscapeOptionString
_LOGS_LINE = re.compile(rb"^[ \t]*keep_log_file_num[ \t]*=[ \t]*(\d{1,9})[ \t]*\r?$", re.M)
_LOG_PLACE_LINE = re.compile(rb"^[ \t]*db_log_dir[ \t]*=[ \t]*[^ \t\r\n]", re.M)
_LOGS_ROLL_LINE = re.compile(
    rb"^[ \t]*(?:max_log_file_size|log_file_time_to_roll)[ \t]*=[ \t]*0*[1-9]\d*[ \t]*\r?$", re.M
)
_FORGETS_LINE = re.compile(
    rb"^[ \t]*(?:compaction_style[ \t]*=[ \t]*kCompactionStyleFIFO"
    rb"|compaction_filter(?:_factory)?[ \t]*=[ \t]*(?!nullptr[ \t]*\r?$)[^ \t\r\n])",
    re.M,
)
_BULK_LOAD_LINES = (
    re.compile(rb"^[ \t]*disable_auto_compactions[ \t]*=[ \t]*true[ \t]*\r?$", re.M),
    re.compile(rb"^[ \t]*level0_file_num_compaction_trigger[ \t]*=[ \t]*1073741824[ \t]*\r?$", re.M),
)
_PATH_LINE = re.compile(rb" SST files in ([^\r\n]{1,4096}) dir, Total Num: ")
_CURRENT = re.compile(rb"MANIFEST-(\d{1,20})\n?")
_IDENTITY = re.compile(rb"[!-~]{1,256}")


@dataclass(frozen=True, slots=True)
class OptionsFacts:
    """What an OPTIONS file says.

    Source:
        ColumnFamilyOptions::PrepareForBulkLoad (recorded of 2.0.1 to 2.2.1);
        DBImpl::PurgeObsoleteFiles (`keep_log_file_num`, 1000 by default), InfoLogFileName (`db_log_dir`),
        AutoRollLogger (`max_log_file_size`, `log_file_time_to_roll`: both 0 = never, by default);
        FIFOCompactionPicker. The OPTIONS files of all recordings (5.7.3 to 10.1.3) say `nullptr` of both filters.
    """

    rocksdb_version: str | None  # `major.minor.patch` of the library that wrote it; None if it does not say
    column_families: tuple[str, ...]  # names of the column families, in file order
    # how many info logs of earlier opens stay in the database directory; None if it does not say, 0 if none shows an
    # opening: they are elsewhere, or a log is put aside by its size or age, too
    old_logs_kept: int | None = None
    forgets: bool = False  # RocksDB itself may drop live entries: FIFO compaction, or a compaction filter
    bulk_loading: bool = False  # it was opened with `prepareForBulkLoad`, as by a restoration up to 2.5


@lru_cache(maxsize=32)  # the stores of an application were made with the same options, byte for byte
def parse_options(content: bytes) -> OptionsFacts:
    """Find version, column families, bulk loading, and what becomes of info logs and of entries in an OPTIONS file."""
    version = _VERSION_LINE.search(content)
    names = dict.fromkeys(_unescape(name) for name in _FAMILY_LINE.findall(content))
    logs = _LOGS_LINE.search(content)
    say_nothing = _LOG_PLACE_LINE.search(content) or _LOGS_ROLL_LINE.search(content)
    kept = 0 if say_nothing else int(logs[1]) if logs else None
    forgets = _FORGETS_LINE.search(content) is not None
    bulk_loading = all(line.search(content) for line in _BULK_LOAD_LINES)
    rocksdb_version = version.group(1).decode("ascii") if version else None
    return OptionsFacts(rocksdb_version, tuple(names), kept, forgets, bulk_loading)


def other_paths(log: bytes, database: str) -> tuple[str, ...]:
    """Find where an opening looked for files instead of in its own directory; empty = there, or LOG does not say.

    The last two names of the database's path are the same wherever the volume is mounted or copied to.

    Source:
        DumpDBFileSummary (a line per path of `db_paths`, which is the directory itself by default); run with 7.9.2 and
        10.1.3. Paths of column families (`cf_paths`) are in no line.
    """
    paths = tuple(path.decode("utf-8", "replace") for path in _PATH_LINE.findall(log))
    own = database.split("/")[-2:]
    return () if any(path.rstrip("/").split("/")[-2:] == own for path in paths) else paths


def parse_current(content: bytes) -> int | None:
    """Read the number of the manifest that CURRENT names; None if it names none."""
    match = _CURRENT.fullmatch(content)
    return int(match.group(1)) if match else None


def parse_identity(content: bytes) -> str | None:
    """Read the incarnation id of a database; None if the content is not a printable ASCII token."""
    token = content.strip()
    return token.decode("ascii") if _IDENTITY.fullmatch(token) else None


def old_log_times_us(names: Iterable[str]) -> tuple[int, ...]:
    """List when earlier info logs were put aside: one reopen each, if logs are not rolled; oldest first."""
    matches = [OLD_INFO_LOG_FILE.fullmatch(name) for name in names if name.startswith("LOG.old")]
    return tuple(sorted(int(match.group(1)) for match in matches if match and len(match.group(1)) <= 20))


def _unescape(name: bytes) -> str:
    plain = _ESCAPE.sub(lambda m: {b"n": b"\n", b"r": b"\r"}.get(m.group(1), m.group(1)), name)
    return plain.decode("utf-8", "surrogateescape")
