"""The agent's own directory: never in the state directory, never shared, and tried before it is used."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from agent.errors import SpoolError
from agent.ship.home import PROBE_PREFIX, OwnDirectory, try_to_write


@pytest.mark.parametrize("inside", ["state", "state/app/spool", "link/spool", "state/x/../spool"])
def test_refuses_the_state_directory(tmp_path: Path, inside: str) -> None:
    """A place in the state directory, also through a link, is refused before anything is made."""
    state = tmp_path / "state"
    state.mkdir()
    (tmp_path / "link").symlink_to(state)
    with pytest.raises(SpoolError, match=r"is inside the state directory .* elsewhere"):
        OwnDirectory(tmp_path / inside, state)
    refusal = try_to_write(tmp_path / inside, state)
    assert refusal is not None
    assert refusal.errno == errno.EPERM
    assert list(state.iterdir()) == []


def test_a_neighbour_of_the_state_directory_is_fine(tmp_path: Path) -> None:
    """A directory beside it, even with the same beginning of its name, is made and taken."""
    own = OwnDirectory(tmp_path / "own" / "state-spool", tmp_path / "own" / "state")
    assert own.path.is_dir()
    own.close()


def test_a_second_agent_is_refused(tmp_path: Path) -> None:
    """The message names the directory and what to do; when the first one lets go, it is free."""
    first = OwnDirectory(tmp_path, None)
    with pytest.raises(SpoolError, match=rf"{tmp_path} is in use by another .* its own"):
        OwnDirectory(tmp_path, None)
    first.close()
    OwnDirectory(tmp_path, None).close()


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    """What cannot be a directory says so, to the agent and to a preflight."""
    (tmp_path / "file").touch()
    with pytest.raises(SpoolError, match=r"cannot use .*file/spool: Not a directory"):
        OwnDirectory(tmp_path / "file" / "spool", None)
    refusal = try_to_write(tmp_path / "file", tmp_path / "state")
    assert refusal is not None
    assert refusal.errno == errno.ENOTDIR


def test_a_file_of_an_agent_with_the_same_process_id_does_not_matter(tmp_path: Path) -> None:
    """Containers number their processes alike, and a killed one leaves its file on the shared volume."""
    shared = tmp_path / "events"
    shared.mkdir()
    left = shared / f"{PROBE_PREFIX}{os.getpid()}"
    left.touch()
    assert try_to_write(shared, tmp_path / "state") is None
    assert list(shared.iterdir()) == [left]
