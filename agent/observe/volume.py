"""The volume below the state directory: file system, whether it announces changes, and how full it is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from agent.inventory.disk import Unseen

MOUNTS = Path("/proc/self/mountinfo")


class VolumeKind(StrEnum):
    """What a file system means for watching and for keeping state."""

    LOCAL = "local"
    MEMORY = "memory"  # gone with the pod
    OVERLAY = "overlay"  # a container's own layer: gone with the container
    NETWORK = "network"  # changes made on another machine are not announced
    FUSE = "fuse"


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of `mountinfo`."""

    mount_point: str  # absolute path
    filesystem: str  # type as the kernel names it, for example `ext4` or `fuse.s3fs`
    read_only: bool  # whether this mount (not necessarily the device) is read-only

    @property
    def kind(self) -> VolumeKind:
        """Class of the file system; a type that is not known counts as local."""
        if self.filesystem == "fuseblk":  # a local disk behind a FUSE driver (ntfs)
            return VolumeKind.LOCAL
        if self.filesystem.partition(".")[0] in {"fuse", "virtiofs"}:
            return VolumeKind.FUSE
        return _KINDS.get(self.filesystem, VolumeKind.LOCAL)

    @property
    def supports_inotify(self) -> bool:
        """Whether every change is sure to be announced; if not, only rescans can be relied on."""
        return self.kind not in {VolumeKind.NETWORK, VolumeKind.FUSE}


@dataclass(frozen=True, slots=True)
class Space:
    """How full a volume is, as an unprivileged user sees it."""

    free_bytes: int  # bytes left


_KINDS = {
    **dict.fromkeys(("tmpfs", "ramfs"), VolumeKind.MEMORY),
    **dict.fromkeys(("overlay", "aufs"), VolumeKind.OVERLAY),
    **dict.fromkeys(("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs"), VolumeKind.NETWORK),
    **dict.fromkeys(("ceph", "lustre", "gpfs", "beegfs", "gfs2", "ocfs2"), VolumeKind.NETWORK),
}
_OCTAL = re.compile(r"\\([0-7]{3})")


def find_mount(path: Path, mounts: Path = MOUNTS) -> Mount | Unseen:
    """Return which mount a path is on, symbolic links resolved; Unseen if the table cannot be read.

    That with the longest matching mount point, of several on the same point the last: it hides the others.
    """
    try:
        lines = os.fsdecode(mounts.read_bytes()).splitlines()
        real = os.path.realpath(path)
    except PermissionError:
        return Unseen.DENIED
    except OSError:
        return Unseen.UNREADABLE
    above = [x for x in _parse(lines) if f"{real}/".startswith(x.mount_point.rstrip("/") + "/")]
    if not above:
        return Unseen.UNREADABLE
    longest = max(len(mount.mount_point) for mount in above)
    return [mount for mount in above if len(mount.mount_point) == longest][-1]


def volume_kind(path: Path) -> str:
    """Return the kind of volume a path is on, as the inventory keeps it; empty if it is unknown."""
    mount = find_mount(path)
    return "" if isinstance(mount, Unseen) else mount.kind.value


def measure_space(path: Path) -> Space | Unseen:
    """Return how full the volume below a path is."""
    try:
        found = os.statvfs(path)
    except FileNotFoundError:
        return Unseen.VANISHED
    except PermissionError:
        return Unseen.DENIED
    except OSError:
        return Unseen.UNREADABLE
    return Space(found.f_bavail * found.f_frsize)


def _parse(lines: Iterable[str]) -> list[Mount]:
    """Parse `mountinfo`; lines of another form are left out.

    Source:
        proc(5): id, parent, device, root, mount point, options, optional fields, `-`, type, source, options.
    """
    mounts = []
    for line in lines:
        place, separator, volume = line.partition(" - ")
        left, right = place.split(" "), volume.split(" ")
        if separator and len(left) >= 6:
            mount_point = _OCTAL.sub(lambda match: chr(int(match[1], 8)), left[4])
            mounts.append(Mount(mount_point, right[0], "ro" in left[5].split(",")))
    return mounts
