"""Damage and other formats are set aside and told, and the agent goes on; room is waited for."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from agent.contract.events import Origin
from agent.errors import SpoolError
from agent.ship.database import DamagedError, Database, NoRoomError, StoreError
from agent.ship.queue import FORMAT, other_format
from agent.ship.values import MIN_CAP_BYTES
from tests.agent.ship.ship_support import (
    HandClock,
    drain,
    drop_rows,
    finding,
    heartbeat,
    on_disk,
    open_spool,
    sequences,
    transition,
)

NEXT_BOOT = Origin(pod_uid="uid-1", boot_id="boot2", pod="orders-0")
KIB = 1024


@pytest.fixture
def left(tmp_path: Path, clock: HandClock) -> Path:
    """Give a spool that an agent left: 60 transitions and a finding in several segments."""
    with open_spool(tmp_path / "spool", clock) as spool:
        for number in range(60):
            spool.append(transition(1500, number))
        spool.append(finding())
    return tmp_path / "spool"


def spoil(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


@pytest.mark.parametrize("content", [b"", b"garbage" * 1_000, b"SQLite format 3\0" + bytes(5_000)])
def test_a_file_that_is_no_database_is_set_aside(tmp_path: Path, clock: HandClock, content: bytes) -> None:
    """It is kept under another name, counted, announced without numbers; an empty file is a new spool."""
    (tmp_path / "spool.db").write_bytes(content)
    with open_spool(tmp_path, clock) as spool:
        spool.append(heartbeat())
        spool.seal()
        rows = drain(spool)
        assert sequences(rows) == ([1, 2] if content else [1])
        told = [("unknown", 0, 0, 0, "corrupt-segment; boot unknown")] if content else []
        assert drop_rows(rows) == told
        stats = spool.stats()
        assert (stats.corrupt_segments, stats.aside) == (bool(content), bool(content))
    if content:
        assert (tmp_path / "spool.db.bad").read_bytes() == content


def test_damage_in_the_tree_is_met_at_the_start(left: Path, clock: HandClock) -> None:
    """What it held is announced without numbers; sequences of this boot begin as ever."""
    spoil(left / "spool.db", 20 * 4096, b"\xff" * 3 * 4096)
    with open_spool(left, clock, NEXT_BOOT) as spool:
        assert spool.stats().corrupt_segments == 1
        spool.append(heartbeat())
        spool.seal()
        rows = drain(spool)
    assert drop_rows(rows) == [("unknown", 0, 0, 0, "corrupt-segment; boot unknown")]
    assert sequences(rows, "boot2") == [1, 2]


def test_damage_while_it_runs_shows_what_was_lost(
    tmp_path: Path, clock: HandClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The record that met the damage is kept in a new file; what waited is announced with its number."""
    with open_spool(tmp_path, clock) as spool:
        for number in range(60):
            spool.append(transition(1500, number))
        spool.seal()
        size = (tmp_path / "spool.db").stat().st_size
        spoil(tmp_path / "spool.db", 4096, b"\xff" * (size - 4096))
        spool._queue.database.run("PRAGMA shrink_memory")  # what is in the cache hides the damage
        with pytest.raises(SpoolError, match="set aside"):
            spool.next_parcel()
        assert spool.append(finding()) == 61
        spool.seal()
        rows = drain(spool)
        assert (spool.stats().corrupt_segments, spool.stats().aside) == (1, 1)
        assert spool.stats().dropped == {"unknown": 60}
    assert drop_rows(rows) == [("unknown", 60, 1, 60, "corrupt-segment; boot boot1")]
    assert sequences(rows) == [61, 62]
    assert (tmp_path / "spool.db.bad").stat().st_size == size
    assert "set a database aside" in caplog.text


def test_damage_that_meets_an_append_costs_that_record_nothing(
    tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written into the new file."""
    with open_spool(tmp_path, clock) as spool:
        spool.append(heartbeat())
        real = Database.run

        def run(self: Database, statement: str, values: tuple[object, ...] = ()) -> list[Any]:
            if statement.startswith("INSERT"):
                monkeypatch.undo()
                raise DamagedError("database disk image is malformed")
            return real(self, statement, values)

        monkeypatch.setattr(Database, "run", run)
        assert spool.append(finding()) == 2
        spool.seal()
        rows = drain(spool)
    assert sequences(rows) == [2, 3]
    assert drop_rows(rows) == [("unknown", 1, 1, 1, "corrupt-segment; boot boot1")]


def test_damage_on_a_disk_that_takes_no_new_file_is_made_up_for_later(
    tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records are refused meanwhile; when the disk is fixed a new file is begun and all of it announced."""

    def refuse(self: Database, log_bytes: int) -> None:
        raise StoreError("disk I/O error")

    with open_spool(tmp_path, clock) as spool:
        spool.append(heartbeat())
        with monkeypatch.context() as patch:
            patch.setattr(Database, "open", refuse)
            with pytest.raises(StoreError):
                spool._writer.start_over(DamagedError("malformed"))
            with pytest.raises(SpoolError, match="could not be opened"):
                spool.append(finding())
            clock.at_s += 2
            with pytest.raises(SpoolError, match="disk I/O error"):
                spool.maintain()
        spool.maintain()
        spool.append(heartbeat())
        spool.seal()
        rows = drain(spool)
    assert drop_rows(rows) == [
        ("finding", 1, 2, 2, "write-failed; boot boot1"),
        ("unknown", 1, 1, 1, "corrupt-segment; boot boot1"),
    ]


def test_a_changed_byte_in_a_record_is_never_shipped(left: Path, clock: HandClock) -> None:
    """SQLite does not see it, the record's own checksum does: that record goes, announced; all others are shipped."""
    data = (left / "spool.db").read_bytes()
    spoil(left / "spool.db", data.index(b'"sequence":30,') + 12, b"9")
    with open_spool(left, clock, NEXT_BOOT) as spool:
        assert sequences(drain(spool)) == [n for n in range(1, 62) if n != 30]
        assert spool.stats().corrupt_segments == 1
        spool.append(heartbeat())
        spool.seal()
        assert drop_rows(drain(spool)) == [("transition", 1, 30, 30, "corrupt-segment; boot boot1")]


def test_what_is_set_aside_makes_room_first(tmp_path: Path, clock: HandClock) -> None:
    """A damaged file counts against the cap and goes before the first record; a large one is not kept at all."""
    for size_bytes, kept in ((300 * KIB, 1), (600 * KIB, 0)):
        (tmp_path / "spool.db").write_bytes(b"x" * size_bytes)
        with open_spool(tmp_path, clock, cap_bytes=MIN_CAP_BYTES) as spool:
            assert spool.stats().aside == kept
            while spool.stats().aside or spool.stats().records < 200:
                spool.append(transition(1500))
                assert on_disk(tmp_path) <= MIN_CAP_BYTES
            assert set(spool.stats().dropped) <= {"unknown"}
        (tmp_path / "spool.db").unlink()


@pytest.mark.parametrize("version", [0, FORMAT - 1, FORMAT + 1])
def test_another_format_is_set_aside(
    left: Path, clock: HandClock, caplog: pytest.LogCaptureFixture, version: int
) -> None:
    """Older, newer or somebody else's: it is kept under another name, told, and a new spool is begun."""
    with sqlite3.connect(left / "spool.db") as connection:
        connection.execute(f"PRAGMA user_version={version}")
    connection.close()
    before = (left / "spool.db").read_bytes()
    told = f"it has format {version}, this statewarden knows {FORMAT}" if version else ""
    assert other_format(left / "spool.db") == told
    with open_spool(left, clock, NEXT_BOOT) as spool:
        assert spool.append(heartbeat()) == 1
        spool.seal()
        assert drop_rows(drain(spool)) == [("unknown", 0, 0, 0, "other-format; boot unknown")]
        assert (spool.stats().corrupt_segments, spool.stats().aside) == (0, 1)
    assert other_format(left / "spool.db") == other_format(left / "none") == ""
    assert (left / "spool.db.bad").stat().st_size == len(before)
    assert "set a database aside" in caplog.text


def test_a_start_without_room_is_made_up_for_later(
    tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records are refused until there is room; then the database is made and the loss announced."""

    def refuse(self: Database, log_bytes: int) -> None:
        raise NoRoomError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Database, "open", refuse)
        spool = open_spool(tmp_path, clock)
        with pytest.raises(SpoolError, match="could not be opened"):
            spool.append(finding())
        with pytest.raises(SpoolError, match="full"):
            spool.maintain()
        assert spool.next_parcel() is None
        assert spool.stats().write_failures == 1
    with spool:
        spool.maintain()
        spool.append(heartbeat())
        spool.seal()
        rows = drain(spool)
    assert drop_rows(rows) == [("finding", 1, 1, 1, "write-failed; boot boot1")]
    assert len(sequences(rows)) == 2
