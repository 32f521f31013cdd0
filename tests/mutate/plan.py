"""Which modules are broken, and which tests may notice, in which order."""

from __future__ import annotations

import fnmatch
import hashlib
from pathlib import Path

from tests.mutate.worker import EVALUATION

PACKAGES = ("agent/detectors", "agent/judging", "agent/inventory", "agent/layout")
DEPTHS = ("own", "wider", "benign", "evaluate")
"""Stages: a module's own tests; those of its package and of the layers above; look-alikes; recorded scenarios."""
_WIDER = {
    "detectors": ("tests/agent/detectors",),
    "judging": ("tests/agent/judging", "tests/agent/detectors"),
    "inventory": ("tests/agent/inventory", "tests/agent/detectors"),
    "layout": ("tests/agent/layout", "tests/agent/inventory", "tests/agent/detectors"),
}
"""Tried when the own tests of a module that others build on notice nothing."""


def modules(root: Path, patterns: list[str]) -> list[str]:
    """List modules of these packages that match a pattern (all without one)."""
    found = [
        str(x.relative_to(root))
        for package in PACKAGES
        for x in sorted((root / package).glob("*.py"))
        if x.name != "__init__.py"
    ]
    return [x for x in found if not patterns or any(fnmatch.fnmatch(x, p) for p in patterns)]


def is_detector(path: str) -> bool:
    """Tell whether a module is a detector, as opposed to what detectors share."""
    return path.startswith("agent/detectors/")


def own_tests(root: Path, path: str) -> list[str]:
    """Give the test files that bear a module's name; its package's tests if there are none."""
    package, stem = Path(path).parent.name, Path(path).stem
    folder = root / "tests" / "agent" / package
    files = [*folder.glob(f"test_{stem}.py"), *folder.glob(f"test_{stem}_*.py")]
    siblings = {x.stem for x in (root / path).parent.glob(f"{stem}_*.py")}
    mine = [x for x in files if not any(x.stem.startswith(f"test_{name}") for name in siblings)]
    return sorted(str(x.relative_to(root)) for x in mine) or [f"tests/agent/{package}"]


def stages(root: Path, path: str, until: str = DEPTHS[-1]) -> list[list[str]]:
    """Give the targets of every stage for a module, the cheapest first.

    Args:
        root: The checkout or a copy of it.
        path: The module.
        until: The last stage, one of DEPTHS.
    """
    own = own_tests(root, path)
    wider = [] if is_detector(path) else [x for x in _WIDER[Path(path).parent.name] if [x] != own]
    every = [own, wider, ["tests/benign"], [EVALUATION]]
    return [x for x in every[: DEPTHS.index(until) + 1] if x]


def fingerprint(root: Path, paths: list[str]) -> str:
    """Tell versions of files (or of folders of tests) from each other."""
    digest = hashlib.sha256()
    for path in paths:
        place = root / path
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
