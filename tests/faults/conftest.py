"""What the tests of faults begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.lookout_bench import LiveLookout, make_task


@pytest.fixture
def live(tmp_path: Path) -> LiveLookout:
    """Give a lookout on a state directory with one task; it is not started."""
    make_task(tmp_path / "state")
    return LiveLookout(tmp_path / "state", tmp_path / "home")
