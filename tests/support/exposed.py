"""What an agent answers, read back."""

from __future__ import annotations

import urllib.request


def answered(url: str, timeout_s: float = 10) -> str | None:
    """Ask once; None: nobody answers, or not with 200."""
    try:
        with urllib.request.urlopen(url, timeout=timeout_s) as answer:
            return str(answer.read().decode())
    except OSError:
        return None


def series_of(text: str) -> dict[str, float]:
    """Parse an exposition: series as written -> value."""
    rows = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {series: float(value) for series, _, value in rows}


def scraped(url: str, timeout_s: float = 10) -> dict[str, float]:
    """Scrape an agent once; empty if it does not answer."""
    return series_of(answered(f"{url}/metrics", timeout_s) or "")
