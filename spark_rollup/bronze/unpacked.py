"""What files hold, checked before Spark opens them: Spark's reader bounds no line and silently ends a torn gzip."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import BinaryIO

SEGMENT_NAME = r"-(\d+)-(\d+)(?:-k(\d+))?\.jsonl(\.gz)?$"
"""A segment's name ends with the first and last sequence that it holds; if it was thinned, with how many are left."""

LINE_BYTES = 16 * 1024 * 1024
"""Longest line that is read. An agent's are a few KiB; Spark holds each whole, several times over."""

BOMB_BYTES, BOMB_RATIO = 64 * 1024 * 1024, 200
"""What unpacks to more than this much, and to more than so many times its size, is no segment: those reach 30."""

DEFLATE_RATIO = 1032
"""Nothing that gzip packed unpacks to more than this many times its size. Source: zlib, Technical Details."""

CHUNK_BYTES = 1024 * 1024
ABREAST = 4
"""Files that are checked side by side."""

TOO_LARGE, ODD_NAME, UNREAD = "too-large", "odd-name", "unread-file"
"""Reasons for which the quarantine holds a file that Spark never opened."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check of files found.

    Args of the dataclass:
        refused: Files that Spark must not open: reason and detail.
        torn: Packed files that break off, and whose names do not say how much they should hold: how they break off.
        unread: Files that could not be read now, and why.
    """

    refused: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    torn: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Seen:
    """What one file is: too large for the reason given, torn for the reason given, or neither."""

    large: str | None = None
    torn: str | None = None


def is_suspect(path: str, size_bytes: int) -> bool:
    """Return whether a file must be checked: its size allows a line that is too long, or its length is not known."""
    if not path.endswith(".gz"):
        return size_bytes > LINE_BYTES
    return size_bytes * DEFLATE_RATIO > LINE_BYTES or re.search(SEGMENT_NAME, path) is None


def check_files(
    files: Mapping[str, int],
    opened: Callable[[str], BinaryIO],
    suspect: Callable[[str, int], bool] = is_suspect,
) -> Checked:
    """Check those of the files (path -> bytes) that need it; `opened` raises OSError where it cannot."""
    odd = [path for path in files if shown(path) != path]
    chosen = [path for path, size_bytes in files.items() if path not in odd and suspect(path, size_bytes)]

    def one(path: str) -> Seen | OSError:
        try:
            with opened(path) as file:
                return scan(file, files[path], packed=path.endswith(".gz"))
        except OSError as error:
            return error

    with ThreadPoolExecutor(max_workers=ABREAST) as pool:
        found = dict(zip(chosen, pool.map(one, chosen), strict=True))
    seen = {path: what for path, what in found.items() if isinstance(what, Seen)}
    return Checked(
        dict.fromkeys(odd, (ODD_NAME, "its name is not UTF-8 and Spark can't open it: rename it"))
        | {path: (TOO_LARGE, what.large) for path, what in seen.items() if what.large},
        {
            path: what.torn
            for path, what in seen.items()
            if what.torn and re.search(SEGMENT_NAME, path) is None  # for the others the name says more
        },
        {path: str(what) for path, what in found.items() if isinstance(what, OSError)},
    )


def scan(file: BinaryIO, size_bytes: int, *, packed: bool) -> Seen:
    """Read a file to its end, or until it is too large, in bounded memory.

    Raises:
        OSError: it cannot be read now.
    """
    stream = gzip.GzipFile(fileobj=file) if packed else file
    line = total = 0
    try:
        while chunk := stream.read(CHUNK_BYTES):
            total += len(chunk)
            first = chunk.find(b"\n")
            longest = line + (len(chunk) if first < 0 else first)
            line = longest if first < 0 else len(chunk) - chunk.rfind(b"\n") - 1
            if longest > LINE_BYTES:
                return Seen(large=f"a line of more than {LINE_BYTES >> 20} MiB; it was not read")
            if packed and total > max(BOMB_BYTES, BOMB_RATIO * size_bytes):
                return Seen(
                    large=f"it unpacks to more than {BOMB_RATIO} times its {size_bytes} bytes; it was not read"
                )
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        return Seen(torn=f"its gzip data break off after {total} bytes: {error}")
    return Seen()


def check_local_files(files: Mapping[str, int]) -> Checked:
    """Check files of a directory; Spark would end the whole run over one that it may not read."""
    barred = {path: "permission denied" for path in files if not os.access(path, os.R_OK)}
    found = check_files({path: size for path, size in files.items() if path not in barred}, _opened)
    return replace(found, unread={**found.unread, **barred})


def _opened(path: str) -> BinaryIO:
    return open(path, "rb")  # noqa: PTH123 - the caller closes it


def shown(path: str) -> str:
    """Write a path so that every program can print it: bytes that are not UTF-8 become visible escapes."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")
