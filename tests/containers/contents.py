"""What must not be in an image, read off its unpacked root: no container runs for this."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from deploy.images.bare import PROGRAM_FOLDERS, PROGRAMS

SHELLS = ("sh", "ash", "bash", "busybox", "dash", "ksh", "zsh")
INSTALLERS = ("apk", "apt", "apt-get", "dpkg", "easy_install", "microdnf", "pip", "pip3", "rpm", "yum")
TOOLS = ("cc", "curl", "gcc", "ld", "make", "nc", "perl", "su", "sudo", "wget")
MODULES = ("ensurepip", "pip", "setuptools", "wheel")
UNCHECKED = 1
"""The flags of byte code that is bound to a hash of its source, not to a time, and is not compared with it."""


def strays(root: Path, image: str) -> list[str]:
    """List what an image should not have, by its unpacked root; of the two images only `rollup` has a shell."""
    found = [*_modes(root), *_programs(root, image), *_python(root), *_terms(root)]
    return sorted(found)


def recorded(root: Path) -> str:
    """Give dpkg's record of what is installed, for the bill of materials."""
    return (root / "var/lib/dpkg/status").read_text(encoding="utf-8")


def _modes(root: Path) -> Iterator[str]:
    for path in root.rglob("*"):
        entry = path.lstat()
        name, bits = f"/{path.relative_to(root)}", entry.st_mode
        if stat.S_ISLNK(bits) or stat.S_ISCHR(bits):  # `/dev` is the runtime's, whatever the image has there
            continue
        if stat.S_ISREG(bits) and bits & (stat.S_ISUID | stat.S_ISGID):
            yield f"{name}: runs as its owner or group"
        if bits & stat.S_IWOTH and not (stat.S_ISDIR(bits) and bits & stat.S_ISVTX):
            yield f"{name}: every user may write it"
        if entry.st_uid != root.lstat().st_uid:
            yield f"{name}: belongs to user {entry.st_uid}"


def _programs(root: Path, image: str) -> Iterator[str]:
    unwanted = {*INSTALLERS, *TOOLS, *(() if "bash" in PROGRAMS[image] else SHELLS)}
    for path in (root / folder / name for folder in PROGRAM_FOLDERS for name in sorted(unwanted)):
        if path.is_symlink() or path.exists():
            yield f"/{path.relative_to(root)}: a program of the build"


def _python(root: Path) -> Iterator[str]:
    for folder in sorted(root.rglob("*-packages")) + sorted(root.glob("usr/*/lib/python3*")):
        yield from (
            f"/{path.relative_to(root)}: of the build" for name in MODULES for path in folder.glob(name)
        )
    for path in root.rglob("*.pyc"):
        if int.from_bytes(path.read_bytes()[4:8], "little") != UNCHECKED:
            yield f"/{path.relative_to(root)}: byte code that is bound to a time"


def _terms(root: Path) -> Iterator[str]:
    for line in recorded(root).splitlines():
        package = line.removeprefix("Package: ")
        if package != line and not (root / "usr/share/doc" / package / "copyright").exists():
            yield f"{package}: no licence text"
    if not (root / "usr/share/doc/statewarden/LICENSE").is_file():
        yield "statewarden: no licence text"
