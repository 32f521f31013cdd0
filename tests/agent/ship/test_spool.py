"""The spool keeps records in order, under a cap, for one agent at a time."""

from __future__ import annotations

import errno
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent.contract.codec import ContractError, encode
from agent.contract.events import Kind, Origin, Record
from agent.errors import SpoolError, SpoolFullError
from agent.ship import segments
from tests.agent.ship.ship_support import (
    AT_US,
    ORIGIN,
    HandClock,
    drain,
    drop_rows,
    files,
    finding,
    heartbeat,
    open_spool,
    sequences,
    transition,
)

KIB = 1024


@pytest.fixture
def clock() -> HandClock:
    """Give a clock by hand."""
    return HandClock()


def test_records_come_back_exactly_as_encoded(tmp_path: Path, clock: HandClock) -> None:
    """The payload of a segment is the encoded lines, one per line, with sequences from 1."""
    with open_spool(tmp_path, clock) as spool:
        assert [spool.append(heartbeat(n)) for n in range(3)] == [1, 2, 3]
        assert spool.take() is None
        spool.seal()
        parcel = spool.take()
        assert parcel is not None
        assert parcel.payload.decode() == "".join(
            encode(heartbeat(n), ORIGIN, n + 1) + "\n" for n in range(3)
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
        assert files(tmp_path, "sealed") == ["boot1-000000000001-000000000003.sealed"]
        assert files(tmp_path, "open") == ["boot1-000000000004.open"]


def test_segments_are_sealed_by_age(tmp_path: Path, clock: HandClock) -> None:
    """A segment that is old enough is sealed by the clockwork, without a further record; an empty one never."""
    with open_spool(tmp_path, clock, seal_age_s=15.0) as spool:
        spool.maintain()
        assert spool.take() is None
        spool.append(heartbeat())
        clock.at_s += 14.9
        spool.maintain()
        assert spool.take() is None
        clock.at_s += 0.1
        spool.maintain()
        assert sequences(drain(spool)) == [1]


def test_synced_at_most_every_second_and_at_the_seal(
    tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records within a second share one sync; sealing syncs what is left."""
    synced: Counter[str] = Counter()
    for name in ("fsync", "fdatasync"):
        real = getattr(os, name)

        def counted(descriptor: int, name: str = name, real: Any = real) -> None:
            synced[name] += 1
            real(descriptor)

        monkeypatch.setattr(os, name, counted)
    with open_spool(tmp_path, clock) as spool:
        for _ in range(10):
            spool.append(heartbeat())
        assert synced["fdatasync"] == 0
        clock.at_s += 1.0
        spool.append(heartbeat())
        spool.append(heartbeat())
        assert synced["fdatasync"] == 1
        clock.at_s += 1.0
        spool.maintain()
        spool.maintain()
        assert synced["fdatasync"] == 2
        before = synced["fsync"]
        spool.seal()
        assert synced["fsync"] == before + 3  # position file, segment, directory


def test_what_is_taken_stays_until_acknowledged(tmp_path: Path, clock: HandClock) -> None:
    """A segment is the next one again after a release, and gone only after the acknowledgement."""
    with open_spool(tmp_path, clock) as spool:
        spool.append(heartbeat())
        spool.seal()
        first = spool.take()
        spool.release()
        again = spool.take()
        assert first == again is not None
        assert len(files(tmp_path, "sealed")) == 1
        spool.acknowledge(again)
        assert files(tmp_path, "sealed") == []
        assert spool.take() is None


def test_stats_count_what_waits(tmp_path: Path, clock: HandClock) -> None:
    """Records, segments and the oldest time cover open and sealed segments; empty means none."""
    with open_spool(tmp_path, clock) as spool:
        assert (spool.stats().records, spool.stats().segments, spool.stats().oldest_at_us) == (0, 0, None)
        spool.append(heartbeat(7))
        spool.seal()
        spool.append(heartbeat(3))
        spool.append(heartbeat(9))
        stats = spool.stats()
        assert (stats.records, stats.segments, stats.oldest_at_us) == (3, 2, AT_US + 3)
        on_disk = sum((tmp_path / n).stat().st_size for s in ("open", "sealed") for n in files(tmp_path, s))
        assert stats.bytes == on_disk


def test_the_cap_holds_and_every_drop_announces_itself(tmp_path: Path, clock: HandClock) -> None:
    """However much comes in, the directory stays below the cap, and shipped and announced make one whole."""
    cap = 5 * 16 * KIB
    with open_spool(tmp_path, clock, cap_bytes=cap) as spool:
        for number in range(300):
            spool.append(transition(1500, number) if number % 3 else heartbeat(number))
            assert sum(x.stat().st_size for x in tmp_path.iterdir() if x.name != "reserve") <= cap
        dropped, last = dict(spool.stats().dropped), spool.append(heartbeat())
        spool.seal()
        rows = drain(spool)
    seen = sequences(rows)
    announced = Counter[str]()
    for kind, count, first, until, reason in drop_rows(rows):
        assert reason == "spool-cap; boot boot1"
        assert 1 <= first <= until < last
        assert until - first + 1 >= count
        announced[kind] += count
    assert announced == dropped
    assert len(seen) + sum(announced.values()) == max(seen)
    holes = set(range(1, max(seen) + 1)) - set(seen)
    covered = {n for _, _, first, until, _ in drop_rows(rows) for n in range(first, until + 1)}
    assert holes <= covered


def test_a_single_drop_tells_the_exact_range(tmp_path: Path, clock: HandClock) -> None:
    """One dropped segment of one kind is announced with its first and last sequence and nothing else."""
    with open_spool(tmp_path, clock, cap_bytes=4 * 16 * KIB) as spool:
        for number in range(8):  # three to a segment
            spool.append(transition(6 * KIB, number))
        spool.seal()
        rows = drain(spool)
    assert drop_rows(rows) == [("transition", 3, 1, 3, "spool-cap; boot boot1")]
    assert sequences(rows) == [4, 5, 6, 7, 8, 9]


def test_findings_are_dropped_last(tmp_path: Path, clock: HandClock) -> None:
    """Old findings outlive younger segments without any, until only such segments are left."""
    with open_spool(tmp_path, clock, cap_bytes=3 * 16 * KIB) as spool:
        spool.append(finding())
        spool.seal()
        for number in range(12):
            spool.append(transition(6 * KIB, number))
        spool.seal()
        assert sequences(drain(spool))[0] == 1
        for _ in range(100):
            spool.append(finding())
        assert spool.stats().dropped["finding"] > 0


def test_the_segment_on_its_way_is_never_dropped(tmp_path: Path, clock: HandClock) -> None:
    """A segment that the sink is taking stays, though it is the oldest."""
    with open_spool(tmp_path, clock, cap_bytes=3 * 16 * KIB) as spool:
        spool.append(heartbeat())
        spool.seal()
        parcel = spool.take()
        assert parcel is not None
        for number in range(12):
            spool.append(transition(6 * KIB, number))
        assert parcel.segment.path.exists()
        spool.acknowledge(parcel)
        spool.seal()
        assert 1 not in sequences(drain(spool))


def test_a_record_larger_than_the_cap_is_refused_and_announced(tmp_path: Path, clock: HandClock) -> None:
    """It uses its sequence up; the next record tells of it."""
    with open_spool(tmp_path, clock, cap_bytes=3 * 16 * KIB) as spool:
        with pytest.raises(SpoolFullError):
            spool.append(transition(40 * KIB))
        assert spool.append(heartbeat()) == 2
        spool.seal()
        assert drop_rows(drain(spool)) == [("transition", 1, 1, 1, "spool-cap; boot boot1")]


def test_a_full_disk_loses_only_what_it_refuses(
    tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half-written records are overwritten, their sequences announced, and what was written stays readable.

    Nothing that ranks below a finding waits here, so nothing can make room.
    """
    real, full = os.pwrite, False

    def pwrite(descriptor: int, data: bytes, offset: int) -> int:
        if not full:
            return real(descriptor, data, offset)
        real(descriptor, data[:10], offset)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", pwrite)
    with open_spool(tmp_path, clock) as spool:
        spool.append(finding())
        spool.seal()
        assert spool.take() is not None  # on its way to the sink: it stays
        full = True
        for _ in range(3):
            with pytest.raises(SpoolError, match="No space left"):
                spool.append(finding())
        spool.maintain()  # the announcement finds no room either, and does not raise
        full = False
        assert spool.append(heartbeat()) == 5
        assert spool.stats().write_failures == 3
        spool.seal()
        rows = drain(spool)
    assert sequences(rows) == [1, 5, 6]
    assert drop_rows(rows) == [("finding", 3, 2, 4, "write-failed; boot boot1")]


def test_sealing_that_failed_is_tried_again(
    tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that refuses to sync a directory delays the segment and loses nothing."""
    real, broken = segments.sync_directory, False

    def sync(directory: Path) -> None:
        if broken:
            raise OSError(errno.EIO, "Input/output error")
        real(directory)

    monkeypatch.setattr(segments, "sync_directory", sync)
    with open_spool(tmp_path, clock) as spool:
        spool.append(heartbeat())
        broken = True
        with pytest.raises(SpoolError, match="cannot seal"):
            spool.seal()
        broken = False
        spool.append(heartbeat())
        spool.seal()
        rows = drain(spool)
    present = set(sequences(rows))
    assert present == {1, 2}


def test_damage_found_while_shipping_is_told(tmp_path: Path, clock: HandClock) -> None:
    """A segment that rots after it was sealed is set aside and announced; the next one is shipped."""
    with open_spool(tmp_path, clock) as spool:
        spool.append(heartbeat())
        spool.append(finding())
        spool.seal()
        (name,) = files(tmp_path, "sealed")
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-3])
        spool.append(heartbeat())
        spool.seal()
        assert sequences(drain(spool)) == [3]
        assert spool.stats().corrupt_segments == 1
        spool.seal()
        assert drop_rows(drain(spool)) == [
            ("finding", 1, 2, 2, "corrupt-segment; boot boot1"),
            ("heartbeat", 1, 1, 1, "corrupt-segment; boot boot1"),
        ]


def test_what_the_sink_rejects_is_set_aside_and_makes_room_first(tmp_path: Path, clock: HandClock) -> None:
    """A rejected segment is announced, kept for a look, and the first to go when room is needed."""
    with open_spool(tmp_path, clock, cap_bytes=4 * 16 * KIB) as spool:
        spool.append(transition(10 * KIB))
        spool.seal()
        parcel = spool.take()
        assert parcel is not None
        spool.reject(parcel)
        assert spool.take() is None
        assert files(tmp_path, "rejected") == ["boot1-000000000001-000000000001.rejected"]
        for number in range(6):
            spool.append(transition(6 * KIB, number))
        assert files(tmp_path, "rejected") == []
        assert spool.stats().dropped == {"transition": 1}
        spool.seal()
        assert drop_rows(drain(spool)) == [("transition", 1, 1, 1, "rejected-by-sink; boot boot1")]


def test_two_spools_on_one_directory(tmp_path: Path, clock: HandClock) -> None:
    """The second is refused while the first is open, and leaves the first one's segment alone."""
    with open_spool(tmp_path, clock) as spool:
        spool.append(heartbeat())
        with pytest.raises(SpoolError, match="in use by another"):
            open_spool(tmp_path, clock)
        spool.append(heartbeat())
        spool.seal()
        assert sequences(drain(spool)) == [1, 2]
    open_spool(tmp_path, clock).close()


def test_closing_seals_and_ends(tmp_path: Path, clock: HandClock) -> None:
    """After `close` everything is sealed, nothing can be appended, and closing again is harmless."""
    spool = open_spool(tmp_path, clock)
    spool.append(heartbeat())
    spool.close()
    spool.close()
    assert (len(files(tmp_path, "sealed")), files(tmp_path, "open")) == (1, [])
    with pytest.raises(SpoolError, match="is closed"):
        spool.append(heartbeat())


@pytest.mark.parametrize(
    ("boot_id", "options"),
    [("../x", {}), ("", {}), ("b", {"seal_bytes": 1}), ("b", {"cap_bytes": 2 * 16 * KIB})],
)
def test_unfit_parameters_are_refused(
    tmp_path: Path, clock: HandClock, boot_id: str, options: dict[str, int]
) -> None:
    """Boot ids that are no file names and sizes that cannot work are refused before anything is made."""
    with pytest.raises(SpoolError):
        open_spool(tmp_path / "spool", clock, Origin("u", boot_id, "p"), **options)
    assert not (tmp_path / "spool").exists()
