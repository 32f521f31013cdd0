"""The agent's own directory: never in the state directory, and never shared."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.errors import HomeError
from agent.home.directory import OwnHome


def test_it_is_made_and_kept_for_one_agent(tmp_path: Path) -> None:
    """A second agent is refused until the first one lets go."""
    home = OwnHome(tmp_path / "own" / "home", tmp_path / "state")
    assert home.directory.is_dir()
    with pytest.raises(HomeError, match="in use by another"):
        OwnHome(home.directory, tmp_path / "state")
    home.close()
    OwnHome(home.directory, tmp_path / "state").close()


@pytest.mark.parametrize("inside", ["state", "state/app", "link/home"])
def test_it_is_never_in_the_state_directory(tmp_path: Path, inside: str) -> None:
    """Neither directly nor through a link; nothing is made there."""
    (tmp_path / "state").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "state")
    with pytest.raises(HomeError, match="never writes"):
        OwnHome(tmp_path / inside, tmp_path / "state")
    assert list((tmp_path / "state").iterdir()) == []


def test_a_place_that_cannot_be_used_is_reported(tmp_path: Path) -> None:
    """A file in its way ends the start with one sentence."""
    (tmp_path / "file").touch()
    with pytest.raises(HomeError, match=r"cannot use .*file/home as home"):
        OwnHome(tmp_path / "file" / "home", tmp_path / "state")
