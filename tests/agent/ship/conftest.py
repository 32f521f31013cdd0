"""What the tests of the spool and the shipper begin with."""

from __future__ import annotations

import pytest

from tests.agent.ship.ship_support import HandClock, make_quick


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sync nothing in this process: no power fails here, and who is killed is another."""
    make_quick(monkeypatch)
