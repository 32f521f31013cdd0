"""Stores of a state directory, and the changelogs that are theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.errors import UsageError
from agent.verify.places import Store, find_stores


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    """Give two applications, tasks of a named topology and a global one among them."""
    for path in (
        "app/0_1/rocksdb/kv",
        "app/0_1/win/win.1000",
        "app/0_1/win/win.2000",
        "app/0_1/win/lost+found",
        "app/__top__/2_3/rocksdb/named",
        "app/global/rocksdb/everywhere",
        "other/0_0/rocksdb/kv",
        "lost+found/0_0",
    ):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "app" / "kafka-streams-process-metadata").touch()
    return tmp_path


def test_every_store_is_listed_with_its_databases(state_dir: Path) -> None:
    """By application, task and name; global ones, which have all partitions of their topics, come last."""
    found = {x.path: x for x in find_stores(state_dir)}
    assert list(found) == [
        "app/0_1/kv", "app/0_1/win", "app/__top__/2_3/named", "other/0_0/kv", "app/global/everywhere",
    ]  # fmt: skip
    assert [x.path for x in found.values() if x.is_global] == ["app/global/everywhere"]
    assert found["app/0_1/kv"].database == state_dir / "app/0_1/rocksdb/kv"
    assert found["app/0_1/win"].segments == {
        1000: state_dir / "app/0_1/win/win.1000",
        2000: state_dir / "app/0_1/win/win.2000",
    }


def test_the_choice_can_be_narrowed(state_dir: Path) -> None:
    """By application, task and store."""
    assert [x.name for x in find_stores(state_dir, application="app", task="0_1")] == ["kv", "win"]
    assert [x.application for x in find_stores(state_dir, name="kv")] == ["app", "other"]
    assert [x.task for x in find_stores(state_dir, application="app", name="everywhere")] == ["global"]
    assert find_stores(state_dir, task="7_7") == []


def test_the_changelog_follows_from_the_names(state_dir: Path) -> None:
    """Application and store, with a named topology between; the partition is the task's."""
    found = {
        x.name: (x.changelog, x.partition)
        for x in find_stores(state_dir, application="app")
        if not x.is_global
    }
    assert found == {
        "kv": ("app-kv-changelog", 1),
        "win": ("app-win-changelog", 1),
        "named": ("app-top-named-changelog", 3),
    }


@pytest.mark.parametrize(("has_process_file", "offset"), [(True, 7), (False, 6)])
def test_an_old_checkpoint_is_the_next_offset(tmp_path: Path, has_process_file: bool, offset: int) -> None:
    """Without a sign of 2.6.2 or later one less is claimed, which is true of both; -4 stays what it is."""
    (tmp_path / ".checkpoint").write_text("0\n2\nt 0 7\nu 0 -4\n")
    store = Store("app", "0_0", "s", tmp_path, has_process_file=has_process_file)
    assert store.checkpointed() == {("t", 0): offset, ("u", 0): -4}


def test_a_checkpoint_that_is_damaged_is_said(tmp_path: Path) -> None:
    """None at all is no mistake."""
    store = Store("app", "0_0", "s", tmp_path)
    assert store.checkpointed() == {}
    (tmp_path / ".checkpoint").write_text("9\n")
    with pytest.raises(UsageError, match="expected version"):
        store.checkpointed()
