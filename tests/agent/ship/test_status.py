"""What waits in a spool, read beside its agent."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent.errors import SpoolError, UsageError
from agent.ship.status import status_of
from tests.agent.ship.ship_support import AT_US, HandClock, heartbeat, on_disk, open_spool


def test_it_reads_beside_an_agent_and_leaves_no_trace(tmp_path: Path) -> None:
    """What was appended up to the last checkpoint counts; the agent writes on."""
    with open_spool(tmp_path, HandClock()) as spool:
        spool.append(heartbeat(2))
        spool.append(heartbeat(1))
        spool.seal()
        spool.append(heartbeat(3))
        before = sorted(path.name for path in tmp_path.iterdir())
        found = status_of(tmp_path)
        assert (found.segments, found.rejected, found.records) == (1, 0, 2)
        assert (found.oldest_at_us, found.size_bytes) == (AT_US + 1, on_disk(tmp_path))
        assert sorted(path.name for path in tmp_path.iterdir()) == before
        spool.append(heartbeat(4))
        spool.seal()
        assert status_of(tmp_path).records == 4
        parcel = spool.next_parcel()
        assert parcel is not None
        spool.reject(parcel)
    found = status_of(tmp_path)
    assert (found.segments, found.rejected, found.records) == (2, 1, 5)


def test_an_empty_spool_has_no_oldest_record(tmp_path: Path) -> None:
    """Nothing waits."""
    open_spool(tmp_path, HandClock()).close()
    found = status_of(tmp_path)
    assert (found.segments, found.records, found.oldest_at_us) == (0, 0, None)


def test_what_is_no_spool_is_named(tmp_path: Path) -> None:
    """A directory without a database, one of another format, and one with something else in its place."""
    with pytest.raises(UsageError, match=r"holds no spool: spool\.db is not there"):
        status_of(tmp_path)
    open_spool(tmp_path, HandClock()).close()
    with closing(sqlite3.connect(tmp_path / "spool.db")) as connection:
        connection.execute("PRAGMA user_version=3")
    with pytest.raises(
        SpoolError, match="it has format 3, this statewarden knows 4; `statewarden run` sets it aside"
    ):
        status_of(tmp_path)
    (tmp_path / "spool.db").write_bytes(b"something else" * 1_000)
    with pytest.raises(SpoolError, match="cannot read"):
        status_of(tmp_path)
