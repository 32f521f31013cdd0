"""Frozen options of a run and the parsing of what the command line gives; no Spark, no environment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from agent.contract.codec import epoch_us
from agent.contract.reporting import GUARANTEES, REPORTED_SETTINGS
from spark_rollup.errors import UnreadError, UsageError

MARKER = "_bronze.json"
"""This file makes a directory a bronze directory."""

MAX_LOOK_BACK_DAYS = 3650

ALL = "all"
"""`--look-back all`: from the first event on."""

ANY = "any"
"""`--max-age any`: however old."""

INTEGER_KEYS = tuple(row.name for row in REPORTED_SETTINGS if row.is_number)
KEYS = tuple(row.name for row in REPORTED_SETTINGS)


@dataclass(frozen=True, slots=True)
class Override:
    """One `--set`: a setting of one application, or of all when `application_id` is None."""

    application_id: str | None
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """Everything that decides the outcome of one audit."""

    input: Path | Folder  # directory with the agents' segments, or bronze made by `ingest`
    output: Path  # directory for tables, JSON lines and report; made if missing
    as_of_us: int | None = None
    """Ignore what is later than this (microseconds since the epoch); None = newest event."""
    overrides: tuple[Override, ...] = field(default=())  # settings that win over what the agents reported
    look_back_days: int | None = None
    """Stories that ended before (midnight UTC, so many days before the audit's day) are left out; None = none is."""
    every_event: bool = False  # whether days that have a snapshot are read event by event
    verified: Path | None = None
    """Output of `verify`, whose findings are shown with the others; None = there is none."""
    expect: tuple[tuple[str, str], ...] | None = None
    """Namespace and pod of those that should have an agent; None = that was not said."""


def parse_as_of(text: str, option: str = "--as-of") -> int:
    """Read an ISO 8601 time as microseconds since the epoch; without a zone it is UTC.

    Raises:
        UsageError: not a time.
    """
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            f"{option} {text!r} is not an ISO 8601 time, for example 2026-11-20T14:00:00Z"
        ) from error
    return epoch_us(when if when.tzinfo else when.replace(tzinfo=UTC))


def parse_age(text: str) -> int | None:
    """Read `--max-age`: a number with `s`, `m`, `h` or `d`, in seconds; `any` is None.

    Raises:
        UsageError: neither.
    """
    if text == ANY:
        return None
    size = {"s": 1, "m": 60, "h": 3600, "d": 86_400}.get(text[-1:])
    if size is None or not (text[:-1].isascii() and text[:-1].isdigit()):
        raise UsageError(f"--max-age {text!r} is neither like 15m (s, m, h or d) nor {ANY}")
    return int(text[:-1]) * size


def parse_look_back(text: str | None) -> int | None:
    """Read `--look-back`: a number of days; not given, or `all`: None.

    Raises:
        UsageError: neither.
    """
    if text is None or text == ALL:
        return None
    if not text.isdecimal() or not 1 <= int(text) <= MAX_LOOK_BACK_DAYS:
        raise UsageError(
            f"--look-back {text!r} is neither a number of days from 1 to {MAX_LOOK_BACK_DAYS} nor {ALL}"
        )
    return int(text)


def parse_conf(texts: Iterable[str]) -> dict[str, str]:
    """Read `KEY=VALUE` texts of Spark's settings; the last one for a key wins.

    Raises:
        UsageError: names the key of the first that is not one; never a value, which may be a secret.
    """
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.startswith("spark."):
            raise UsageError(f"--spark-conf {key!r} is not spark.KEY=VALUE")
        found[key] = value
    return found


def parse_overrides(texts: Iterable[str]) -> tuple[Override, ...]:
    """Read `[ID:]KEY=VALUE` texts; the last one for a key wins.

    Raises:
        UsageError: lists every problem found.
    """
    problems: list[str] = []
    found: dict[tuple[str | None, str], Override] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        application, colon, key = name.rpartition(":")
        problem = _problem(text, equals, key, value)
        if problem:
            problems.append(problem)
            continue
        override = Override(application if colon else None, key, value)
        found[override.application_id, key] = override
    if problems:
        raise UsageError("; ".join(problems))
    return tuple(found.values())


def named_in(overrides: Iterable[Override]) -> list[str]:
    """List the applications that `--set` names."""
    return sorted({one.application_id for one in overrides if one.application_id is not None})


def _problem(text: str, equals: str, key: str, value: str) -> str | None:
    if not equals:
        return f"--set {text!r} is not KEY=VALUE or ID:KEY=VALUE"
    if key not in KEYS:
        return f"--set {text!r}: unknown setting {key!r}; known: {', '.join(sorted(KEYS))}"
    if key in INTEGER_KEYS and not (value.isascii() and value.isdigit()):
        return f"--set {text!r}: {key} must be a whole number, 0 or more"
    if key == "processing_guarantee" and value not in GUARANTEES:
        return f"--set {text!r}: processing_guarantee must be one of {', '.join(GUARANTEES)}"
    if key == "kafka_streams_version" and not all(part.isdigit() for part in value.split(".")[:3]):
        return f"--set {text!r}: kafka_streams_version must have the form 3.9.2"
    return None


def literal(path: Path | str) -> str:
    """Keep Spark from taking a path that it reads for a pattern; what it writes it takes as it is."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", str(path))


def check_directories(source: Path, target: Path, *, may_be_empty: bool = False) -> None:
    """Refuse an input without segments (unless they may come later) and an output that would be read as input.

    Raises `UsageError`: says which directory and why.
    """
    check_input(source, may_be_empty=may_be_empty)
    if target.exists() and not target.is_dir():
        raise UsageError(f"output {target} is not a directory")
    here, there = source.resolve(), target.resolve()
    if here == there or here in there.parents or there in here.parents:
        raise UsageError(f"output {target} and input {source} must not lie inside each other")


def check_input(source: Path, *, may_be_empty: bool = False) -> None:
    """Refuse an input without anything to read.

    Raises:
        UsageError: says what is wrong.
    """
    if not source.exists():
        raise UsageError(f"input {source} does not exist")
    if not source.is_dir():
        raise UsageError(f"input {source} is not a directory")
    try:
        readable = has_events(source) or may_be_empty
    except OSError as error:
        raise UnreadError(f"input {source} cannot be read: {error.strerror or error}") from error
    if not readable:
        raise UsageError(f"input {source} holds no *.jsonl or *.jsonl.gz file and is not a bronze directory")


def size_of(source: Path) -> int:
    """Sum up the sizes of all files below a directory, bytes."""
    total = 0
    for path in source.rglob("*"):
        with suppress(OSError):  # gone meanwhile, or a link to nowhere
            total += path.stat().st_size if path.is_file() else 0
    return total


def has_events(source: Path) -> bool:
    """Return whether the directory holds anything to read; hidden names are skipped as Spark does."""
    if is_bronze(source):
        return True
    next(source.iterdir(), None)  # raises where the directory may not be listed
    return any(path.endswith((".jsonl", ".jsonl.gz")) for path, _ in files_below(str(source)))


def files_below(source: str) -> Iterator[tuple[str, int | None]]:
    """Give what is below a directory, by path and size (bytes), links followed; hidden names are skipped as Spark does.

    None = it is there and does not tell its size: a folder that may not be listed, a file that may not be asked, a
    broken link. `lost+found` is everybody's who made the volume.
    """
    refused: list[str] = []

    def note(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            refused.append(str(error.filename))

    seen: set[tuple[int, int]] = set()
    for folder, folders, names in os.walk(source, onerror=note, followlinks=True):
        folders[:] = [x for x in sorted(folders) if x != "lost+found" and not x.startswith(("_", "."))]
        with suppress(OSError):
            here = os.stat(folder)  # noqa: PTH116 - as `os.walk` gives it
            if (here.st_dev, here.st_ino) in seen:
                folders.clear()
                continue
            seen.add((here.st_dev, here.st_ino))
        for path in (f"{folder}/{name}" for name in names if not name.startswith(("_", "."))):
            try:
                yield path, os.stat(path).st_size  # noqa: PTH116 - the same
            except OSError as error:
                if not isinstance(error, FileNotFoundError) or os.path.islink(path):  # noqa: PTH114
                    yield path, None
    yield from ((path, None) for path in refused)


class Folder(Protocol):
    """What is asked of a place: a path of the file system, or one of an object store."""

    def __truediv__(self, name: str) -> Folder:
        """Go down."""
        ...

    def exists(self) -> bool:
        """Return whether there is anything."""
        ...


def is_bronze(source: Path | Folder) -> bool:
    """Return whether `ingest` made this."""
    return (source / MARKER).exists()
