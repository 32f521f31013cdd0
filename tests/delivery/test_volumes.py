"""The spool on a real volume that is full or turns read-only: a small file system in memory, mounted for the test."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from agent.contract.events import Origin
from agent.errors import SpoolError
from tests.agent.ship.ship_support import (
    HandClock,
    drain,
    drop_rows,
    finding,
    heartbeat,
    killed,
    open_spool,
    sequences,
    transition,
)

pytestmark = pytest.mark.delivery


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    """Give a volume of 256 KiB."""
    folder = tmp_path / "volume"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting is refused here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(path: Path) -> None:
    """Write until nothing more fits."""
    with path.open("wb", buffering=0) as ballast, suppress(OSError):
        while ballast.write(b"x" * 512):
            pass


def test_a_full_volume_drops_by_rank_and_keeps_the_findings(volume: Path) -> None:
    """The cap is larger than the volume: transitions go, findings stay, and the account is whole."""
    clock, spool_dir = HandClock(), volume / "spool"
    with open_spool(spool_dir, clock, cap_bytes=64 * 1024 * 1024) as spool:
        for number in range(400):
            with suppress(SpoolError):
                spool.append(transition(1_000, number) if number % 10 else finding())
        assert "finding" not in spool.stats().dropped
        rows = drain(spool)
        for _ in range(3):
            spool.append(heartbeat())
            spool.seal()
            rows += drain(spool)
        dropped = dict(spool.stats().dropped)
    assert dropped["transition"] > 0
    seen = sequences(rows)
    assert sum(row["kind"] == "finding" for row in rows) == 40
    assert len(seen) == len(set(seen))
    assert sum(count for _, count, *_ in drop_rows(rows)) == sum(dropped.values())
    assert len(seen) + sum(dropped.values()) == max(seen)


def test_a_volume_that_others_fill_is_lived_on(volume: Path) -> None:
    """With not a byte free records may be refused, nothing ends, and with room again the account is whole."""
    clock, spool_dir = HandClock(), volume / "spool"
    with open_spool(spool_dir, clock) as spool:
        for number in range(30):
            spool.append(transition(1_000, number))
        fill(volume / "ballast")
        for number in range(300):
            with suppress(SpoolError):
                spool.append(transition(1_000, number))
            clock.at_s += 0.1
        spool.seal()
        assert spool.stats().dropped["transition"] > 200
        rows = drain(spool)
        assert len(sequences(rows)) > 10
        (volume / "ballast").unlink()
        spool.maintain()
        before = dict(spool.stats().dropped)
        for number in range(60):
            spool.append(transition(1_000, number))
        assert spool.stats().dropped == before
        spool.seal()
        rows += drain(spool)
        assert sum(count for _, count, *_ in drop_rows(rows)) == sum(spool.stats().dropped.values())
        assert len(sequences(rows)) + sum(spool.stats().dropped.values()) == max(sequences(rows))


def test_a_start_on_a_full_volume_is_no_crash_loop(volume: Path, tmp_path: Path) -> None:
    """What an agent left is shipped once without a byte free, its baseline is read; with room again records come in."""
    clock, spool_dir = HandClock(), volume / "spool"
    with open_spool(spool_dir, clock) as spool:
        spool.baseline.write({"lines": 1})
        spool.baseline.commit(7)
        for number in range(40):
            spool.append(transition(1_000, number))
        left = killed(spool_dir, tmp_path / "killed")
    shutil.rmtree(spool_dir)
    killed(left, spool_dir)
    fill(volume / "ballast")
    with open_spool(spool_dir, clock, Origin("uid-1", "boot2", "orders-0")) as spool:
        assert (spool.baseline.written_us(), list(spool.baseline.lines())) == (7, [{"lines": 1}])
        assert sequences(drain(spool)) == list(range(1, 41))
        assert drain(spool) == []
        (volume / "ballast").unlink()
        spool.maintain()
        assert spool.append(finding()) == 1
        spool.seal()
        assert sequences(drain(spool), "boot2") == [1]
    with open_spool(spool_dir, clock, Origin("uid-1", "boot3", "orders-0")) as spool:
        assert spool.next_parcel() is None


def test_a_new_spool_on_a_full_volume_waits_for_room(volume: Path) -> None:
    """The agent runs, counts what it cannot keep, and announces it when there is room."""
    clock, spool_dir = HandClock(), volume / "spool"
    spool_dir.mkdir()
    (spool_dir / "lock").touch()
    fill(volume / "ballast")
    with open_spool(spool_dir, clock) as spool:
        with pytest.raises(SpoolError):
            spool.append(finding())
        (volume / "ballast").unlink()
        spool.maintain()
        spool.append(heartbeat())
        spool.seal()
        rows = drain(spool)
    assert drop_rows(rows) == [("finding", 1, 1, 1, "write-failed; boot boot1")]


def test_a_read_only_volume_is_refused_at_the_start(volume: Path) -> None:
    """The message says what to give instead; fixed, the spool is as it was."""
    clock, spool_dir = HandClock(), volume / "spool"
    with open_spool(spool_dir, clock) as spool:
        spool.append(heartbeat())
    subprocess.run(["mount", "-o", "remount,ro", str(volume)], check=True)
    with pytest.raises(SpoolError, match="Read-only file system; give the agent its own writable volume"):
        open_spool(spool_dir, clock)
    subprocess.run(["mount", "-o", "remount,rw", str(volume)], check=True)
    with open_spool(spool_dir, clock) as spool:
        assert sequences(drain(spool)) == [1]
