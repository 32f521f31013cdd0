"""Mounts and space."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.inventory.disk import Unseen
from agent.observe.volume import Mount, Space, VolumeKind, find_mount, measure_space

TABLE = r"""
22 1 0:20 / / rw,relatime - overlay overlay rw,lowerdir=/a:/b
23 22 8:1 /pods /state rw,relatime shared:7 master:1 - ext4 /dev/sda1 rw
24 22 0:30 / /state-old rw - tmpfs tmpfs rw
25 22 0:31 / /with\040space ro,nosuid - nfs4 server:/export rw
26 22 0:32 / /covered rw - ext4 /dev/sdb1 rw
27 26 0:33 / /covered rw - fuse.s3fs s3fs rw
odd line
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Write a table of mounts."""
    path = tmp_path / "mountinfo"
    path.write_text(TABLE)
    return path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/state/app/0_1", Mount("/state", "ext4", False)),
        ("/state", Mount("/state", "ext4", False)),
        ("/state-old/x", Mount("/state-old", "tmpfs", False)),
        ("/statement", Mount("/", "overlay", False)),
        ("/with space/x", Mount("/with space", "nfs4", True)),
        ("/covered", Mount("/covered", "fuse.s3fs", False)),
    ],
)
def test_longest_and_last_mount_holds(table: Path, path: str, expected: Mount) -> None:
    """The longest mount point above a path is its mount; of two on one point the later one hides the other."""
    assert find_mount(Path(path), table) == expected


KINDS = {
    VolumeKind.LOCAL: ("ext4", "xfs", "a-new-one", "fuseblk"),
    VolumeKind.MEMORY: ("tmpfs",),
    VolumeKind.OVERLAY: ("overlay",),
    VolumeKind.NETWORK: ("nfs4", "9p"),
    VolumeKind.FUSE: ("fuse.glusterfs", "virtiofs"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_file_systems_are_classified(kind: VolumeKind) -> None:
    """Network and FUSE volumes can change without an announcement; the others cannot."""
    mounts = [Mount("/", filesystem, False) for filesystem in KINDS[kind]]
    assert {x.kind for x in mounts} == {kind}
    assert {x.supports_inotify for x in mounts} == {kind not in (VolumeKind.NETWORK, VolumeKind.FUSE)}


def test_own_mount_is_found(tmp_path: Path) -> None:
    """The kernel's real table has a mount for a real directory."""
    mount = find_mount(tmp_path)
    assert isinstance(mount, Mount)
    assert str(tmp_path).startswith(mount.mount_point)


def test_unreadable_table_is_a_value(tmp_path: Path) -> None:
    """No table, or an empty one, is no reason to stop."""
    assert find_mount(tmp_path, tmp_path / "missing") is Unseen.UNREADABLE
    (tmp_path / "empty").touch()
    assert find_mount(tmp_path, tmp_path / "empty") is Unseen.UNREADABLE


def test_space_is_measured(tmp_path: Path) -> None:
    """What is free lies between nothing and the size that the kernel says; a directory that is gone has no volume."""
    space = measure_space(tmp_path)
    assert isinstance(space, Space)
    found = os.statvfs(tmp_path)
    assert 0 < space.free_bytes <= found.f_blocks * found.f_frsize
    assert measure_space(tmp_path / "missing") is Unseen.VANISHED
