"""The spool's directory: never in the state directory, never shared, never of a newer format."""

from __future__ import annotations

import json
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


def test_the_position_belongs_to_its_boot(tmp_path: Path) -> None:
    """The last sequence is remembered for the boot that wrote it and means nothing to another."""
    home = SpoolHome(tmp_path, None)
    home.write_position("b1", 41)
    home.close()
    home = SpoolHome(tmp_path, None)
    assert (home.last_sequence("b1"), home.last_sequence("b2")) == (41, 0)
    home.close()


def test_a_newer_format_is_refused_untouched(tmp_path: Path) -> None:
    """A spool of a later release stays as it is, and is not kept locked."""
    content = json.dumps({"format": 3, "boot_id": "b", "last_sequence": 1})
    (tmp_path / "spool.json").write_text(content)
    (tmp_path / "b-000000000001.open").write_text("unknown to us")
    for _ in range(2):
        with pytest.raises(SpoolError, match="has format 3, this agent knows up to 2"):
            SpoolHome(tmp_path, None)
    assert (tmp_path / "spool.json").read_text() == content
    assert (tmp_path / "b-000000000001.open").read_text() == "unknown to us"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b-000000000001.open", "spool.json"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 1}', '{"format": "x"}'])
def test_an_unreadable_position_is_no_obstacle(tmp_path: Path, content: str) -> None:
    """A damaged position file starts anew."""
    (tmp_path / "spool.json").write_text(content)
    home = SpoolHome(tmp_path, None)
    assert home.last_sequence("b") == 0
    home.close()
