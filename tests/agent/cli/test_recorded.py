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
    (tmp_path / "pod-a" / "circle").symlink_to(tmp_path)
    (tmp_path / "pod-a" / "gone.jsonl").symlink_to("nowhere")
    listed = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith(("pod-b", "lost+found")):
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    recorded = Recorded(str(tmp_path), load_config(environment={}))
    assert list(recorded.lines()) == [b"pod-a"]
    assert set(recorded.unread) == {str(tmp_path / "pod-b"), str(tmp_path / "pod-a" / "gone.jsonl")}
    assert recorded.segments == 3


def test_a_linked_folder_is_read(tmp_path: Path) -> None:
    """A volume of one pod, linked beside the others."""
    (tmp_path / "events").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.jsonl").write_text("there")
    (tmp_path / "events" / "pod-a").symlink_to(tmp_path / "elsewhere")
    recorded = Recorded(str(tmp_path / "events"), load_config(environment={}))
    assert list(recorded.lines()) == [b"there"]


@pytest.mark.parametrize(
    ("name", "numbers", "is_short"),
    [
        ("b-3-5.jsonl", [3, 4, 5], False), ("b-3-5.jsonl", [3, 4], True), ("b-3-5.jsonl.gz", [], True),
        ("b-3-9-k2.jsonl", [3, 9], False), ("b-3-9-k2.jsonl", [9], True), ("other.jsonl", [], False),
    ],
)  # fmt: skip
def test_a_segment_that_was_cut_off_between_two_lines_is_told(
    tmp_path: Path, name: str, numbers: list[int], *, is_short: bool
) -> None:
    """Its name announces what it holds; what is left has the form of a whole one, an empty file even for gzip."""
    (tmp_path / name).write_text("".join(f'{{"data":{{"sequence":{x}}}}}\n' for x in numbers))
    recorded = Recorded(str(tmp_path), load_config(environment={}))
    assert len(list(recorded.lines())) == len(numbers)
    assert bool(recorded.unread) is is_short
