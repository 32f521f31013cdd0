"""`diff` and `bundle`: two directories side by side, and what a bug report may hold."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.cli.commands import PLAIN, plant

SECRET = b"a-record-key"


def with_records(state: Path) -> Path:
    """Add the files that hold (or may hold) record content."""
    database = state / "app" / "0_0" / "rocksdb" / "s"
    for name in ("000007.sst", "MANIFEST-000005", "000009.log", "LOG", "LOG.old.1700000000000000", "stray"):
        (database / name).write_bytes(SECRET)
    return state


def test_a_directory_equals_its_copy(statewarden: Callable, damaged: Path, tmp_path: Path) -> None:
    """The same stores in two places are the same: 0."""
    shutil.copytree(damaged, tmp_path / "copy")
    said = statewarden("diff", damaged, tmp_path / "copy", *PLAIN)
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("same       app/0_0/s\n")


def test_what_differs_is_reported_store_by_store(
    statewarden: Callable, damaged: Path, tmp_path: Path
) -> None:
    """Different offsets, and a store that only one side has, are rows of their own: 1."""
    other = plant(tmp_path / "other", checkpoint=b"0\n1\napp-s-changelog 0 99\n")
    plant(other, task="0_1")
    said = statewarden("diff", damaged, other, "--json")
    assert (said.code, said.err) == (1, "")
    rows = {row["task_id"]: row for row in said.rows}
    assert {task: row["relation"] for task, row in rows.items()} == {"0_0": "B is ahead", "0_1": "only in B"}
    assert (rows["0_0"]["a"]["offset"], rows["0_0"]["b"]["offset"], rows["0_1"]["a"]) == (10, 99, None)


@pytest.mark.parametrize("other", [b"0\n1\napp-s-changelog 0 99\n", b"0\n0\n"])
def test_an_unknown_offset_is_behind_nothing(
    statewarden: Callable, damaged: Path, tmp_path: Path, other: bytes
) -> None:
    """-4 says that no offset is known, so neither copy is ahead, whichever side has it."""
    unknown = plant(tmp_path / "unknown", checkpoint=b"0\n1\napp-s-changelog 0 -4\n")
    known = plant(tmp_path / "known", checkpoint=other)
    for pair in ((unknown, known), (known, unknown)):
        said = statewarden("diff", *pair)
        first, *sides, why = said.out.splitlines()
        assert (said.code, first, why.strip()) == (3, "unknown    app/0_0/s", "no offset to compare at")
        assert "offset unknown" in sides[pair.index(unknown)]


def test_a_torn_store_is_compared_as_unknown(statewarden: Callable, damaged: Path, tmp_path: Path) -> None:
    """Data files without the files that make them a database are there all the same: the other side is not alone."""
    torn = plant(tmp_path / "torn")
    for name in ("CURRENT", "IDENTITY"):
        (torn / "app" / "0_0" / "rocksdb" / "s" / name).unlink()
    said = statewarden("diff", torn, damaged)
    assert said.code == 3
    first, *_, why = said.out.splitlines()
    assert first == "unknown    app/0_0/s"
    assert why.strip().startswith("not all of A could be read (torn: ")


def test_a_diff_escapes_hostile_names(statewarden: Callable, damaged: Path, tmp_path: Path) -> None:
    """Names on disk do not reach the terminal as they are."""
    plant(tmp_path / "other", store="s\x1b[31m")
    said = statewarden("diff", damaged, tmp_path / "other")
    assert "s\\x1b[31m" in said.out
    assert "\x1b" not in said.out


@pytest.mark.parametrize("command", ["diff", "bundle"])
def test_a_directory_that_is_none(statewarden: Callable, damaged: Path, tmp_path: Path, command: str) -> None:
    """What `scan` refuses is refused here with the same words."""
    arguments = (
        (damaged, tmp_path / "none") if command == "diff" else (tmp_path / "none", tmp_path / "x.tar.gz")
    )
    said = statewarden(command, *arguments)
    assert said.code == 2
    assert f"{tmp_path / 'none'}: no such directory" in said.complaint
    assert not (tmp_path / "x.tar.gz").exists()


def test_a_bundle_holds_no_record_content(statewarden: Callable, damaged: Path, tmp_path: Path) -> None:
    """Names, sizes, checkpoints and findings travel; nothing that could hold a key or value does."""
    target = tmp_path / "report.tar.gz"
    said = statewarden("bundle", with_records(damaged), target, *PLAIN)
    assert said.code == 3  # its manifest is none: the findings in the bundle are not all that there may be
    assert "1 of 1 task could not be read; not read: app/0_0/rocksdb/s (" in said.err
    with tarfile.open(target) as archive:
        found = {member.name: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]
    base = "statewarden-bundle"
    assert set(found) == {
        f"{base}/{name}"
        for name in (
            "statewarden.json",
            "listing.jsonl",
            "findings.jsonl",
            "files/app/0_0/.checkpoint",
            "files/app/0_0/rocksdb/s/CURRENT",
            "files/app/0_0/rocksdb/s/IDENTITY",
        )
    }
    assert not any(SECRET in content for content in found.values())
    listed = {row["path"]: row for row in map(json.loads, found[f"{base}/listing.jsonl"].splitlines())}
    assert listed["app/0_0/rocksdb/s/000007.sst"]["size_bytes"] == len(SECRET)
    assert listed["app/.lock"]["lock"] == "free"
    assert (
        json.loads(found[f"{base}/statewarden.json"])["settings"]["app"]["kafka_streams_version"] == "3.9.2"
    )
    findings = [json.loads(line)["detector"] for line in found[f"{base}/findings.jsonl"].splitlines()]
    assert findings


@pytest.mark.parametrize("inside", ["report.tar.gz", "app/0_0/report.tar.gz"])
def test_a_bundle_is_never_written_into_the_state_directory(
    statewarden: Callable, damaged: Path, inside: str
) -> None:
    """Nothing is ever made below the directory that is audited."""
    before = sorted(damaged.rglob("*"))
    said = statewarden("bundle", damaged, damaged / inside)
    assert said.code == 2
    assert "where nothing is ever written; choose another place" in said.complaint
    assert sorted(damaged.rglob("*")) == before


def test_a_bundle_overwrites_nothing(statewarden: Callable, damaged: Path, tmp_path: Path) -> None:
    """An existing file stays as it is; a place that cannot be written is named."""
    target = tmp_path / "report.tar.gz"
    target.write_text("mine")
    said = statewarden("bundle", damaged, target)
    assert said.code == 2
    assert f"{target} is there already" in said.complaint
    assert target.read_text() == "mine"
    assert statewarden("bundle", damaged, tmp_path / "no" / "report.tar.gz").code == 2
