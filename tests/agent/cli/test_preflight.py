"""The command `preflight`: its words, its JSON, its exit codes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.cli.preflight import print_results
from agent.preflight.checks import CHECKS
from agent.preflight.telling import Level, Result


def test_a_planted_directory_passes(statewarden: Callable, damaged: Path, tmp_path: Path) -> None:
    """Warnings are no failure: exit code 0, one JSON line per check."""
    said = statewarden("preflight", "--state-dir", damaged, "--spool", tmp_path / "spool", "--json")
    assert said.code == 0
    assert [row["check"] for row in said.rows] == list(CHECKS)
    assert set(said.rows[0]) == {"check", "level", "what", "where", "change"}
    assert next(row for row in said.rows if row["check"] == "applications")["what"].endswith("app")


def test_the_state_directory_is_given_as_to_other_commands(
    statewarden: Callable, damaged: Path, tmp_path: Path
) -> None:
    """By its place or by the option, alone or twice the same: one answer."""
    ways = ((damaged,), ("--state-dir", damaged), (damaged, "--state-dir", damaged))
    for way in ways:
        said = statewarden("preflight", *way, "--spool", tmp_path / "spool", "--json")
        assert said.code == 0
        assert {row["where"] for row in said.rows if row["check"] == "applications"} == {str(damaged)}


def test_a_failed_check_is_exit_code_1_and_names_the_line(statewarden: Callable, tmp_path: Path) -> None:
    """A state directory that is not there: what to mount, and where."""
    said = statewarden("preflight", "--state-dir", tmp_path / "no")
    assert said.code == 1
    assert "FAILED   state-dir" in said.out
    line = "change: StatefulSet, spec.template.spec.initContainers[name=statewarden].volumeMounts"
    assert line in " ".join(said.out.split())
    assert max(map(len, said.out.splitlines())) <= 100


def test_a_sink_whose_settings_are_wrong_is_a_failed_check(
    statewarden: Callable, damaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token's file is missing: nothing is asked of the network."""
    monkeypatch.setenv("STATEWARDEN_SHIP_TOKEN_FILE", str(tmp_path / "no-token"))
    arguments = ("--spool", tmp_path / "spool", "--ship-to", "https://127.0.0.1:1", "--json")
    said = statewarden("preflight", "--state-dir", damaged, *arguments)
    row = next(row for row in said.rows if row["check"] == "endpoint")
    assert (said.code, row["level"]) == (1, "failed")
    assert "no-token: No such file" in row["what"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no state directory given: statewarden preflight STATE_DIR, or"),
        (("x", "--state-dir", "y"), "two state directories given, x and --state-dir y: leave one out"),
        (("--state-dir", "x", "--ship-to", "ftp://x"), "ftp:// is unknown"),
        (("--state-dri", "x"), "unrecognized arguments"),
    ],
)
def test_wrong_use_is_exit_code_2(statewarden: Callable, arguments: tuple[str, ...], words: str) -> None:
    """What is not understood is not judged."""
    said = statewarden("preflight", *arguments)
    assert (said.code, said.out) == (2, "")
    assert words in said.err


def test_the_worst_is_last_and_hostile_names_are_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    """Where the eye ends up is what has to be fixed; a name cannot move the cursor."""
    rows = [
        Result("access", Level.FAILED, "may not be read", "/state/\x1b[2J", "a line"),
        Result("clock", Level.OK, "fine"),
    ]
    print_results(rows, as_json=False)
    said = capsys.readouterr().out
    assert said.index("clock") < said.index("access")
    assert "\x1b" not in said
    assert said.endswith("1 ok, 0 warning, 1 failed\n")
