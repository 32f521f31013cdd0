"""What `/metrics` answers, read back."""

from __future__ import annotations


def series_of(text: str) -> dict[str, float]:
    """Parse an exposition: series as written -> value."""
    rows = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {series: float(value) for series, _, value in rows}
