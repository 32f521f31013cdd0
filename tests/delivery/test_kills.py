"""kill -9 of the agent at random points, small form; the full form is `make prove ARGS=kill`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.delivery import kills, servers
from tests.delivery.rollups import Rollup

pytestmark = [pytest.mark.delivery, pytest.mark.timeout(600)]


@pytest.mark.parametrize("name", [x for x in kills.PLACES if x != "moto"])
def test_nothing_is_lost_over_twenty_kills(name: str, rollup: Rollup, tmp_path: Path) -> None:
    """Everything that the spool took is in the rollup's table after ingest, each event once."""
    pytest.importorskip("duckdb", reason="run: make test-services")
    if name == "versitygw" and not servers.versitygw_binary():
        pytest.skip("no versitygw: tools/setup_delivery.sh builds it with Go")
    with kills.place_of(name, tmp_path / "server") as place:
        account = kills.prove(place, tmp_path / "agent", kills=20, seed=8187, ingest=rollup.ingest)
    assert account.holds, account
    assert account.boots > 10
    assert account.delivered >= account.written
