"""Fixtures of the command line's tests: commands run inside the test's process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.cli import main
from tests.agent.cli.commands import Said, plant


@pytest.fixture
def statewarden(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    """Give `statewarden(*arguments)`, with no setting in the environment."""
    for name in list(os.environ):
        if name.startswith("STATEWARDEN_") or name in ("POD_NAME", "POD_NAMESPACE", "POD_UID", "NODE_NAME"):
            monkeypatch.delenv(name)

    def run(*arguments: object) -> Said:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return run


@pytest.fixture
def traces(repository: Path) -> Path:
    return repository / "tests" / "data" / "traces"


@pytest.fixture
def settings_of(traces: Path) -> Callable[[str], list[str]]:
    """Give `settings_of(scenario)`: what its operator would say, as arguments."""

    def read(scenario: str) -> list[str]:
        settings = json.loads((traces / scenario / "scenario.json").read_text())["settings"]
        return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]

    return read


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Give a planted state directory: with `PLAIN` settings it has one certain finding, and no other."""
    return plant(tmp_path / "state")
