"""Times, numbers and sizes as people write them."""

from __future__ import annotations

import pytest

from agent.publish import page

NOW_US = 1_700_000_000_000_000


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7_200, "2 h"), (172_800, "2 days")]
)
def test_durations(seconds: float, text: str) -> None:
    """The unit grows with the duration."""
    assert page.span(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (123 << 20, "123 MiB"), (5 << 50, "5120 TiB")],
)
def test_sizes(count: int, text: str) -> None:
    """Sizes are binary, with three digits or so."""
    assert page.size(count) == text


def test_moments() -> None:
    """A time of today has no date; a clock that was set back gives no negative age."""
    assert page.moment(NOW_US - 5_000_000, NOW_US).endswith(">22:13:15</time> <small>5 s ago</small>")
    assert "2023-11-13 " in page.moment(NOW_US - 86_400_000_000, NOW_US)
    assert "in 5 s" in page.moment(NOW_US + 5_000_000, NOW_US)


def test_numbers() -> None:
    """Thousands are set apart; what is not known is a dash."""
    assert page.number(1234567) == "1\u202f234\u202f567"
    assert page.number(None) == "-"
    assert [page.plural(count, "task") for count in (0, 1, 2)] == ["0 tasks", "1 task", "2 tasks"]
