"""What is measured: this checkout, and beside it an older commit with an environment of its own.

The older one is a checkout below `build/bench` (outside of git's list of worktrees, so that `make clean` leaves nothing
behind) and a virtual environment with what *its* locks name for the agent. Both are kept and used again.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCK = Path("deploy", "locks", "agent.txt")
_READY = ".ready"


@dataclass(frozen=True, slots=True)
class Version:
    """One state of the code."""

    name: str  # `after` for this checkout, `before` for the older commit
    root: Path  # its files: where `python -m agent` is started
    python: str  # interpreter that has what it needs
    commit: str  # short name

    def label(self, what: str) -> str:
        """Name a row of a table."""
        return what if self is AFTER else f"{what}, {self.name}"


def _git(*words: str) -> bytes:
    return subprocess.run(("git", *words), cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout


def _here() -> str:
    """Name this checkout's commit, with a `+` if files differ from it; a source archive has none."""
    try:
        commit = _git("rev-parse", "--short=8", "HEAD").decode().strip()
        return commit + ("+" if _git("status", "--porcelain", "--untracked-files=no").strip() else "")
    except (OSError, subprocess.CalledProcessError):
        return "this checkout"


AFTER = Version("after", ROOT, sys.executable, _here())


def older(commit: str) -> Version:
    """Give a commit, if there is one, a checkout and an environment; the second time both are there."""
    try:
        full = _git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}").decode().strip()
    except subprocess.CalledProcessError:
        raise SystemExit(f"bench: no such commit: {commit}") from None
    root = ROOT / "build" / "bench" / full[:12]
    python = root / ".venv" / "bin" / "python"
    if not (root / _READY).is_file():
        sys.stderr.write(f"bench: making {root.relative_to(ROOT)}\n")
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        with tarfile.open(fileobj=io.BytesIO(_git("archive", "--format=tar", full))) as archive:
            archive.extractall(root, filter="data")
        _make_environment(root, python)
        (root / _READY).touch()
    return Version("before", root, str(python), full[:8])


def _make_environment(root: Path, python: Path) -> None:
    """Install the agent's part of that commit's locks; by uv where it works, as `tools/setup.sh` does."""
    base = str(getattr(sys, "_base_executable", sys.executable))  # the same Python as this one
    lock = ("--require-hashes", "-r", str(root / LOCK))
    if not os.environ.get("NO_UV") and shutil.which("uv"):
        commands: tuple[tuple[str, ...], ...] = (
            ("uv", "venv", "--quiet", "--python", base, str(python.parents[1])),
            ("uv", "pip", "install", "--quiet", "--python", str(python), *lock),
        )
    else:
        quiet = ("--quiet", "--disable-pip-version-check")
        commands = (
            (base, "-m", "venv", str(python.parents[1])),
            (str(python), "-m", "pip", "install", *quiet, *lock),
        )
    for command in commands:
        if subprocess.run(command, cwd=root).returncode:
            raise SystemExit(f"bench: failed: {' '.join(command)}")
