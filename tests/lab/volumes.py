"""Volumes of pods: plain directories, or small ones of their own that can be full; copies of them."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.lab.toolbox import tool

CHUNK = bytes(1 << 16)


class Volumes:
    """State directories of all pods of a run."""

    def __init__(self, home: Path, mib: int) -> None:
        """Make nothing yet; `mib`: size of each pod's volume, MiB; 0: directories without a limit."""
        self._home = home
        self._mib = mib
        self._mounted: list[Path] = []
        self._copies = 0

    def path(self, pod: str) -> Path:
        """Give the state directory of a pod."""
        return self._home / "state" / pod / "state" if self._mib else self._home / "state" / pod

    def make(self, pod: str) -> None:
        """Make it; a volume of its own needs root."""
        if self._mib and self.path(pod).parent not in self._mounted:
            root, image = self.path(pod).parent, self._home / f"{pod}.ext4"
            root.mkdir(parents=True)
            with image.open("wb") as file:
                file.truncate(self._mib << 20)
            _run(tool("mkfs.ext4"), "-q", "-m", "0", str(image))
            _run(tool("mount"), "-o", "loop", str(image), str(root))
            self._mounted.append(root)
        self.path(pod).mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def filled(self, pod: str) -> Iterator[None]:
        """Leave no room on a pod's volume."""
        ballast = self.path(pod).parent / "ballast"
        try:
            with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
                while file.write(CHUNK):
                    pass
            yield
        finally:
            ballast.unlink(missing_ok=True)

    def save(self, pod: str) -> Path:
        """Copy a pod's volume aside as it is."""
        self._copies += 1
        copy = self._home / "copies" / str(self._copies)
        copy.mkdir(parents=True)
        _run("cp", "-a", f"{self.path(pod)}/.", str(copy))
        return copy

    def put_back(self, copy: Path, pod: str) -> None:
        """Let a pod's volume be a copy that was saved."""
        self.make(pod)
        for entry in self.path(pod).iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        _run("cp", "-a", f"{copy}/.", str(self.path(pod)))

    def close(self) -> None:
        for root in self._mounted:
            _run(tool("umount"), "-l", str(root))
        self._mounted.clear()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
