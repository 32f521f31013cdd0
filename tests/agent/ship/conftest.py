"""What the tests of the spool and the shipper begin with."""

from __future__ import annotations

import pytest

from tests.agent.ship.ship_support import HandClock


@pytest.fixture
def clock() -> HandClock:
    return HandClock()
