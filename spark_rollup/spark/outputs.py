"""Where an audit, or a comparison with changelogs, writes: below `.next` first, then in one go to its place.

Files of others are never touched. The last good report stays until the new one is whole. Cut off in between, the next
run goes on where this one stopped.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from spark_rollup.errors import UnreadError, UsageError

MARKER = "_SUCCESS.json"
"""Written last: the report is whole, and up to when it reads."""

OURS = "_audit.json"
"""This file makes a directory one that audits write to."""

NEXT, LAST = ".next", ".last"

TABLES = (
    "findings", "incidents", "timelines", "coverage", "pods", "churn", "restarts", "quarantine", "verdicts",
)  # fmt: skip
FILES = (
    "findings.jsonl", "incidents.jsonl", "report.html", "verdicts.jsonl", "restarts.json", "since_last.json",
)  # fmt: skip

AUDIT, VERIFY = "audit", "verify"
"""Commands that write; neither writes where the other did."""

_WRITTEN = re.compile(r"\.?(part-.*|_SUCCESS)(\.crc)?")
"""What Spark writes into a table's directory."""

_OF_VOLUME = "lost+found"
"""Every fresh ext4 volume has it."""

_NAMED = 3
"""So many foreign files are named in a refusal."""


def check_output(output: Path, writer: str = AUDIT) -> None:
    """Refuse a directory that holds anything but what this command wrote.

    Raises:
        UsageError: says what is there and what to do.
    """
    try:
        there = sorted(path.name for path in output.iterdir()) if output.exists() else []
        there = [name for name in there if name != _OF_VOLUME]
        foreign = [str(path.relative_to(output)) for name in TABLES for path in _foreign(output / name)]
    except OSError as error:
        raise UnreadError(f"output {output} cannot be read: {error.strerror or error}") from error
    if there and not is_ours(output, writer):
        raise UsageError(
            f"output {output} is not empty and no {writer} wrote it ({_some(there)}): name a new or an empty directory"
        )
    if foreign:
        raise UsageError(
            f"output {output} holds what no {writer} wrote ({_some(foreign)}): move it elsewhere"
        )


def begin(output: Path, writer: str = AUDIT) -> Path:
    """Give the empty directory to write to.

    Raises:
        UsageError: it is foreign, or cannot be written.
    """
    check_output(output, writer)
    try:
        output.mkdir(parents=True, exist_ok=True)
        (output / OURS).write_text(json.dumps({"written_by": _signature(writer)}) + "\n", encoding="ascii")
        place = output / NEXT
        if (place / MARKER).exists():  # whole, and cut off on its way to its place
            swap(output)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
    except OSError as error:
        raise UsageError(f"output {output} cannot be written: {error.strerror or error}") from error
    return place


def swap(output: Path) -> None:
    """Put what is whole below `.next` in place of the last report."""
    place, last = output / NEXT, output / LAST
    _clear(last)  # left behind by a run that was cut off
    last.mkdir(exist_ok=True)
    (output / MARKER).unlink(missing_ok=True)
    for name in (*TABLES, *FILES, MARKER):
        if (place / name).exists():
            if (output / name).exists():
                os.replace(output / name, last / name)  # noqa: PTH105 - a directory, too
            os.replace(place / name, output / name)  # noqa: PTH105
    shutil.rmtree(place)
    _clear(last)


def _clear(last: Path) -> None:
    """Remove what audits wrote; foreign files next to it stay."""
    for path in sorted(last.rglob("*"), reverse=True):
        if path.is_file() and (path.parent == last or _WRITTEN.fullmatch(path.name)):
            path.unlink()
    for folder in (*sorted(filter(Path.is_dir, last.rglob("*")), reverse=True), last):
        with suppress(OSError):  # not empty, or not there
            folder.rmdir()


def _signature(writer: str) -> str:
    return f"statewarden-rollup {writer}"


def is_ours(output: Path, writer: str) -> bool:
    """Return whether this command made the directory."""
    try:
        return bool(
            json.loads((output / OURS).read_text(encoding="ascii"))["written_by"] == _signature(writer)
        )
    except FileNotFoundError:
        pass
    except (OSError, ValueError, KeyError, TypeError):
        return writer == AUDIT  # cut off while it was written
    try:  # reports of former releases have this one only
        return "watermark" in json.loads((output / MARKER).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return False


def _foreign(table: Path) -> list[Path]:
    return [path for path in table.rglob("*") if path.is_file() and not _WRITTEN.fullmatch(path.name)] + (
        [table] if table.is_file() else []
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
