"""What files hold, checked before Spark opens them: Spark's reader bounds no line and silently ends a torn gzip."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO
from urllib.parse import unquote

from agent.contract.reporting import SEGMENT_NAME

LINE_BYTES = 16 * 1024 * 1024
"""Longest line that is read. An agent's are a few KiB; Spark holds each whole, several times over."""

BOMB_BYTES, BOMB_RATIO = 64 * 1024 * 1024, 200
"""What unpacks to more than this much, and to more than so many times its size, is no segment: those reach 30."""

DEFLATE_RATIO = 1032
"""Nothing that gzip packed unpacks to more than this many times its size. Source: zlib, Technical Details."""

CHUNK_BYTES = 1024 * 1024
ABREAST = 4
"""Files that are checked side by side."""

CUT_OFF = "cut-off-file"
"""Reason for which the quarantine holds a whole file: it gave less than its name or its trailer announces."""

TOO_LARGE, ODD_NAME, UNREAD = "too-large", "odd-name", "unread-file"
"""Reasons for which the quarantine holds a file that Spark never opened."""

DEADLY = "deadly-file"
"""Reason for which the quarantine holds a file that runs did not survive."""

NOT_WHOLE = (CUT_OFF, TOO_LARGE, ODD_NAME, UNREAD, DEADLY)
"""Reasons for which the quarantine holds a file that was not read to its end."""

Checked = Mapping[str, tuple[str, str]]
"""Reason and detail of each file of which something was found: Spark opens none of them but what is cut off."""


Boot = tuple[str, str, str, str, int]
"""Namespace, pod, its uid, boot of its agent, and the highest sequence that is known of it."""


def boot_and_last(path: str) -> tuple[str, int] | None:
    """Read which boot of an agent wrote a segment, and the last sequence that it announces; None: no agent's name."""
    found = re.search(r"([^/]+)" + SEGMENT_NAME, path)
    return (found[1], int(found[3])) if found else None


def unfinished(files: Iterable[tuple[str, str]], heard: Iterable[Boot]) -> dict[str, str]:
    """List the files that keep the end of what an agent said: no hole in its sequences tells of that.

    `files`: path and reason of what is in the quarantine. What nobody may read now counts whoever wrote it. Gives the
    pod of each, as `namespace/pod`; empty: not known.
    """
    reached, pods = dict[str, int](), dict[str, set[str]]()
    for namespace, pod, uid, boot, last in heard:
        reached[boot] = max(reached.get(boot, 0), last)
        for name in (boot, uid):
            pods.setdefault(name, set()).add(f"{namespace}/{pod}")
    found = {}
    for path, reason in sorted(files):
        named = boot_and_last(path)
        is_short = named is not None and reached.get(named[0], 0) < named[1]
        if reason == UNREAD or (reason in NOT_WHOLE and is_short):
            folder = unquote(path.rpartition("/")[0].rpartition("/")[2])
            whose = pods.get(named[0] if named else "") or pods.get(folder, set())
            found[path] = "".join(whose) if len(whose) == 1 else ""
    return found


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

    def one(path: str) -> tuple[str, str] | None:
        try:
            with opened(path) as file:
                found = scan(file, files[path], packed=path.endswith(".gz"))
        except OSError as error:
            return UNREAD, str(error)
        says_more = re.search(SEGMENT_NAME, path) is not None  # its name announces how much it holds
        return None if found and found[0] == CUT_OFF and says_more else found

    with ThreadPoolExecutor(max_workers=ABREAST) as pool:
        told = zip(chosen, pool.map(one, chosen), strict=True)
        found = {path: what for path, what in told if what}
    return dict.fromkeys(odd, (ODD_NAME, "its name is not UTF-8 and Spark can't open it: rename it")) | found


def scan(file: BinaryIO, size_bytes: int, *, packed: bool) -> tuple[str, str] | None:
    """Read a file to its end, or until it is too large, in bounded memory; gives reason and detail, None = all is well.

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
                return TOO_LARGE, f"a line of more than {LINE_BYTES >> 20} MiB; it was not read"
            if packed and total > max(BOMB_BYTES, BOMB_RATIO * size_bytes):
                times = f"{BOMB_RATIO} times its {size_bytes} bytes"
                return TOO_LARGE, f"it unpacks to more than {times}; it was not read"
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        return CUT_OFF, f"its gzip data break off after {total} bytes: {error}"
    return None


def check_local_files(files: Mapping[str, int]) -> Checked:
    """Check files of a directory; Spark would end the whole run over one that it may not read.

    Of one with a colon in its name it would read nothing, and say so nowhere: to Hadoop that is a scheme.
    """
    barred = {path: (UNREAD, why) for path in files if (why := _why_barred(path))}
    barred |= {
        path: (ODD_NAME, "its name has a colon and Spark can't open it: rename it")
        for path in files
        if path not in barred and ":" in path.rpartition("/")[2]
    }
    return {**check_files({path: x for path, x in files.items() if path not in barred}, _opened), **barred}


def _why_barred(path: str) -> str:
    if not os.access(path, os.R_OK):
        return "a broken link" if os.path.islink(path) else "permission denied"  # noqa: PTH114
    return "a folder that could not be listed" if os.path.isdir(path) else ""  # noqa: PTH112


def _opened(path: str) -> BinaryIO:
    return open(path, "rb")  # noqa: PTH123 - the caller closes it


def shown(path: str) -> str:
    """Write a path so that every program can print it: bytes that are not UTF-8 become visible escapes."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")
