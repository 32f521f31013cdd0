"""One reading cannot compare the clock of a file server: it says so."""

from __future__ import annotations

import pytest

from agent.engine.one_reading import UNCOMPARED, coverage
from agent.inventory.model import Inventory


@pytest.mark.parametrize(
    ("volume", "said"), [("network", True), ("fuse", True), ("local", False), ("", False)]
)
def test_clock_that_one_reading_cannot_compare(volume, said):
    """Where file times are a file server's."""
    assert (UNCOMPARED in coverage(Inventory(volume=volume))) is said
