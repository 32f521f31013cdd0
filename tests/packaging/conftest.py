"""What is packaged, built once for all tests of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import dist


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Build the checkout, as `make dist` does: sdist and wheel."""
    sdist, wheel = dist.dist(tmp_path_factory.mktemp("dist"))
    return sdist, wheel
