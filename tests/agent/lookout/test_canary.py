"""The canary: sent, waited for, missed; and its file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agent.home.canary import EVERY_S, LATE_AFTER_S, Canary


@pytest.fixture
def canary(tmp_path: Path) -> Canary:
    return Canary(tmp_path / "canary")


def there(canary: Canary) -> list[str]:
    return [path.name for path in canary.directory.iterdir()]


def test_it_is_sent_again_when_it_is_back_and_not_before(canary: Canary) -> None:
    """One at a time, at most every few seconds."""
    canary.check(0.0)
    canary.check(EVERY_S)
    assert there(canary) == ["canary-1"]
    assert canary.receive("canary-1")
    canary.check(EVERY_S - 0.1)
    assert there(canary) == ["canary-1"]
    canary.check(EVERY_S)
    assert there(canary) == ["canary-2"]


def test_it_is_late_when_it_stays_away(canary: Canary) -> None:
    """Late since it was sent; a late one that is given up counts as missed once."""
    canary.check(10.0)
    assert canary.late_since(10.0 + LATE_AFTER_S) is None
    assert canary.late_since(10.1 + LATE_AFTER_S) == 10.0
    canary.give_up(30.0)
    assert canary.missed == 1
    assert canary.late_since(1000.0) is None


def test_a_fence_does_not_hide_one_that_is_late(canary: Canary) -> None:
    """Sending another one changes nothing about how long the first is away."""
    canary.check(0.0)
    assert canary.fence(10.0) == 2
    assert canary.late_since(15.5) == 0.0
    canary.receive("canary-1")
    assert canary.late_since(15.5) == 0.0
    canary.receive("canary-2")
    assert canary.late_since(100.0) is None
    assert canary.seen == 2


def test_one_that_cannot_be_sent_is_not_waited_for(canary: Canary) -> None:
    """A disk that refuses makes the canary useless, not the watch deaf."""
    shutil.rmtree(canary.directory)
    canary.directory.write_text("a file in its place")
    canary.check(0.0)
    assert canary.is_stuck
    assert canary.late_since(100.0) is None
    assert canary.fence(1.0) is None


def test_the_file(canary: Canary) -> None:
    """One file, whose name is its number; leftovers of a killed agent are tidied, a lost file is rewritten."""
    assert canary.move(77)
    again = Canary(canary.directory)
    assert there(again) == ["canary-0"]
    assert again.move(1)
    assert again.move(2)
    assert there(again) == ["canary-2"]
    assert [again.receive(x) for x in ("canary-2", "new", "canary-x")] == [True, False, False]
    shutil.rmtree(again.directory)
    assert again.move(1)
    assert there(again) == ["canary-1"]
