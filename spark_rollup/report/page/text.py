"""Text for the page: escaping of whatever names the disk held, times, numbers."""

from __future__ import annotations

import hashlib
import html
import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime

from agent.contract.codec import FIRST_US, LAST_US
from spark_rollup.config import AGENT
from spark_rollup.report.page.data import PageData, Row, TaskKey

PAGE = 25
"""How many blocks of one kind are shown at once."""


def escape(value: object) -> str:
    """Make any value safe inside an element or a quoted attribute.

    Control, formatting (such as right-to-left overrides) and unpaired surrogate characters become visible escapes.
    """
    text = "" if value is None else str(value)
    if text.isascii() and text.isprintable():  # nearly every text, and many thousands of them
        return html.escape(text, quote=True)
    shown = "".join(
        _visible(char) if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co") else char for char in text
    )
    return html.escape(shown, quote=True)


def _visible(char: str) -> str:
    return f"\\u{ord(char):04x}"


def name(value: object) -> str:
    """Write a name from disk so that its text direction cannot disturb its surroundings."""
    return f"<bdi>{escape(value)}</bdi>"


def clock(at_us: int, *, millis: bool = False) -> str:
    """Write the time of day, UTC."""
    text = _utc(at_us).strftime("%H:%M:%S")
    return f"{text}.{at_us % 1_000_000 // 1000:03d}" if millis else text


def day(at_us: int) -> str:
    """Write the date, UTC."""
    return _utc(at_us).date().isoformat()


def _utc(at_us: int) -> datetime:
    return datetime.fromtimestamp(min(max(at_us, FIRST_US), LAST_US) // 1_000_000, UTC)


def parse_us(text: object) -> int | None:
    """Read RFC 3339 as microseconds since the epoch; None if it is no time (agents' evidence is free text)."""
    try:
        when = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    if when.tzinfo is None:
        return None
    elapsed = when - datetime(1970, 1, 1, tzinfo=UTC)
    return (elapsed.days * 86_400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds


def first_seen_us(data: PageData) -> int:
    """Find when the covered time begins, microseconds since the epoch."""
    times = (parse_us(row["first_seen"]) or data.as_of_us for row in data.coverage)
    return min(times, default=data.as_of_us)


def task_key(row: Row) -> TaskKey:
    """Name the task of a row."""
    return str(row["namespace"]), str(row["application_id"]), str(row["task_id"])


def natural(key: TaskKey) -> list[tuple[int, int, str]]:
    """Order tasks as people count: `0_2` before `0_10`."""
    parts = re.split(r"([0-9]+)", "/".join(key))
    return [(0, int(part), "") if part.isascii() and part.isdigit() else (1, 0, part) for part in parts]


def timeline_id(key: TaskKey) -> str:
    """Give a task's drawing an address that no name from disk can break."""
    return f"t-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}"


def anchor(row: Row) -> str:
    """Give a finding an address on the page; two pods' agents may report one finding by one id."""
    if row["reported_by"] != AGENT:
        return f"f-{escape(row['id'])}"
    return f"f-{hashlib.sha256(repr((row['namespace'], row['pod'], row['id'])).encode()).hexdigest()[:16]}"


def has_namespaces(data: PageData) -> bool:
    """Return whether pods and tasks must be named with their namespace."""
    return len({row["namespace"] for row in (*data.findings, *data.pods)}) > 1


def service(row: Row) -> str:
    """Name the application that a row is about, with its namespace."""
    return "/".join(name(part) for part in (row["namespace"], row["application_id"]) if part) or "the fleet"


def span(seconds: float) -> str:
    """Write a duration in the unit that people would use."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def count(number: int, noun: str) -> str:
    """Write `1 pod`, `2 pods`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}".replace(",", "\u202f")


def integer(value: object) -> int:
    """Read a number from a row; null is 0."""
    return int(str(value)) if value is not None else 0


def number(value: object) -> float:
    """Read a fractional number from a row; null is 0."""
    return float(str(value)) if value is not None else 0.0


def percent(share: float) -> str:
    """Write a share; only all of it is 100 %."""
    text = f"{share * 100:.1f}"
    return "100\u202f%" if text == "100.0" and share >= 1 else f"{min(float(text), 99.9):.1f}\u202f%"


def items_of(value: object) -> list[object]:
    """Read a list from a row; null is empty."""
    return list(value) if isinstance(value, list | tuple) else []


def place(row: Row) -> str:
    """Name the task, store and pod that a row is about."""
    task = (
        f"{name(row['task_id'])}"
        if row["task_id"]
        else name(row["application_id"])
        if row["application_id"]
        else ""
    )
    store = f" / {name(row['store'])}" if row.get("store") else ""
    pod = name(row["pod"]) if row["pod"] else ""
    return f"{task}{store}{' on ' if task and pod else ''}{pod}" or "fleet"


def paged(blocks: Sequence[str], noun: str, size: int = PAGE) -> list[str]:
    """Fold everything behind the first page, so that thousands of blocks open as fast as a few."""
    parts = list(blocks[:size])
    for start in range(size, len(blocks), size):
        some = blocks[start : start + size]
        head = f"{noun} {start + 1} to {start + len(some)} of {len(blocks)}"
        parts.append(f'<details class="page"><summary>{head}</summary>{"".join(some)}</details>')
    return parts
