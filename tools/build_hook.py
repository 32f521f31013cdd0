"""Run by the build backend: what is built says from which commit, and nothing else depends on where or when."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MODULE = "agent/contract/built.py"
ENVIRONMENT = "STATEWARDEN_COMMIT"
"""For a build that has no repository: an image's."""


class CommitHook(BuildHookInterface):  # type: ignore[type-arg]
    """Put a module with the commit in the place of the one of the checkout, which has none."""

    _folder: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write it; an unpacked sdist, which has one already, goes the same way and gives the same bytes."""
        if version == "editable":
            return
        root = Path(self.root)
        commit = os.environ.get(ENVIRONMENT) or commit_of(root)
        text = (root / MODULE).read_text("utf-8")
        if commit is not None:
            text = re.sub(r"(?m)^COMMIT = .*$", f'COMMIT = "{commit}"', text)
        self._folder = tempfile.TemporaryDirectory()
        written = Path(self._folder.name) / "built.py"
        written.write_text(text, encoding="utf-8")
        build_data["force_include"][str(written)] = MODULE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was written for this build."""
        if self._folder is not None:
            self._folder.cleanup()


def commit_of(root: Path) -> str | None:
    """Ask git for the commit of a checkout, marked if a file was changed since; None = this is none."""
    if not (root / ".git").exists():
        return None
    git = ["git", "--no-optional-locks", "-C", str(root)]
    command = [*git, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
