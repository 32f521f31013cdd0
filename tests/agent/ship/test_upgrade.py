"""A spool of format 2, which the previous release left, is read once and is gone; nothing of it is lost."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from agent.contract.events import Origin
from agent.ship.database import Database, NoRoomError
from agent.ship.spool import Spool
from agent.ship.upgrade import read_segment
from tests.agent.ship.ship_support import (
    HandClock,
    drain,
    drop_rows,
    heartbeat,
    killed,
    names,
    open_spool,
    sequences,
)

NEXT_BOOT = Origin(pod_uid="uid-1", boot_id="boot1", pod="orders-0")
WHOLE = [1, 2, 3, 4, 8, 10, 11]


@pytest.fixture
def old(tmp_path: Path, repository: Path) -> Path:
    """Unpack a spool that an agent was killed on.

    Segments 1-2 whole, 3-5 with 5 rotten, 7-9 thinned to 8, 10-12 open with 12 half-written; 6 rejected, one bad.
    """
    folder = tmp_path / "spool"
    folder.mkdir()
    with tarfile.open(repository / "tests/data/spool/format-2.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def left_files(folder: Path) -> list[str]:
    """List what is not the new format's own."""
    own = {"lock", "reserve", "spool.db", "spool.db-wal"}
    return sorted(path.name for path in folder.iterdir() if path.name not in own)


def test_all_that_is_whole_is_shipped_under_the_same_names(old: Path, clock: HandClock) -> None:
    """Before anything new; what was shipped already without an acknowledgement gets its name again."""
    with open_spool(old, clock, NEXT_BOOT) as spool:
        assert names(spool) == [
            "boot0-000000000001-000000000002",
            "boot0-000000000003-000000000004",
            "boot0-000000000007-000000000009-k1",
            "boot0-000000000010-000000000011",
        ]
        assert left_files(old) == []
        assert spool.append(heartbeat()) == 1
        spool.seal()
        parcel = spool.next_parcel()
        assert parcel is not None
        assert parcel.segment.pod_uid == "uid-0"
        spool.release()
        rows = drain(spool)
    assert [row["boot_id"] for row in rows] == ["boot0"] * 7 + ["boot1"] * 2
    assert sequences(rows, "boot0") == WHOLE


def test_what_is_damaged_is_reported(old: Path, clock: HandClock) -> None:
    """The rotten record is counted and announced; a half-written one was never appended."""
    with open_spool(old, clock, NEXT_BOOT) as spool:
        assert spool.stats().corrupt_segments == 1
        spool.append(heartbeat())
        spool.seal()
        assert drop_rows(drain(spool)) == [("unknown", 1, 5, 5, "corrupt-segment; boot boot0")]


def test_damage_in_the_middle_of_an_open_segment_is_reported(old: Path) -> None:
    """Each line behind it is a record that is lost."""
    (opened,) = old.glob("*.open")
    data = bytearray(opened.read_bytes())
    data[60] ^= 1
    opened.write_bytes(data)
    segment = read_segment(opened)
    assert segment.batch is None
    assert segment.lost == ("boot0", 2, 10, 11)


@pytest.mark.parametrize("boots", [1, 2, 3, 4])
def test_a_kill_in_between_doubles_nothing(
    old: Path, tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch, boots: int
) -> None:
    """An old file goes only when its records are safe, and is not taken in twice."""
    real, left = Path.unlink, [boots]

    def unlink(self: Path, missing_ok: bool = False) -> None:
        if self.suffix in (".sealed", ".open"):
            left[0] -= 1
            if not left[0]:
                killed(old, tmp_path / "killed")
        real(self, missing_ok=missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", unlink)
        open_spool(old, clock, NEXT_BOOT).close()
    with open_spool(tmp_path / "killed", clock, NEXT_BOOT) as spool:
        assert sequences(drain(spool), "boot0") == WHOLE
        assert left_files(tmp_path / "killed") == []


def test_without_room_the_rest_waits(old: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk stops the taking in, not the agent; it goes on when there is room."""
    real = Database.run

    def run(self: Database, statement: str, values: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        if statement.startswith("INSERT"):
            raise NoRoomError("database or disk is full")
        return real(self, statement, values)

    with monkeypatch.context() as patch:
        patch.setattr(Database, "run", run)
        spool: Spool = open_spool(old, clock, NEXT_BOOT)
        assert len(left_files(old)) == 7
    with spool:
        spool.maintain()
        assert left_files(old) == []
        assert sequences(drain(spool), "boot0") == WHOLE


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"garbage\n" * 3, b"00000002 a3830348 {}\n"])
@pytest.mark.parametrize("suffix", ["000000000001.open", "000000000001-000000000001.sealed"])
def test_garbage_under_an_old_name_is_survived(
    tmp_path: Path, clock: HandClock, content: bytes, suffix: str
) -> None:
    """A file that only looks like a segment never stops the start, and is not shipped."""
    (tmp_path / f"boot0-{suffix}").write_bytes(content)
    with open_spool(tmp_path, clock, NEXT_BOOT) as spool:
        assert left_files(tmp_path) == []
        assert spool.next_parcel() is None
