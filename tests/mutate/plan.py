"""Which modules are broken, and which tests may notice, in which order."""

from __future__ import annotations

import fnmatch
import hashlib
from pathlib import Path

from tests.mutate.worker import EVALUATION

PACKAGES = ("agent/detectors", "agent/inventory", "agent/layout")
_WIDER = {
    "detectors": (),
    "inventory": ("tests/agent/inventory", "tests/agent/detectors"),
    "layout": ("tests/agent/layout", "tests/agent/inventory", "tests/agent/detectors"),
}
"""Tests of the layers above, tried when a module's own tests notice nothing."""


def modules(root: Path, patterns: list[str]) -> list[str]:
    """List modules of the three packages that match a pattern (all without one)."""
    found = [
        str(x.relative_to(root))
        for package in PACKAGES
        for x in sorted((root / package).glob("*.py"))
        if x.name != "__init__.py"
    ]
    return [x for x in found if not patterns or any(fnmatch.fnmatch(x, p) for p in patterns)]


def is_detector(root: Path, path: str) -> bool:
    """Tell whether a module is a detector, as opposed to what detectors share."""
    text = (root / path).read_text("utf-8")
    return path.startswith("agent/detectors/") and "\nMETA = DetectorMeta(" in text


def own_tests(root: Path, path: str) -> list[str]:
    """Give the test files that bear a module's name; its package's tests if there are none."""
    package, stem = Path(path).parent.name, Path(path).stem
    names = [f"tests/agent/{package}/test_{stem}{end}.py" for end in ("", "_edges")]
    return [x for x in names if (root / x).is_file()] or [f"tests/agent/{package}"]


def stages(root: Path, path: str) -> list[list[str]]:
    """Give the targets of every stage for a module, the cheapest first."""
    own = own_tests(root, path)
    wider = [x for x in _WIDER[Path(path).parent.name] if [x] != own]
    return [own, *([wider] if wider else []), ["tests/benign"], [EVALUATION]]


def fingerprint(root: Path, paths: list[str]) -> str:
    """Tell versions of files (or of folders of tests) from each other."""
    digest = hashlib.sha256()
    for path in paths:
        place = root / path
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
