"""After any end of the agent, what is whole is kept and what is not is told; nothing raises."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from agent.contract.events import Origin
from agent.ship import frames
from agent.ship.spool import Spool
from tests.agent.ship.ship_support import (
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

NEXT_BOOT = Origin(pod_uid="uid-1", boot_id="boot2", pod="orders-0")


def killed(source: Path, target: Path) -> Path:
    """Copy a spool as a kill would leave it: no seal, no close, no lock."""
    shutil.copytree(source, target)
    return target


def reopened(directory: Path, clock: HandClock, origin: Origin = NEXT_BOOT) -> tuple[Spool, list[int]]:
    """Open a spool after a kill and list what is left of the first boot."""
    spool = open_spool(directory, clock, origin)
    return spool, sequences(drain(spool))


def test_truncation_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut anywhere, the open segment yields exactly the records that are whole, and the cut is counted."""
    for name in (
        "fsync",
        "fdatasync",
    ):  # nobody is killed here, and 1,500 starts with a slow disk take a while
        monkeypatch.setattr(os, name, lambda descriptor: None)
    clock = HandClock()
    spool = open_spool(tmp_path / "spool", clock)
    ends = [0]
    for number in range(3):
        spool.append(heartbeat(number))
        ends.append(spool.stats().bytes)
    (name,) = files(tmp_path / "spool", "open")
    data = (tmp_path / "spool" / name).read_bytes()
    near = {end + step for end in ends for step in range(-22, 23)}
    for size in sorted(n for n in near | set(range(0, len(data), 9)) if 0 <= n <= len(data)):
        target = tmp_path / "cut"
        target.mkdir()
        (target / name).write_bytes(data[:size])
        after, left = reopened(target, clock)
        whole = max(n for n, end in enumerate(ends) if end <= size)
        assert left == list(range(1, whole + 1)), size
        assert after.stats().torn_tails == (size not in ends), size
        assert after.stats().corrupt_segments == 0
        after.close()
        shutil.rmtree(target)
    spool.close()


def test_a_kill_between_any_two_appends_loses_nothing(tmp_path: Path) -> None:
    """Whatever `append` returned for is there after a kill, sealed or not, each once."""
    clock = HandClock()
    spool = open_spool(tmp_path / "spool", clock)
    for number in range(1, 41):
        spool.append(transition(1500, number))
        if number % 8 == 0:
            after, left = reopened(killed(tmp_path / "spool", tmp_path / str(number)), clock)
            assert left == list(range(1, number + 1))
            after.close()
    spool.close()


def test_one_changed_byte_anywhere_is_survived_and_told(tmp_path: Path) -> None:
    """Damage to a sealed segment sets it aside, with a count and an announcement of the exact range."""
    clock = HandClock()
    with open_spool(tmp_path / "spool", clock) as spool:
        for number in range(3):
            spool.append(heartbeat(number))
    (name,) = files(tmp_path / "spool", "sealed")
    size = (tmp_path / "spool" / name).stat().st_size
    for place in range(20, size, 97):
        target = killed(tmp_path / "spool", tmp_path / "damaged")
        data = bytearray((target / name).read_bytes())
        data[place] ^= 0x01
        (target / name).write_bytes(data)
        with open_spool(target, clock, NEXT_BOOT) as after:
            assert after.stats().corrupt_segments == 1
            assert after.stats().dropped == {"unknown": 3}
            after.append(heartbeat())
            after.seal()
            assert drop_rows(drain(after)) == [("unknown", 3, 1, 3, "corrupt-segment; boot boot1")]
            assert files(target, "bad") == ["boot1-000000000001-000000000003.bad"]
        shutil.rmtree(target)


def test_damage_in_the_middle_of_the_open_segment_keeps_what_comes_before(tmp_path: Path) -> None:
    """The whole records before the damage are shipped, those after it are set aside and announced."""
    clock = HandClock()
    spool = open_spool(tmp_path / "spool", clock)
    for number in range(4):
        spool.append(heartbeat(number))
    target = killed(tmp_path / "spool", tmp_path / "damaged")
    spool.close()
    (name,) = files(target, "open")
    lines = frames.parse((target / name).read_bytes()).lines
    data = bytearray((target / name).read_bytes())
    data[len(frames.frame(lines[0])) + 30] ^= 0x01
    (target / name).write_bytes(data)
    with open_spool(target, clock, NEXT_BOOT) as after:
        after.append(heartbeat())
        after.seal()
        rows = drain(after)
    assert sequences(rows) == [1]
    assert drop_rows(rows) == [("unknown", 3, 2, 4, "corrupt-segment; boot boot1")]
    assert files(target, "bad") == ["boot1-000000000002-000000000004.bad"]


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"garbage\n" * 3, frames.frame(b"{}")])
@pytest.mark.parametrize("suffix", ["000000000001.open", "000000000001-000000000001.sealed"])
def test_garbage_under_a_segments_name_is_survived(tmp_path: Path, content: bytes, suffix: str) -> None:
    """A file that only looks like a segment never stops the start, and is not shipped."""
    (tmp_path / f"boot1-{suffix}").write_bytes(content)
    spool, left = reopened(tmp_path, HandClock())
    assert left == []
    spool.append(heartbeat())
    spool.close()


def test_strangers_files_stay(tmp_path: Path) -> None:
    """Files that the spool does not know are neither read nor deleted."""
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "lost+found").mkdir()
    open_spool(tmp_path, HandClock()).close()
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / "lost+found").is_dir()


def test_the_same_boot_never_gives_a_sequence_twice(tmp_path: Path) -> None:
    """Reopened by the same boot, the spool counts on, also after everything was shipped and deleted."""
    clock = HandClock()
    given = []
    for _ in range(3):
        with open_spool(tmp_path, clock) as spool:
            given += [spool.append(heartbeat()) for _ in range(2)]
            spool.seal()
            drain(spool)
    assert given == [1, 2, 3, 4, 5, 6]


def test_a_new_boot_counts_from_one_and_ships_the_old_first(tmp_path: Path) -> None:
    """What an earlier boot left goes first, under the pod that wrote it."""
    clock = HandClock()
    moved = Origin(pod_uid="uid-2", boot_id="a-boot", pod="orders-1")
    with open_spool(tmp_path, clock) as spool:
        spool.append(heartbeat())
    with open_spool(tmp_path, clock, moved) as spool:
        assert spool.append(heartbeat(5)) == 1
        spool.seal()
        first = spool.take()
        assert first is not None
        assert (first.segment.pod_uid, first.segment.boot_id) == (ORIGIN.pod_uid, "boot1")


def test_findings_are_recognised_after_a_restart(tmp_path: Path) -> None:
    """Segments that an earlier boot left keep their place in the order of dropping."""
    clock = HandClock()
    with open_spool(tmp_path, clock) as spool:
        spool.append(finding())
        spool.seal()
        spool.append(transition(14_000))
    with open_spool(tmp_path, clock, NEXT_BOOT, cap_bytes=3 * 16 * 1024) as spool:
        for number in range(3):
            spool.append(transition(9_000, number))
        spool.seal()
        rows = drain(spool)
    assert sequences(rows) == [1]
    assert ("transition", 1, 2, 2, "spool-cap; boot boot1") in drop_rows(rows)
