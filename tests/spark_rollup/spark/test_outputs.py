"""Where an audit writes: nobody's files are touched, and the last good report stays until the new one is whole."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from spark_rollup.errors import UsageError
from spark_rollup.spark import outputs


def files_below(folder: Path) -> dict[str, str]:
    """Read every file of a directory."""
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def write_report(output: Path, text: str) -> Path:
    """Write what an audit writes, up to the swap; returns where."""
    place = outputs.begin(output)
    for name in outputs.TABLES:
        (place / name).mkdir()
        (place / name / f"part-{text}.zstd.parquet").write_text(text)
        (place / name / "_SUCCESS").write_text("")
        (place / name / "._SUCCESS.crc").write_text("")
    for name in outputs.FILES:
        (place / name).write_text(text)
    (place / outputs.MARKER).write_text(json.dumps({"watermark": text}))
    return place


@pytest.mark.parametrize(
    "theirs",
    ["coverage/index.html", "pods/values.yaml", "findings/2024-pentest.pdf", ".git/config", "notes.txt"],
)
def test_a_directory_of_another_owner_is_refused(tmp_path, theirs):
    """What is not empty and no audit wrote is left as it is, whatever its names."""
    path = tmp_path / "out" / theirs
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    with pytest.raises(UsageError, match=r"is not empty and no audit wrote it"):
        outputs.begin(tmp_path / "out")
    assert files_below(tmp_path / "out") == {theirs: "mine"}


def test_a_new_report_replaces_the_last_one(tmp_path):
    """Tables and files change together, nothing of the work stays, and what lies beside them is nobody's business."""
    out = tmp_path / "out"
    for text in ("first", "second"):
        write_report(out, text)
        outputs.swap(out)
        (out / "metrics.prom").write_text(text)
        (out / "notes.txt").write_text("mine")
    found = files_below(out)
    assert {name for name in found if "part-" in name} == {
        f"{table}/part-second.zstd.parquet" for table in outputs.TABLES
    }
    assert json.loads(found[outputs.MARKER])["watermark"] == "second"
    assert found["notes.txt"] == "mine"
    assert {path.name for path in out.iterdir()} == {
        *outputs.TABLES, *outputs.FILES, outputs.MARKER, outputs.OURS, "metrics.prom", "notes.txt",
    }  # fmt: skip


def test_the_last_report_stays_while_the_next_is_made(tmp_path):
    """An audit that dies half way leaves the last good report, and the next one starts afresh."""
    out = tmp_path / "out"
    write_report(out, "good")
    outputs.swap(out)
    before = {name: text for name, text in files_below(out).items() if not name.startswith(".next")}
    place = outputs.begin(out)
    (place / "findings").mkdir()
    (place / "findings" / "part-torn").write_text("half")
    assert {name: text for name, text in files_below(out).items() if not name.startswith(".next")} == before
    assert list(outputs.begin(out).iterdir()) == []


@pytest.mark.parametrize("moves", range(1, 2 * (len(outputs.TABLES) + len(outputs.FILES)) + 2))
def test_a_swap_that_was_cut_off_is_finished(tmp_path, monkeypatch, moves):
    """Killed between any two renames, the whole new report is in place before the next is begun."""
    out = tmp_path / "out"
    write_report(out, "first")
    outputs.swap(out)
    write_report(out, "second")
    left = [moves]
    rename = os.replace

    def killed(here: Path, there: Path) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        rename(here, there)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", killed)
        try:
            outputs.swap(out)
        except KeyboardInterrupt:
            assert not (out / outputs.MARKER).exists()
    outputs.begin(out)
    assert json.loads((out / outputs.MARKER).read_text())["watermark"] == "second"
    for name in outputs.TABLES:
        assert (out / name / "part-second.zstd.parquet").read_text() == "second"
    assert [path for path in out.rglob("*first*") if path.is_file()] == []


def test_a_file_put_into_a_table_is_not_deleted(tmp_path):
    """Somebody's file below a table stops the next audit before it begins, and one that comes meanwhile is kept."""
    out = tmp_path / "out"
    write_report(out, "first")
    outputs.swap(out)
    write_report(out, "second")
    (out / "pods" / "values.yaml").write_text("mine")
    outputs.swap(out)
    assert "mine" in files_below(out).values()
    (out / "pods" / "values.yaml").write_text("mine")
    with pytest.raises(
        UsageError, match=r"holds what no audit wrote \(pods/values.yaml\): move it elsewhere"
    ):
        outputs.check_output(out)


def test_reports_of_former_releases_are_known(tmp_path):
    """Their marker is enough; any other `_SUCCESS.json` is not."""
    (tmp_path / "pods").mkdir()
    (tmp_path / "pods" / "part-0.zstd.parquet").write_text("")
    (tmp_path / outputs.MARKER).write_text('{"watermark": "2026-11-18T11:21:40.000000Z"}')
    outputs.check_output(tmp_path)
    (tmp_path / outputs.MARKER).write_text("[]")
    with pytest.raises(UsageError, match="no audit wrote it"):
        outputs.check_output(tmp_path)


def test_an_empty_volume_will_do(tmp_path):
    """A new directory, an empty one, or a fresh volume with its lost+found."""
    outputs.check_output(tmp_path / "new")
    (tmp_path / "lost+found").mkdir()
    outputs.check_output(tmp_path)
