"""Read a recorded trace: one JSON object per line, gzip or plain, in time order.

The format is that of `tests/data/traces/README.md`. `start` and `exit` lines are truth for checking a
verdict; the reader keeps only what a real agent could have seen of them.
"""

from __future__ import annotations

import binascii
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from agent.errors import TraceError

_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


class Encoded:
    """Bytes in base64. It has a length and gives slices, as bytes do, and decodes no more than a slice needs.

    Of the data files in a recording, two thirds of its bytes, the agent reads a fiftieth.
    """

    __slots__ = ("_size_bytes", "_text")

    def __init__(self, text: str) -> None:
        """Check the text; checking takes a quarter of the time of decoding. Raises `ValueError`: it is not base64."""
        padding = text.endswith("=") + text.endswith("==")
        strange = text.encode("ascii").translate(None, _ALPHABET)
        if len(text) % 4 or strange != b"=" * padding:
            raise ValueError("not base64")
        self._text = text
        self._size_bytes = len(text) // 4 * 3 - padding

    def __len__(self) -> int:
        """Count the bytes."""
        return self._size_bytes

    def __getitem__(self, part: slice) -> bytes:
        """Decode the bytes of a slice; its step is 1."""
        start, end, _ = part.indices(self._size_bytes)
        first = start // 3
        decoded = binascii.a2b_base64(self._text[first * 4 : -(-end // 3) * 4])
        return decoded[start - first * 3 : end - first * 3] if start < end else b""


MAX_FILE_BYTES = 1 << 30  # larger files are not replayed: the disk is held in memory

OPERATIONS = frozenset({
    "start", "exit", "mkdir", "rmdir", "unlink", "create", "open_w", "open_r", "write", "truncate", "close_w",
    "rename", "utime", "lock", "unlock",
})  # fmt: skip


_decode = json.JSONDecoder().raw_decode
_BUFFER_BYTES = 256 * 1024
_PLAIN_KEYS = 3  # t, op, path
_LONG_CHARACTERS = 4096  # content that is longer in base64 is decoded when it is read


class Operation(NamedTuple):
    """One recorded file operation."""

    at_us: int  # when, microseconds since the epoch
    op: str  # one of `OPERATIONS`
    path: str = ""  # relative to the state directory; empty for `start` and `exit`
    to: str = ""  # target of a rename
    data: bytes | Encoded = b""  # content of a write
    offset: int | None = None  # position of a positioned write; None = the descriptor's own position
    size: int = 0  # new size of a truncate
    nameless: bool = False  # the file had no name any more
    append: bool = False  # opened for appending
    version: str | None = None
    """Kafka Streams release of a started process (shown to detectors only on request)."""
    killed: bool = False  # the process ended by a kill


def read_trace(path: Path) -> Iterator[Operation]:
    """Read a trace lazily.

    Gives operations in file order. Raises `TraceError`: the file cannot be opened, is truncated, or a line is not
    an operation; the message names file and line.
    """
    number = 0
    try:
        with _open(path) as lines:
            for number, line in enumerate(lines, start=1):
                stripped = line.strip()
                if stripped:
                    yield _parse(stripped, path, number)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TraceError(f"{path}: damaged or truncated after line {number}: {error}") from error
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror or error}") from error
    if number == 0:
        raise TraceError(f"{path}: empty; a trace has at least one operation")


def _open(path: Path) -> io.BufferedReader:
    with path.open("rb") as probe:
        magic = probe.read(2)
    if magic != b"\x1f\x8b":
        return path.open("rb")
    # the buffer hands out lines in C; a GzipFile does it in Python, line by line
    return io.BufferedReader(gzip.open(path, "rb"), _BUFFER_BYTES)


def _parse(line: bytes, path: Path, number: int) -> Operation:
    try:
        text = line.decode("utf-8", "surrogatepass")  # as `json.loads` does
        row, end = _decode(text)
        if end != len(text):
            raise ValueError(f"more than one value, the second at column {end + 1}")
        get, op = row.get, row["op"]
        if op not in OPERATIONS:
            raise TraceError(f"{path}: line {number}: unknown operation {op!r}")
        if len(row) == _PLAIN_KEYS and "path" in row:
            return Operation(round(row["t"] * 1_000_000), op, _text(row["path"]))  # most lines say no more
        return Operation(
            round(row["t"] * 1_000_000), op, _text(get("path", "")), _text(get("to", "")),
            _content(get("b64") or ""), None if get("off") is None else _size(row["off"]), _size(get("size", 0)),
            bool(get("deleted")), bool(get("append")), get("version"), get("how") == "killed",
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise TraceError(f"{path}: line {number}: not a trace operation ({error})") from error


def _content(encoded: str) -> bytes | Encoded:
    if len(encoded) > _LONG_CHARACTERS:
        return Encoded(encoded)
    return binascii.a2b_base64(encoded, strict_mode=True) if encoded else b""


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a path must be text, not {type(value).__name__}")
    return value


def _size(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_FILE_BYTES:
        raise ValueError(f"a size must be a number of bytes up to {MAX_FILE_BYTES}, not {value!r}")
    return value
