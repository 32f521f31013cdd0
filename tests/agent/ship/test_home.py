"""The spool's directory: never in the state directory, never shared."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.errors import SpoolError
from agent.ship.home import SpoolHome


@pytest.mark.parametrize("inside", ["state", "state/app/spool", "link/spool", "state/x/../spool"])
def test_refuses_the_state_directory(tmp_path: Path, inside: str) -> None:
    """A spool in the state directory, also through a link, is refused before anything is made."""
    state = tmp_path / "state"
    state.mkdir()
    (tmp_path / "link").symlink_to(state)
    with pytest.raises(SpoolError, match=r"lies in the state directory .* elsewhere"):
        SpoolHome(tmp_path / inside, state)
    assert list(state.iterdir()) == []


def test_a_neighbour_of_the_state_directory_is_fine(tmp_path: Path) -> None:
    """A directory beside it, even with the same beginning of its name, is taken."""
    SpoolHome(tmp_path / "state-spool", tmp_path / "state").close()


def test_a_second_agent_is_refused(tmp_path: Path) -> None:
    """The message names the directory and what to do; when the first one lets go, it is free."""
    first = SpoolHome(tmp_path, None)
    with pytest.raises(SpoolError, match=rf"{tmp_path} is in use by another .* of its own"):
        SpoolHome(tmp_path, None)
    first.close()
    SpoolHome(tmp_path, None).close()


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    """A spool that cannot be a directory says so."""
    (tmp_path / "spool").write_text("x")
    with pytest.raises(SpoolError, match=r"cannot use .*spool as spool"):
        SpoolHome(tmp_path / "spool", None)
