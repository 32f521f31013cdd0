"""Rows of a table that are twins of an innocent."""

from __future__ import annotations

from typing import Any

import pytest


def twin(detector: str, name: str, *values: Any) -> Any:
    """A row that must reach this innocent (or unknown) of the detector."""
    return pytest.param(*values, marks=pytest.mark.twin_of(detector, name))
