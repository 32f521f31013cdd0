"""Read what `strace -f -ttt -xx` wrote: one call at a time, in an order that keeps descriptors apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_LINE = re.compile(r"(\d+) +(\d+)\.(\d{6}) (.*)", re.DOTALL)
_RESUMED = re.compile(r"<\.\.\. \w+ resumed>")
_UNFINISHED = " <unfinished ...>"
_CALL = re.compile(r"(\w+)\((.*)\) += (\d+)", re.DOTALL)
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_END = re.compile(r"\+\+\+ (?:exited with (\d+)|killed by \w+)")


class Call(NamedTuple):
    """One system call that succeeded, or the end of a thread."""

    at_us: int  # when, microseconds since the epoch
    thread: int  # whose; the first one of a file is the process
    name: str  # of the call; `exited` and `killed` for the end
    words: str = ""  # arguments without their texts: numbers, flags
    texts: tuple[bytes, ...] = ()  # texts among the arguments
    result: int = 0  # what it returned; the exit code of an end


def read_calls(lines: Iterable[str]) -> Iterator[Call]:
    """Read calls in the order in which they took effect; failed ones and those that a kill cut off are left out.

    A descriptor's number is free again as soon as `close` begins, and taken only when `open` ends: of a call that
    another thread's call interrupts in the text, `close` counts where it begins and every other where it ends.
    """
    begun: dict[int, str] = {}
    for line in lines:
        match = _LINE.match(line)
        if match is None:
            continue
        thread, at_us, text = int(match[1]), int(match[2]) * 1_000_000 + int(match[3]), match[4].rstrip()
        if text.endswith(_UNFINISHED):
            begun[thread] = text.removesuffix(_UNFINISHED)
            if not text.startswith("close("):
                continue
            text = begun.pop(thread) + ") = 0"
        elif resumed := _RESUMED.match(text):
            text = begun.pop(thread, "") + text[resumed.end() :]
        if call := _parse(at_us, thread, text):
            yield call


def _parse(at_us: int, thread: int, text: str) -> Call | None:
    if end := _END.match(text):
        return Call(at_us, thread, "exited" if end[1] else "killed", result=int(end[1] or 0))
    call = _CALL.match(text)
    if call is None:
        return None
    texts = tuple(bytes.fromhex(found[1].replace("\\x", "")) for found in _TEXT.finditer(call[2]))
    return Call(at_us, thread, call[1], _TEXT.sub("", call[2]), texts, int(call[3]))
