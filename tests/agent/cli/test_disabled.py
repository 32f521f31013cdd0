"""Disabled detectors on the command line: every command that shows findings or detectors names them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.agent.cli.commands import PLAIN, plant

DISABLE = ("--disable-detector", "resurrected-checkpoint=a known restore")
LINE = "disabled: resurrected-checkpoint (a known restore)"


def test_a_scan_says_what_it_did_not_look_for(statewarden: Callable, tmp_path: Path) -> None:
    """The finding is gone, and a line says why; the exit code follows what was found."""
    plant(tmp_path)
    assert statewarden("scan", tmp_path, *PLAIN).code == 1
    said = statewarden("scan", tmp_path, *PLAIN, *DISABLE)
    assert (said.code, said.err) == (0, "")
    assert "no incident open" in said.out
    assert LINE in said.out.splitlines()


def test_json_says_it_on_standard_error(statewarden: Callable, tmp_path: Path) -> None:
    """The output holds findings and nothing else."""
    plant(tmp_path)
    said = statewarden("scan", tmp_path, *PLAIN, *DISABLE, "--json")
    assert said.findings == []
    assert said.err == f"statewarden: {LINE}\n"


def test_so_does_a_first_start_and_a_replay(statewarden: Callable, tmp_path: Path, traces: Path) -> None:
    """Even where nothing could be found."""
    said = statewarden("scan", tmp_path / "none", "--may-be-empty", *DISABLE)
    assert LINE in said.out.splitlines()
    (trace,) = sorted((traces / "kafka-20685-4.1.2").glob("*.jsonl.gz"))[:1]
    assert LINE in statewarden("replay", trace, *DISABLE).out.splitlines()


def test_the_list_of_detectors_marks_it(statewarden: Callable) -> None:
    """Beside the title, and as a field; the others have none."""
    lines = statewarden("detectors", *DISABLE).out.splitlines()
    assert [x.split()[0] for x in lines if "(disabled: a known restore)" in x] == ["resurrected-checkpoint"]
    rows = statewarden("detectors", "--json", *DISABLE).rows
    assert {row["id"]: row["disabled"] for row in rows if row["disabled"]} == {
        "resurrected-checkpoint": "a known restore"
    }


def test_check_config_shows_it(statewarden: Callable) -> None:
    """As the environment would take it, with its origin."""
    said = statewarden("check-config", *DISABLE)
    (line,) = [x for x in said.out.splitlines() if x.startswith("detectors.disabled")]
    assert line.split(maxsplit=1)[1].rsplit(maxsplit=1) == ["resurrected-checkpoint=a known restore", "flag"]


def test_a_detector_that_does_not_exist_is_wrong_use(statewarden: Callable, tmp_path: Path) -> None:
    """In one line, with the id and those that there are."""
    said = statewarden("scan", tmp_path, "--disable-detector", "resurected=typo")
    assert said.code == 2
    assert "no detector is called resurected; known: resurrected-checkpoint, " in said.complaint
