"""Installed into nothing, as strangers do: by pip, pipx and `uv tool`, from wheel and sdist (needs an index)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent import __version__
from tests.agent.cli.commands import plant

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(900)]


def call(*command: object, **environment: object) -> subprocess.CompletedProcess[str]:
    """Run a command that must succeed; nothing of this checkout is on its path."""
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    done = subprocess.run(
        [str(word) for word in command],
        env=inherited | {name: str(value) for name, value in environment.items()},
        cwd="/", capture_output=True, text=True, timeout=800, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


def empty(folder: Path) -> Path:
    """Make an environment with pip and nothing else; give its programs' directory."""
    call(sys.executable, "-m", "venv", folder)
    return folder / "bin"


@pytest.fixture(scope="module")
def installers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a directory with pipx and uv."""
    programs = empty(tmp_path_factory.mktemp("installers"))
    call(programs / "pip", "install", "--quiet", "pipx", "uv")
    return programs


def by_pip(what: str, home: Path, _: Path) -> Path:
    """Install into an empty environment."""
    programs = empty(home)
    call(programs / "pip", "install", "--quiet", what)
    return programs


def by_pipx(what: str, home: Path, installers: Path) -> Path:
    """Install as pipx does, into an environment of its own and a directory of programs."""
    call(installers / "pipx", "install", what, PIPX_HOME=home / "pipx", PIPX_BIN_DIR=home / "bin")
    return home / "bin"


def by_uv(what: str, home: Path, installers: Path) -> Path:
    """The same, as uv does."""
    directories = {"UV_TOOL_DIR": home / "tools", "UV_TOOL_BIN_DIR": home / "bin"}
    call(installers / "uv", "tool", "install", "--python", sys.executable, what, **directories)
    return home / "bin"


@pytest.mark.parametrize("way", [by_pip, by_pipx, by_uv])
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_a_stranger_scans_a_directory(
    built: tuple[Path, Path],
    installers: Path,
    tmp_path: Path,
    kind: str,
    way: Callable[[str, Path, Path], Path],
) -> None:
    """Both programs are there, the runbooks too, and the first verdict needs no configuration."""
    programs = way(str(built[kind == "wheel"]), tmp_path / "home", installers)
    for name in ("statewarden", "statewarden-rollup"):
        said = call(programs / name, "--version").stdout.splitlines()
        assert said[0] == f"{name} {__version__}"
    assert (
        "\nextras    none; not installed: objectstore, " in call(programs / "statewarden", "--version").stdout
    )
    assert call(programs / "statewarden", "explain", "torn-store").stdout.startswith("# ")
    state = plant(tmp_path / "state")
    scan = [programs / "statewarden", "scan", state, "--set", "processing_guarantee=at_least_once"]
    found = subprocess.run([str(word) for word in scan], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (1, "")
    assert found.stdout.startswith("1 incident open: 1 critical")


def test_an_extra_brings_its_libraries(built: tuple[Path, Path], tmp_path: Path) -> None:
    """`statewarden[verify]`, and what every pod carries stays as small as it is."""
    programs = by_pip(f"statewarden[verify,objectstore] @ {built[1].as_uri()}", tmp_path, tmp_path)
    said = call(programs / "statewarden", "--version").stdout
    assert "\nextras    objectstore, kafka, verify; not installed: rollup\n" in said
