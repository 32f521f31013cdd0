"""The canary: sent, waited for, missed; and its file."""

from __future__ import annotations

import shutil
from pathlib import Path

from agent.home.canary_file import CanaryFile, number_of
from agent.lookout.watch_keeper import EVERY_S, LATE_AFTER_S, Canary


def sent_by(moves: list[int]) -> Canary:
    """Give a canary whose moves are noted."""

    def move(number: int) -> bool:
        moves.append(number)
        return True

    return Canary(move)


def test_it_is_sent_again_when_it_is_back_and_not_before() -> None:
    """One at a time, at most every few seconds."""
    moves: list[int] = []
    canary = sent_by(moves)
    canary.check(0.0)
    canary.check(EVERY_S)
    assert moves == [1]
    canary.receive(1)
    canary.check(EVERY_S)
    assert moves == [1, 2]


def test_it_is_late_when_it_stays_away() -> None:
    """Late since it was sent; a late one that is given up counts as missed once."""
    canary = sent_by([])
    canary.check(10.0)
    assert canary.late_since(10.0 + LATE_AFTER_S) is None
    assert canary.late_since(10.1 + LATE_AFTER_S) == 10.0
    canary.give_up(30.0)
    assert canary.missed == 1
    assert canary.late_since(1000.0) is None


def test_a_fence_does_not_hide_one_that_is_late() -> None:
    """Sending another one changes nothing about how long the first is away."""
    canary = sent_by([])
    canary.check(0.0)
    assert canary.fence(10.0) == 2
    assert canary.late_since(15.5) == 0.0
    canary.receive(1)
    assert canary.late_since(15.5) == 0.0
    canary.receive(2)
    assert canary.late_since(100.0) is None
    assert canary.seen == 2


def test_one_that_cannot_be_sent_is_not_waited_for() -> None:
    """A disk that refuses makes the canary useless, not the watch deaf."""
    canary = Canary(lambda number: False)
    canary.check(0.0)
    assert canary.is_stuck
    assert canary.late_since(100.0) is None
    assert canary.fence(1.0) is None


def test_the_file(tmp_path: Path) -> None:
    """One file, whose name is its number; leftovers of a killed agent are tidied, a lost file is rewritten."""

    def there() -> list[str]:
        return [path.name for path in (tmp_path / "canary").iterdir()]

    CanaryFile(tmp_path / "canary").move(77)
    file = CanaryFile(tmp_path / "canary")
    assert there() == ["canary-0"]
    assert file.move(1)
    assert file.move(2)
    assert there() == ["canary-2"]
    assert [number_of(x) for x in ("canary-2", "new", "canary-x")] == [2, None, None]
    shutil.rmtree(tmp_path / "canary")
    assert file.move(1)
    assert there() == ["canary-1"]
    shutil.rmtree(tmp_path / "canary")
    (tmp_path / "canary").write_text("a file in its place")
    assert not file.move(2)
