"""Opening and listing below the root."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.watch.tree_watch import list_names, open_below, open_root


def test_directory_is_opened_and_listed(tmp_path: Path) -> None:
    """Directories and other names are told apart; a symbolic link to a directory is not a directory."""
    (tmp_path / "a" / "b" / "d").mkdir(parents=True)
    (tmp_path / "a" / "b" / "f").touch()
    (tmp_path / "a" / "b" / "l").symlink_to("d")
    with open_root(tmp_path) as root, open_below(root, "a/b") as directory:
        assert sorted(list_names(directory)) == [("d", True), ("f", False), ("l", False)]


@pytest.mark.parametrize("path", ["l", "l/b", "a/l"])
def test_symbolic_link_ends_the_way(tmp_path: Path, path: str) -> None:
    """A link is not followed, neither on the way nor at its end."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "l").symlink_to("a")
    (tmp_path / "a" / "l").symlink_to("b")
    with open_root(tmp_path) as root, pytest.raises(OSError), open_below(root, path):
        pass


def test_root_may_be_a_symbolic_link(tmp_path: Path) -> None:
    """The state directory itself is opened as it was configured."""
    (tmp_path / "real" / "a").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    with open_root(tmp_path / "link") as root:
        assert list_names(root) == [("a", True)]


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    """Success and failure alike give every descriptor back."""
    (tmp_path / "a").mkdir()
    before = len(os.listdir("/proc/self/fd"))
    with open_root(tmp_path) as root:
        with open_below(root, "a") as directory:
            list_names(directory)
        with pytest.raises(FileNotFoundError), open_below(root, "a/missing"):
            pass
    assert len(os.listdir("/proc/self/fd")) == before
