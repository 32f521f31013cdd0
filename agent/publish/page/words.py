"""Text for the page: escaping of whatever names the disk held, times, numbers."""

from __future__ import annotations

import html
import unicodedata
from datetime import UTC, datetime

_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
"""Control, formatting (right-to-left overrides), surrogate and line-separating characters."""


def escape(value: object) -> str:
    """Make any value safe inside an element or a quoted attribute; hidden characters become visible."""
    shown = "".join(
        f"\\u{ord(char):04x}" if unicodedata.category(char) in _HIDDEN else char for char in str(value)
    )
    return html.escape(shown, quote=True)


def name(value: object) -> str:
    """Write a name from disk so that its text direction cannot disturb its surroundings."""
    return f"<bdi>{escape(value)}</bdi>"


def moment(at_us: int, now_us: int) -> str:
    """Write a time with its distance: `14:03:11 (2 min ago)`, with the date where it is another day."""
    at = datetime.fromtimestamp(at_us / 1_000_000, UTC)
    same_day = at.date() == datetime.fromtimestamp(now_us / 1_000_000, UTC).date()
    text = at.strftime("%H:%M:%S" if same_day else "%Y-%m-%d %H:%M:%S")
    ago_s = (now_us - at_us) / 1_000_000
    distance = f"{span(ago_s)} ago" if ago_s >= 0 else f"in {span(-ago_s)}"
    return f'<time datetime="{at.strftime("%Y-%m-%dT%H:%M:%SZ")}">{text}</time> <small>{distance}</small>'


def span(seconds: float) -> str:
    """Write a duration in the unit that people would use."""
    for limit_s, size_s, unit in ((120, 1, "s"), (7_200, 60, "min"), (172_800, 3_600, "h")):
        if seconds < limit_s:
            return f"{seconds / size_s:.0f} {unit}"
    return f"{seconds / 86_400:.0f} days"


def number(value: int | None) -> str:
    """Write a whole number in groups of three; a dash for an unknown one."""
    return "-" if value is None else f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def size(value_bytes: int) -> str:
    """Write a size: `812 B`, `3.4 MiB`."""
    value, units = float(value_bytes), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{value:.0f} {units[0]}" if value >= 100 or units[0] == "B" else f"{value:.1f} {units[0]}"


def plural(count: int, word: str) -> str:
    """Write a number with its word: `1 task`, `2 tasks`."""
    return f"{number(count)} {word}{'' if count == 1 else 's'}"
