"""What `explain` reads of a directory of events: nothing below it is left out without a word."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.cli.recorded import Recorded
from agent.config import load_config


def test_a_folder_that_may_not_be_listed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents of several pods ship to one volume, each with its own user; `lost+found` is the volume's."""
    for folder in ("pod-a", "pod-b", "lost+found"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.jsonl").write_text(folder)
    listed = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith(("pod-b", "lost+found")):
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    recorded = Recorded(str(tmp_path), load_config(environment={}))
    assert list(recorded.lines()) == [b"pod-a"]
    assert (recorded.unread, recorded.segments) == ({str(tmp_path / "pod-b"): "Permission denied"}, 2)
