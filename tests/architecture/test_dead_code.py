"""The allow list of `vulture` (`make lint`) is about code that is there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path


def test_every_allowed_name_is_still_in_the_code(repository: Path) -> None:
    """A name that is gone leaves the list, too."""
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))
    asked = project["tool"]["vulture"]
    words = {
        word
        for folder in asked["paths"]
        for path in (repository / folder).rglob("*.py")
        for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))
    }
    assert [name for name in asked["ignore_names"] if name not in words] == []
