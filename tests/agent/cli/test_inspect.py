"""`diff`: two directories side by side; and what every command says of disabled detectors."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.cli.commands import PLAIN, plant


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
    other = plant(tmp_path / "other", checkpoint=b"0\n1\napp-s-changelog 0 100099\n")
    plant(other, task="0_1")
    said = statewarden("diff", damaged, other, "--json")
    assert (said.code, said.err) == (1, "")
    rows = {row["task_id"]: row for row in said.rows}
    assert {task: row["relation"] for task, row in rows.items()} == {"0_0": "B is ahead", "0_1": "only in B"}
    assert (rows["0_0"]["a"]["offset"], rows["0_0"]["b"]["offset"], rows["0_1"]["a"]) == (
        100000,
        100099,
        None,
    )


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
    assert why.strip().startswith("can't read all of A (torn: ")


def test_a_diff_escapes_hostile_names(statewarden: Callable, damaged: Path, tmp_path: Path) -> None:
    """Names on disk do not reach the terminal as they are."""
    plant(tmp_path / "other", store="s\x1b[31m")
    said = statewarden("diff", damaged, tmp_path / "other")
    assert "s\\x1b[31m" in said.out
    assert "\x1b" not in said.out


def test_a_directory_that_is_none(statewarden: Callable, damaged: Path, tmp_path: Path) -> None:
    """What `scan` refuses is refused here with the same words."""
    said = statewarden("diff", damaged, tmp_path / "none")
    assert said.code == 2
    assert f"{tmp_path / 'none'}: no such directory" in said.complaint


DISABLE = ("--disable-detector", "resurrected-checkpoint=a known restore")
LINE = "disabled: resurrected-checkpoint (a known restore)"


def test_every_output_says_what_was_not_looked_for(
    statewarden: Callable, damaged: Path, tmp_path_factory: pytest.TempPathFactory, traces: Path
) -> None:
    """The finding is gone and a line says why, also where nothing could be found; JSON lines stay as they are."""
    trace = traces / "kafka-20685-4.1.2" / "trace-pod-a.jsonl.gz"
    assert statewarden("scan", damaged, *PLAIN).code == 1
    for words in (
        ("scan", damaged, *PLAIN),
        ("scan", tmp_path_factory.mktemp("none"), "--may-be-empty"),
        ("replay", trace),
    ):
        assert LINE in statewarden(*words, *DISABLE).out.splitlines()
    said = statewarden("scan", damaged, *PLAIN, *DISABLE, "--json")
    assert (said.code, said.findings, said.err) == (0, [], f"statewarden: {LINE}\n")


def test_the_lists_of_detectors_and_settings_mark_it(statewarden: Callable) -> None:
    """Beside the title, as a field, and as the environment would take it, with its origin."""
    lines = statewarden("detectors", *DISABLE).out.splitlines()
    assert [x.split()[0] for x in lines if "(disabled: a known restore)" in x] == ["resurrected-checkpoint"]
    rows = statewarden("detectors", "--json", *DISABLE).rows
    assert [(x["id"], x["disabled"]) for x in rows if x["disabled"]] == [
        ("resurrected-checkpoint", "a known restore")
    ]
    (line,) = [
        x
        for x in statewarden("check-config", *DISABLE).out.splitlines()
        if x.startswith("detectors.disabled")
    ]
    assert line.split(maxsplit=1)[1].rsplit(maxsplit=1) == ["resurrected-checkpoint=a known restore", "flag"]


def test_a_detector_that_does_not_exist_is_wrong_use(statewarden: Callable, tmp_path: Path) -> None:
    """In one line, with the id and those that there are."""
    said = statewarden("scan", tmp_path, "--disable-detector", "resurected=typo")
    assert said.code == 2
    assert "no detector is called resurected; known: resurrected-checkpoint, " in said.complaint
