"""Read the hash-locked sets in deploy/locks: what is pinned, and for which platform."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FOLDER = "deploy/locks"

SHIPPED = ("agent", "agent-sinks", "agent-verify", "rollup")
"""Locks of what users install; the others serve builds and tests."""


@dataclass(frozen=True, slots=True)
class Locked:
    """One pinned distribution; `requirement` keeps its environment marker."""

    name: str
    version: str
    requirement: Requirement

    def is_for(self, environment: Mapping[str, str]) -> bool:
        """Check its marker against these variables; those not given are the running interpreter's."""
        marker = self.requirement.marker
        return marker is None or marker.evaluate(dict(environment))


def parse_lock(text: str) -> tuple[Locked, ...]:
    """Read one lock.

    Raises:
        ValueError: An entry is not pinned to one version.
    """
    found = []
    for entry in re.split(r"\n(?=\S)", text.strip()):
        requirement = Requirement(entry.partition("--hash")[0].replace("\\", " ").strip())
        pinned = re.fullmatch(r"==([^*,]+)", str(requirement.specifier))
        if pinned is None:
            raise ValueError(f"{requirement} is not pinned to one version")
        found.append(Locked(canonicalize_name(requirement.name), pinned[1], requirement))
    return tuple(found)


def read_lock(root: Path, name: str) -> tuple[Locked, ...]:
    """Read the lock of this name in a checkout."""
    return parse_lock((root / FOLDER / f"{name}.txt").read_text(encoding="utf-8"))
