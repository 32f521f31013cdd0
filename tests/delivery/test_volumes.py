"""The spool on a real volume that is full or turns read-only: a small file system in memory, mounted for the test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from agent.errors import SpoolError
from tests.agent.ship.ship_support import (
    HandClock,
    drain,
    drop_rows,
    finding,
    heartbeat,
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


def test_a_start_on_a_full_volume_is_no_crash_loop(volume: Path) -> None:
    """Recovery needs no room: what is whole is shipped, and the volume has room again."""
    clock, spool_dir = HandClock(), volume / "spool"
    spool = open_spool(spool_dir, clock)
    for number in range(20):
        spool.append(heartbeat(number))
    (opened,) = spool_dir.glob("*.open")
    data = bytearray(opened.read_bytes())
    spool.close()
    (sealed,) = spool_dir.glob("*.sealed")
    sealed.unlink()
    data[len(data) // 2] ^= 1
    opened.write_bytes(data)
    fill(volume / "ballast")
    with open_spool(spool_dir, clock) as spool:
        assert spool.stats().corrupt_segments == 1
        assert len(sequences(drain(spool))) > 5
    assert (volume / "ballast").stat().st_size > 100_000


def test_a_read_only_volume_is_refused_at_the_start(volume: Path) -> None:
    """The message says what to give instead; mended, the spool is as it was."""
    clock, spool_dir = HandClock(), volume / "spool"
    with open_spool(spool_dir, clock) as spool:
        spool.append(heartbeat())
    subprocess.run(["mount", "-o", "remount,ro", str(volume)], check=True)
    with pytest.raises(SpoolError, match="Read-only file system; give it a writable volume of its own"):
        open_spool(spool_dir, clock)
    subprocess.run(["mount", "-o", "remount,rw", str(volume)], check=True)
    with open_spool(spool_dir, clock) as spool:
        assert sequences(drain(spool)) == [1]
