"""Settings of an older release are accepted, each from each place, or refused with what to do instead."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from agent.cli import main
from agent.config import ENVIRONMENT_PREFIX, load_config
from agent.config.retired import RETIRED
from agent.errors import ConfigError


def without_retired(then: Path) -> dict[str, dict[str, Any]]:
    """Read the settings file with every key of then, and leave out what was retired since."""
    groups = tomllib.loads((then / "all.toml").read_text())
    return {
        group: {name: value for name, value in settings.items() if f"{group}.{name}" not in RETIRED}
        for group, settings in groups.items()
    }


def written(groups: dict[str, dict[str, Any]], path: Path) -> Path:
    """Write a settings file."""
    lines = [
        line
        for group, settings in groups.items()
        for line in (f"[{group}]", *(f"{name} = {json.dumps(value)}" for name, value in settings.items()))
    ]
    path.write_text("\n".join(lines))
    return path


def test_every_other_key_of_the_file_counts(then: Path, tmp_path: Path) -> None:
    """Its origin is the file."""
    groups = without_retired(then)
    facts = groups.pop("application")
    config = load_config(file=written({**groups, "application": facts}, tmp_path / "then.toml"))
    for group, settings in groups.items():
        for name in settings:
            assert config.origins[name if group == "agent" else f"{group}.{name}"] == "file"
    assert {name: setting.value for name, setting in config.applications.common.items()} == facts


def test_every_other_variable_counts(then: Path) -> None:
    """Its origin is the environment."""
    groups = without_retired(then)
    del groups["application"]
    names = {
        name if group == "agent" else f"{group}.{name}": value
        for group, settings in groups.items()
        for name, value in settings.items()
    }
    given = {
        f"{ENVIRONMENT_PREFIX}{name.upper().replace('.', '_')}": str(value) for name, value in names.items()
    }
    assert {name: load_config(environment=given).origins[name] for name in names} == dict.fromkeys(
        names, "environment"
    )


def test_what_was_retired_is_refused_with_what_to_do(then: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the file and by the environment, in one message and with code 2; it is never silently without effect."""
    path = then / "all.toml"
    assert main(["check-config", "--config", str(path)]) == 2
    said = capsys.readouterr().err
    for full, instead in RETIRED.items():
        group, _, name = full.partition(".")
        assert f"{path}: [{group}]: {name} is gone: {instead}" in said
        variable = f"{ENVIRONMENT_PREFIX}{full.upper().replace('.', '_')}"
        with pytest.raises(ConfigError, match=f"{variable} is gone: "):
            load_config(environment={variable: "1"})
    assert said.count("; ") == sum(text.count("; ") for text in RETIRED.values()) + len(RETIRED) - 1
