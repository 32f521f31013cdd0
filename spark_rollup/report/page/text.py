"""Text for the page: escaping of whatever names the disk held, times, numbers."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime

from agent.contract.codec import FIRST_US, LAST_US

CLIP = 2000
"""Longer texts are cut: agents' words are free text."""

NAMED = 12
"""A line has so many names; of more it gives the number."""


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


def clip(value: object, limit: int = CLIP) -> str:
    """Make a text safe, and cut it where it is longer than a page has room for."""
    text = "" if value is None else str(value)
    left = len(text) - limit
    return f"{escape(text[:limit])} &hellip; ({left} characters more)" if left > 0 else escape(text)


def name(value: object) -> str:
    """Write a name from disk so that its text direction cannot disturb its surroundings."""
    return f"<bdi>{clip(value, 300)}</bdi>"


def named(values: Sequence[object], limit: int = NAMED) -> str:
    """List names for a line of text; behind the first ones it is a number."""
    more = f" and {len(values) - limit} more" if len(values) > limit else ""
    return ", ".join(map(name, values[:limit])) + more


def clock(at_us: int, *, millis: bool = False) -> str:
    """Write the time of day, UTC."""
    text = _utc(at_us).strftime("%H:%M:%S")
    return f"{text}.{at_us % 1_000_000 // 1000:03d}" if millis else text


def stamp(at_us: int) -> str:
    """Write date and time, UTC."""
    return f"{day(at_us)} {clock(at_us)} UTC"


def moment(at_us: int) -> str:
    """Write date and time as an element that machines can read."""
    return f'<time datetime="{_utc(at_us).strftime("%Y-%m-%dT%H:%M:%SZ")}">{stamp(at_us)}</time>'


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


def span(seconds: float) -> str:
    """Write a duration in the unit that people would use."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min"
    if seconds < 2 * 86_400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86_400:.0f} days"


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


def size(value: object) -> str:
    """Write a number of bytes: `812 B`, `3.4 GiB`."""
    amount, units = number(value), ["B", "KiB", "MiB", "GiB", "TiB"]
    while amount >= 1024 and len(units) > 1:
        amount, units = amount / 1024, units[1:]
    return f"{amount:.0f} {units[0]}" if amount >= 100 or units[0] == "B" else f"{amount:.1f} {units[0]}"


def items_of(value: object) -> list[object]:
    """Read a list from a row; null is empty."""
    return list(value) if isinstance(value, list | tuple) else []
