"""The private directory: links and copies of one moment, gone at any end, nothing written where it reads."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from agent.errors import UsageError
from agent.interrupt import guarded
from agent.verify.view import View, private_directory


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Give files as RocksDB names them; their content does not matter here."""
    path = tmp_path / "state" / "store"
    path.mkdir(parents=True)
    for name, content in (
        ("CURRENT", "MANIFEST-000005\n"),
        ("MANIFEST-000005", "manifest"),
        ("MANIFEST-000001", "old"),
        ("000007.sst", "seven"),
        ("000008.blob", "eight"),
        ("LOG", "log"),
        ("LOCK", ""),
    ):
        (path / name).write_text(content)
    return path


UNCUT = 1_000
"""Added to a count of lines: no exit code of a signal."""


def test_a_view_has_the_data_files_and_the_manifest(database: Path, tmp_path: Path) -> None:
    """Data by links to open files, CURRENT and its manifest as copies, nothing else; later nothing is left."""
    work = tmp_path / "work"
    work.mkdir()
    with closing(View(database, work)) as view:
        found = {x.name: (x.is_symlink(), x.read_text()) for x in view.directory.iterdir()}
        assert view.written_s == max(
            x.stat().st_mtime for x in database.iterdir() if x.suffix in (".sst", ".blob")
        )
    assert found == {
        "CURRENT": (False, "MANIFEST-000005\n"),
        "MANIFEST-000005": (False, "manifest"),
        "000007.sst": (True, "seven"),
        "000008.blob": (True, "eight"),
    }
    assert list(work.iterdir()) == []


def test_a_file_that_is_deleted_stays_readable(database: Path, tmp_path: Path) -> None:
    """A compaction goes on while the view is read."""
    with closing(View(database, tmp_path)) as view:
        (database / "000007.sst").unlink()
        assert (view.directory / "000007.sst").read_text() == "seven"


def test_a_manifest_that_moves_is_read_again(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CURRENT names another one after the copy: everything begins again, with the file that came."""
    listdir, rounds = os.listdir, iter(range(100))

    def move(path: int) -> list[str]:
        if next(rounds) == 0:
            names = listdir(path)
            (database / "MANIFEST-000009").write_text("new")
            (database / "000011.sst").write_text("eleven")
            (database / "CURRENT").write_text("MANIFEST-000009\n")
            (database / "MANIFEST-000005").unlink()
            return names
        return listdir(path)

    monkeypatch.setattr(os, "listdir", move)
    with closing(View(database, tmp_path)) as view:
        names = {x.name for x in view.directory.iterdir()}
    assert names == {"CURRENT", "MANIFEST-000009", "000007.sst", "000008.blob", "000011.sst"}


def test_what_is_no_database_is_refused(database: Path, tmp_path: Path) -> None:
    """Without CURRENT, or not there at all."""
    (database / "CURRENT").unlink()
    with pytest.raises(UsageError, match="there is no CURRENT"):
        View(database, tmp_path)
    with pytest.raises(UsageError, match="it is gone"):
        View(database / "no", tmp_path)
    assert [x.name for x in tmp_path.iterdir()] == ["state"]


def test_no_descriptor_is_left(database: Path, tmp_path: Path) -> None:
    """Neither after a close nor after a refusal."""
    before = len(os.listdir("/proc/self/fd"))
    View(database, tmp_path).close()
    (database / "CURRENT").unlink()
    with pytest.raises(UsageError):
        View(database, tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_private_directory_is_never_in_the_state_directory(tmp_path: Path) -> None:
    """Not even below it."""
    inner = tmp_path / "state" / "app"
    inner.mkdir(parents=True)
    with (
        pytest.raises(UsageError, match="nothing is ever written"),
        private_directory(inner, tmp_path / "state"),
    ):
        pytest.fail("made")


def test_it_is_gone_after_an_interrupt_at_any_point(tmp_path: Path) -> None:
    """While it is made, used or removed: before each line that runs."""
    work = tmp_path / "work"
    work.mkdir()

    def use(point: int) -> int:
        """Return how many lines ran."""
        seen = 0

        def trace(_frame: FrameType, event: str, _argument: object) -> Callable[..., Any]:
            nonlocal seen
            seen += event == "line"
            if seen == point and event == "line":
                os.kill(os.getpid(), signal.SIGTERM)
            return trace

        before = sys.gettrace()
        try:
            sys.settrace(trace)
            with private_directory(work, tmp_path / "state") as made:
                assert made.stat().st_mode & 0o777 == 0o700
                (made / "file").touch()
        finally:
            sys.settrace(before)
        return UNCUT + seen

    # how many lines run is known when one ends before its point: Python keeps things in memory
    point, code = 0, 143
    while code == 143:
        point += 1
        code = guarded(partial(use, point))
        assert (point, list(work.iterdir())) == (point, [])
    assert point > 50
    assert UNCUT <= code < UNCUT + point


def test_a_second_interrupt_does_not_keep_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for an end presses Ctrl-C again."""
    work = tmp_path / "work"
    work.mkdir()
    remove = shutil.rmtree

    def slowly(*arguments: Any, **named: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        remove(*arguments, **named)

    monkeypatch.setattr(shutil, "rmtree", slowly)

    def use() -> int:
        with private_directory(work, tmp_path / "state"):
            os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("went on")

    assert guarded(use) == 130
    assert list(work.iterdir()) == []
