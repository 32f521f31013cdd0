"""Take out of an image's root what its program does not need: Debian packages as a whole, programs, set-user-id bits.

What stays of Debian: the packages in `KEPT`, those that hold the interpreter and its library, and those whose libraries
something that stays is linked with. dpkg's record is cut to them, so a scanner that reads it reads what is there. It
deletes the shell that started it and itself: nothing can run after it but the image's own program.

Usage: python bare.py agent|rollup
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

KEPT = {
    "agent": ("base-files", "ca-certificates", "libc-bin", "libgcc-s1", "netbase", "tzdata"),
    "rollup": (
        "base-files", "bash", "ca-certificates", "ca-certificates-java", "coreutils", "dash", "java-common", "libc-bin",
        "netbase", "openjdk-17-jre-headless", "tzdata",
    ),
}  # fmt: skip
"""`libc-bin` has the locale C.UTF-8; `libgcc-s1` is loaded when a thread ends, linked with by nothing."""

PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "agent": (),
    "rollup": ("bash", "coreutils", "dash", "openjdk-17-jre-headless"),
}
"""Packages whose programs stay: Spark's launchers are scripts of bash, and Hadoop calls coreutils."""

PROGRAM_FOLDERS = ("bin", "sbin", "usr/bin", "usr/sbin", "usr/local/bin", "usr/local/sbin")
WASTE = (
    "etc/apt", "etc/dpkg", "etc/cron.daily", "tmp", "usr/lib/dpkg", "usr/lib/apt", "usr/share/info",
    "usr/share/locale", "usr/share/man", "usr/share/python3", "var/backups", "var/cache", "var/lib/apt",
    "var/lib/dpkg/alternatives", "var/lib/dpkg/triggers", "var/lib/dpkg/updates", "var/log",
)  # fmt: skip
"""Folders that end up empty."""


class Root:
    """A file system with Debian's records: `/` in an image."""

    def __init__(self, path: Path) -> None:
        """Read what dpkg has recorded."""
        self.path = path.resolve()
        self.info = self.path / "var/lib/dpkg/info"
        self.files = {
            file.stem.partition(":")[0]: self._listed(file) for file in sorted(self.info.glob("*.list"))
        }
        self.owners = {file: package for package, files in self.files.items() for file in files}

    def needed(self, first: Iterable[str], trees: Iterable[Path]) -> set[str]:
        """Name the packages that stay.

        Args:
            first: Those that are wanted.
            trees: Folders that stay, Debian's or not.
        """
        trees = list(trees)
        needed = {name for name in first if name in self.files}
        needed |= {
            owner for file, owner in self.owners.items() if any(file.is_relative_to(tree) for tree in trees)
        }
        binaries = {file for tree in trees for file in walk(tree) if is_elf(file)}
        seen: set[Path] = set()
        while True:
            binaries |= {file for name in needed for file in self.files[name] if is_elf(file)}
            if binaries <= seen:
                return needed | {owner for name in needed if (owner := self._terms_of(name)) in self.files}
            for file in binaries - seen:
                needed |= {
                    self.owners[library] for library in libraries(self.path, file) if library in self.owners
                }
            seen |= binaries

    def cut_to(self, needed: set[str]) -> None:
        """Remove the files of all other packages, and their records."""
        for package in sorted(set(self.files) - needed):
            for file in sorted(self.files[package], reverse=True):
                if self.owners[file] == package:
                    remove(file)
            for record in self.info.glob(f"{package}[.:]*"):
                record.unlink()
        status = self.path / "var/lib/dpkg/status"
        stanzas = status.read_text(encoding="utf-8").split("\n\n")
        kept = [x for x in stanzas if x.partition("\n")[0].removeprefix("Package: ") in needed]
        status.write_text("\n\n".join(kept) + "\n", encoding="utf-8")
        (self.path / "var/lib/dpkg/status-old").unlink(missing_ok=True)

    def programs(self) -> Iterator[Path]:
        """List everything in the folders that PATH names."""
        folders = {(self.path / folder).resolve() for folder in PROGRAM_FOLDERS}
        for folder in sorted(folders):
            yield from sorted(folder.iterdir()) if folder.is_dir() else ()

    def _listed(self, record: Path) -> set[Path]:
        # `/bin` is a link to `/usr/bin`: a file has one name here, and the link belongs to no package that lists it
        lines = record.read_text(encoding="utf-8").splitlines()
        named = (self.path / line.lstrip("/") for line in lines)
        placed = {path.parent.resolve() / path.name for path in named if path.name}
        return {
            path for path in placed if path.parent != self.path and (path.is_symlink() or not path.is_dir())
        }

    def _terms_of(self, package: str) -> str:
        """Name the package that has this one's copyright file: some link to that of another."""
        folder = self.path / "usr/share/doc" / package
        return folder.readlink().name if folder.is_symlink() else package


def libraries(root: Path, file: Path) -> set[Path]:
    """List the shared libraries that a program or library is linked with, as the loader finds them."""
    loader = next(path for name in ("lib64", "lib") for path in sorted((root / name).glob("ld-linux*.so.*")))
    done = subprocess.run([loader, "--list", file], capture_output=True, text=True, check=False)
    named = (Path(word) for word in done.stdout.split() if word.startswith("/"))
    return {path.parent.resolve() / path.name for path in named}


def is_elf(file: Path) -> bool:
    """Check whether this is a program or a shared library."""
    if file.is_symlink() or not file.is_file():
        return False
    with file.open("rb") as content:
        return content.read(4) == b"\x7fELF"


def walk(tree: Path) -> Iterator[Path]:
    """List all files of a tree, or the one file; links are not followed."""
    if not tree.is_dir():
        yield tree
    for folder, _, names in os.walk(tree):
        yield from (Path(folder, name) for name in names)


def links(path: Path) -> Iterator[Path]:
    """List a path and what it links to, step by step: `python` may be `python3`, and that `python3.13`."""
    while path.is_symlink():
        path = path.parent.resolve() / path.name
        yield path
        path = path.parent / path.readlink()
    yield path.resolve()


def remove(path: Path) -> None:
    """Remove a file or a link, and folders that it leaves empty."""
    path.unlink(missing_ok=True)
    for folder in path.parents:
        if folder.is_symlink() or not folder.is_dir() or any(folder.iterdir()):
            return
        folder.rmdir()


def drop_bits(root: Path) -> None:
    """Take the set-user-id and set-group-id bits off every file."""
    for file in walk(root):
        mode = file.lstat().st_mode
        if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
            file.chmod(stat.S_IMODE(mode) & ~(stat.S_ISUID | stat.S_ISGID))


def strip(root: Root, image: str, python: Path, trees: Iterable[Path]) -> None:
    """Strip a root.

    Args:
        root: What to strip.
        image: Which image it is.
        python: The interpreter, however it was called.
        trees: Folders that stay.
    """
    interpreter = python.resolve()
    needed = root.needed(KEPT[image], [*links(python), *trees])
    programs = {file for name in PROGRAMS[image] for file in root.files.get(name, ())} | {interpreter}
    root.cut_to(needed)
    for program in root.programs():
        if program not in programs and program.resolve() not in programs:
            program.unlink()
    for entry in [entry for folder in WASTE for entry in (root.path / folder).glob("*")]:
        if entry.is_mount():
            continue  # of the machine that builds, not of the image
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    for link in list((root.path / "etc/alternatives").glob("*")):
        if not link.exists():
            link.unlink()
    for folder in ("usr", "opt"):
        drop_bits(root.path / folder)


def main(image: str) -> int:
    """Strip `/`."""
    trees = (Path(sysconfig.get_path("stdlib")), Path("/opt"), Path("/usr/local"))
    strip(Root(Path("/")), image, Path(sys.executable), trees)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
