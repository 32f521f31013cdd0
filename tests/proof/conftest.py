"""Lives are many small objects without cycles: the collector need not look through them so often."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="package")
def _seldom_collected() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(100_000, 20, 20)
    yield
    gc.set_threshold(*before)
