"""What older commits left behind, unpacked; every commit that is kept is tested alike."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data" / "upgrade"


@pytest.fixture(params=sorted(path.name for path in DATA.iterdir() if path.is_dir()))
def then(request: pytest.FixtureRequest) -> Path:
    """Give the folder of one older commit."""
    return DATA / str(request.param)


@pytest.fixture
def unpacked(then: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Unpack what that commit left of a kind, and give the folder."""

    def unpack(name: str) -> Path:
        with tarfile.open(then / f"{name}.tar.gz") as archive:
            archive.extractall(tmp_path / name, filter="data")
        return tmp_path / name

    return unpack
