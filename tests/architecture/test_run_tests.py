"""Processes of pytest: nothing is left out, one last line, and the exit code of the worse."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import run_tests
from tools.run_tests import NO_TESTS, SUITES, Suite, shares, status, total

LAST_LINE = re.compile(r"^(=+ )?[0-9]+ (passed|failed|error|skipped|deselected).* in [0-9.]+s")
"""What `.ci/run` looks for."""


def test_a_named_test_is_run_in_one_process() -> None:
    """Folders that are named are not run twice; a word of `-k` names none."""
    assert shares(SUITES["test"], ["tests/fuzz", "-x"]) == [["-m", SUITES["test"].marks, "tests/fuzz", "-x"]]
    first, *others = shares(SUITES["test"], ["-k", "agent"])
    assert "tests" in first
    taken = [path for paths in SUITES["test"].others for path in paths]
    assert [x.removeprefix("--ignore=") for x in first if x.startswith("--ignore=")] == taken
    assert [x for share in others for x in share if x in taken] == taken


@pytest.mark.parametrize("name", SUITES)
def test_what_another_process_takes_is_there(repository: Path, name: str) -> None:
    """A folder that was renamed would be left out by the first process under its old name, and fail the other."""
    taken = [path for paths in SUITES[name].others for path in paths]
    assert [path for path in taken if not (repository / path).exists()] == []


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([0, 0], 0),
        ([0, 1], 1),
        ([1, 0], 1),
        ([NO_TESTS, 0], 0),
        ([NO_TESTS, NO_TESTS], NO_TESTS),
        ([0, -9], 137),
    ],
)
def test_one_failure_fails_both(codes: list[int], expected: int) -> None:
    """A share without tests (`-k`) is no failure, unless both are."""
    assert status(codes) == expected


def test_the_counts_are_added_up() -> None:
    """From the last line of each, coloured or not; what a test printed in between is none."""
    last = "\x1b[31m\x1b[1m1 failed\x1b[0m, \x1b[32m3 passed\x1b[0m, 2 deselected\x1b[0m in 1.20s\x1b[0m\n"
    first = f"5 passed in 1s of 2\nx\n{last}"
    assert total([first, "===== 4 passed, 1 skipped in 70.12s (0:01:10) =====\n"]) == (
        "1 failed, 7 passed, 1 skipped, 2 deselected"
    )


@pytest.mark.slow
@pytest.mark.parametrize(("body", "expected"), [("pass", 0), ("assert 0", 1)])
def test_all_are_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes],
    body: str, expected: int,
) -> None:  # fmt: skip
    """Output of each, then the line that CI looks for."""
    monkeypatch.setattr(run_tests, "ROOT", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for name, text in (("one", "pass"), ("two", body), ("three", "pass")):
        (tmp_path / "tests" / name).mkdir(parents=True)
        (tmp_path / "tests" / name / f"test_{name}.py").write_text(f"def test_{name}():\n    {text}\n")
    suite = Suite("not slow", (["tests/two"], ["tests/three"]))
    assert run_tests.run(suite, ["-q", "-p", "no:randomly"]) == expected
    *_, last = capfdbinary.readouterr().out.decode().splitlines()
    assert LAST_LINE.match(last)
    assert last.startswith("1 failed, 2 passed" if expected else "3 passed")
