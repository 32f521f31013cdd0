"""Room on the spool's volume that is let go when the disk is full."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from agent.ship.reserve import NAME, Reserve


def test_it_takes_real_blocks_and_gives_them_back(tmp_path: Path) -> None:
    """Allocated, not sparse; released once; taken again when asked."""
    reserve = Reserve(tmp_path, 64 * 1024)
    stat = (tmp_path / NAME).stat()
    assert (stat.st_size, stat.st_blocks * 512 >= 64 * 1024) == (64 * 1024, True)
    assert reserve.release()
    assert not (tmp_path / NAME).exists()
    assert not reserve.release()
    assert reserve.hold()
    assert (tmp_path / NAME).exists()


def test_a_reserve_of_an_earlier_start_is_taken_over(tmp_path: Path) -> None:
    """Larger or smaller, it has the size that is asked for now."""
    for size_bytes in (64 * 1024, 16 * 1024, 32 * 1024):
        Reserve(tmp_path, size_bytes)
        assert (tmp_path / NAME).stat().st_size == size_bytes


def test_a_full_disk_leaves_it_for_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without room there is no reserve, no error and no file; with room it comes."""

    def refuse(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", refuse)
        reserve = Reserve(tmp_path, 1024)
        assert not reserve.hold()
        assert not reserve.release()
        assert reserve.lacks_room
        assert list(tmp_path.iterdir()) == []
    assert reserve.hold()
    assert not reserve.lacks_room


def test_a_file_system_that_cannot_set_room_aside_lacks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no reserve then, and no reason to think that the disk is full."""

    def refuse(*_: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    reserve = Reserve(tmp_path, 1024)
    assert not reserve.hold()
    assert not reserve.lacks_room
