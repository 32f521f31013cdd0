"""The spool keeps records in order, under a cap, for one agent at a time."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent.contract.codec import ContractError, Encoder
from agent.contract.events import Kind, Origin, Record
from agent.errors import SpoolError
from agent.ship.database import Database, StoreError
from agent.ship.values import MIN_CAP_BYTES
from tests.agent.ship.ship_support import (
    AT_US,
    ORIGIN,
    HandClock,
    drain,
    drop_rows,
    finding,
    heartbeat,
    killed,
    names,
    open_spool,
    sequences,
    transition,
)

KIB = 1024
NEXT_BOOT = Origin(pod_uid="uid-1", boot_id="a-boot", pod="orders-0")


def test_records_come_back_exactly_as_encoded(tmp_path: Path, clock: HandClock) -> None:
    """The payload of a segment is the encoded lines, one per line, with sequences from 1."""
    with open_spool(tmp_path, clock) as spool:
        assert [spool.append(heartbeat(n)) for n in range(3)] == [1, 2, 3]
        assert spool.next_parcel() is None
        spool.seal()
        parcel = spool.next_parcel()
        assert parcel is not None
        assert parcel.payload.decode() == "".join(
            Encoder(ORIGIN).encode(heartbeat(n), n + 1) + "\n" for n in range(3)
        )
        assert parcel.segment.name == "boot1-000000000001-000000000003"


def test_a_record_that_breaks_the_contract_changes_nothing(tmp_path: Path, clock: HandClock) -> None:
    """It raises, and its sequence goes to the next record."""
    with open_spool(tmp_path, clock) as spool:
        with pytest.raises(ContractError):
            spool.append(Record(Kind.TRANSITION, AT_US, {}))
        assert spool.append(heartbeat()) == 1


def test_segments_are_sealed_by_size(tmp_path: Path, clock: HandClock) -> None:
    """The record that reaches the size is the last one of its segment."""
    with open_spool(tmp_path, clock) as spool:
        for number in range(5):
            spool.append(transition(6 * KIB, number))
        assert names(spool) == ["boot1-000000000001-000000000003"]
        assert spool.stats().segments == 2


def test_segments_are_sealed_by_age(tmp_path: Path, clock: HandClock) -> None:
    """A segment that is old enough is sealed by the clockwork, without a further record; its age begins with it."""
    with open_spool(tmp_path, clock, seal_age_s=15.0) as spool:
        clock.at_s += 60
        spool.maintain()
        assert spool.next_parcel() is None
        spool.append(heartbeat())
        clock.at_s += 14.9
        spool.maintain()
        assert spool.next_parcel() is None
        clock.at_s += 0.1
        spool.maintain()
        assert sequences(drain(spool)) == [1]


def test_age_seals_no_more_while_many_segments_wait(tmp_path: Path, clock: HandClock) -> None:
    """A sink that is away does not get a segment per interval later; when it has taken some, age counts again."""
    with open_spool(tmp_path, clock) as spool:
        for number in range(40):
            spool.append(heartbeat(number))
            clock.at_s += 20
            spool.maintain()
        assert len(names(spool)) == 16
        parcel = spool.next_parcel()
        assert parcel is not None
        spool.acknowledge(parcel)
        spool.maintain()
        assert len(names(spool)) == 16
        assert spool.stats().segments == 16


def test_synced_at_most_every_second_and_at_the_seal(
    tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records within a second share one checkpoint, which syncs; sealing is one, too; nothing new needs none."""
    done: Counter[str] = Counter()
    real = Database.checkpoint

    def counted(self: Database) -> None:
        done["checkpoint"] += 1
        real(self)

    monkeypatch.setattr(Database, "checkpoint", counted)
    with open_spool(tmp_path, clock) as spool:
        done.clear()
        for _ in range(10):
            spool.append(heartbeat())
        assert done == {}
        clock.at_s += 1.0
        spool.append(heartbeat())
        spool.append(heartbeat())
        assert done == {"checkpoint": 1}
        clock.at_s += 1.0
        spool.maintain()
        spool.maintain()
        assert done == {"checkpoint": 2}
        spool.seal()
        assert done == {"checkpoint": 3}
        clock.at_s += 1.0
        spool.maintain()
        assert done == {"checkpoint": 3}


def test_what_is_taken_stays_until_acknowledged(tmp_path: Path, clock: HandClock) -> None:
    """A segment is the next one again after a release, and gone only after the acknowledgement."""
    with open_spool(tmp_path / "spool", clock) as spool:
        spool.append(heartbeat())
        spool.seal()
        first = spool.next_parcel()
        spool.release()
        again = spool.next_parcel()
        assert first == again is not None
        with open_spool(killed(tmp_path / "spool", tmp_path / "before"), clock, NEXT_BOOT) as after:
            assert after.next_parcel() == again
        spool.acknowledge(again)
        assert spool.next_parcel() is None
        with open_spool(killed(tmp_path / "spool", tmp_path / "after"), clock, NEXT_BOOT) as after:
            assert after.next_parcel() is None


def test_stats_count_what_waits(tmp_path: Path, clock: HandClock) -> None:
    """Records, segments and the oldest time cover open and sealed segments; empty means none."""
    with open_spool(tmp_path, clock) as spool:
        stats = spool.stats()
        empty_bytes = stats.bytes
        assert (stats.records, stats.segments, stats.oldest_at_us) == (0, 0, None)
        spool.append(heartbeat(7))
        spool.seal()
        spool.append(heartbeat(3))
        spool.append(heartbeat(9))
        stats = spool.stats()
        assert (stats.records, stats.segments, stats.oldest_at_us) == (3, 2, AT_US + 3)
        spool.append(transition(40 * KIB))
        assert 40 * KIB <= spool.stats().bytes - empty_bytes < 60 * KIB
        drain(spool)
        assert spool.stats().bytes == empty_bytes


def test_a_log_cut_anywhere_keeps_what_comes_before(tmp_path: Path, clock: HandClock) -> None:
    """A power cut takes the newest records at most: what is left is whole, without a hole, and no damage."""
    with open_spool(tmp_path / "spool", clock) as spool:
        for n in range(1, 13):
            spool.append(transition(1500, n))
        copy = killed(tmp_path / "spool", tmp_path / "killed")
    log = (copy / "spool.db-wal").read_bytes()
    left = []
    for size in range(0, len(log) + 1, 1_777):
        (copy / "spool.db-wal").write_bytes(log[:size])
        target = killed(copy, tmp_path / str(size))
        with open_spool(target, clock, NEXT_BOOT) as after:
            rows = sequences(drain(after))
            assert rows == list(range(1, len(rows) + 1))
            assert after.stats().corrupt_segments == 0
        left.append(len(rows))
    assert left == sorted(left)
    assert set(left) == {9, 10, 11, 12}  # nine were sealed


def test_a_new_boot_counts_from_one_and_ships_the_old_first(tmp_path: Path, clock: HandClock) -> None:
    """What an earlier boot left goes first, under the pod that wrote it."""
    moved = Origin(pod_uid="uid-2", boot_id="a-boot", pod="orders-1")
    with open_spool(tmp_path, clock) as spool:
        spool.append(heartbeat())
    with open_spool(tmp_path, clock, moved) as spool:
        assert spool.append(heartbeat(5)) == 1
        spool.seal()
        first = spool.next_parcel()
        assert first is not None
        assert (first.segment.pod_uid, first.segment.boot_id) == (ORIGIN.pod_uid, "boot1")
        assert [(row["pod_uid"], row["sequence"]) for row in drain(spool)] == [("uid-1", 1), ("uid-2", 1)]


def test_what_the_sink_rejects_stays_aside_and_makes_room_first(tmp_path: Path, clock: HandClock) -> None:
    """A rejected segment is announced, kept for a look over a restart, and the first to go when room is needed."""
    with open_spool(tmp_path, clock) as spool:
        spool.append(transition(10 * KIB))
        spool.seal()
        parcel = spool.next_parcel()
        assert parcel is not None
        spool.reject(parcel)
        assert spool.next_parcel() is None
        assert (spool.stats().aside, spool.stats().records) == (1, 1)  # the announcement
    with open_spool(tmp_path, clock, NEXT_BOOT, cap_bytes=MIN_CAP_BYTES) as spool:
        assert spool.stats().aside == 1
        assert drop_rows(drain(spool)) == [("transition", 1, 1, 1, "rejected-by-sink; boot boot1")]
        while spool.stats().aside:
            spool.append(transition(6 * KIB))
        assert spool.stats().dropped == {}
        assert spool.stats().bytes > MIN_CAP_BYTES // 2


def test_a_disk_that_fails_refuses_and_counts(
    tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that waits is given up for it; the loss is announced when the disk is fixed."""
    with open_spool(tmp_path, clock) as spool:
        spool.append(heartbeat())
        with monkeypatch.context() as patch:
            patch.setattr(Database, "run", refuse)
            with pytest.raises(
                SpoolError, match=re.escape(f"{tmp_path}: disk I/O error; free or repair its volume")
            ):
                spool.append(finding())
            with pytest.raises(SpoolError, match="disk I/O error"):
                spool.seal()
        spool.seal()
        rows = drain(spool)
        assert spool.stats().write_failures == 1
    assert sequences(rows) == [1, 3]
    assert drop_rows(rows) == [("finding", 1, 2, 2, "write-failed; boot boot1")]


def refuse(*_: object) -> list[Any]:
    raise StoreError("disk I/O error")


def test_closing_seals_and_ends(tmp_path: Path, clock: HandClock) -> None:
    """After `close` everything is in one file, nothing can be appended, and closing again is harmless."""
    spool = open_spool(tmp_path, clock)
    spool.append(heartbeat())
    spool.close()
    spool.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "spool.db"]
    with pytest.raises(SpoolError, match="is closed"):
        spool.append(heartbeat())
    spool.maintain()


def test_strangers_files_stay(tmp_path: Path, clock: HandClock) -> None:
    """Files that the spool does not know are neither read nor deleted."""
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "lost+found").mkdir()
    open_spool(tmp_path, clock).close()
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / "lost+found").is_dir()


@pytest.mark.parametrize(
    "options",
    [
        {"seal_bytes": 1},
        {"cap_bytes": MIN_CAP_BYTES - 1},
        {"seal_bytes": 256 * KIB, "cap_bytes": 7 * 256 * KIB},
    ],
)
def test_unfit_sizes_are_refused(tmp_path: Path, clock: HandClock, options: dict[str, Any]) -> None:
    """Those that cannot work are refused before anything is made."""
    with pytest.raises(SpoolError):
        open_spool(tmp_path / "spool", clock, **options)
    assert not (tmp_path / "spool").exists()
