"""Interpreters and environments beside this one, for tests that also run on another Python, or with another Spark.

One that is installed is taken (on PATH, pyenv's, uv's). Else, where it can be had without an archive of GitHub's, it is
fetched once into the cache ($STATEWARDEN_CACHE or ~/.cache/statewarden): a Go module carries a CPython build of the
project python-build-standalone, and Go's own client fetches it. Environments are kept there, too, one for each set of
locks.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULE = "github.com/kluctl/go-embed-python"
FETCHED = {"3.14": ("v0.0.0-3.14.6-20260610-1", "h1:oGUS7++Wm3LgxUfD6AmJgKbKQD2wdQFO9PzyJv6T+E4=")}
"""Minor release -> version of the module, and its checksum as Go writes it."""
PLATFORMS = {"x86_64": "linux-amd64", "aarch64": "linux-arm64"}
PROBE = "import sys, ctypes, sqlite3, ssl, zlib; print('.'.join(map(str, sys.version_info[:2])))"


class UnavailableError(Exception):
    """There is no such interpreter here, and none can be fetched."""


def cache() -> Path:
    """Give the directory for what is fetched once."""
    return Path(os.environ.get("STATEWARDEN_CACHE") or Path.home() / ".cache" / "statewarden")


def interpreter(minor: str) -> Path:
    """Find an interpreter (`3.14`), or fetch it; `UnavailableError` says what was searched and tried."""
    kept = cache() / "pythons" / minor / "bin" / f"python{minor}"
    for candidate in (*_installed(minor), kept):
        if _is_one(candidate, minor):
            return candidate
    if minor not in FETCHED:
        raise UnavailableError(f"no Python {minor} on PATH, of pyenv or of uv, and no way to fetch it here")
    _fetch(minor, kept.parent.parent)
    if not _is_one(kept, minor):
        raise UnavailableError(f"{kept} does not run on this machine")
    return kept


def _installed(minor: str) -> Iterator[Path]:
    if f"{sys.version_info.major}.{sys.version_info.minor}" == minor:
        yield Path(sys.executable)
    on_path = shutil.which(f"python{minor}")
    if on_path:
        yield Path(on_path)
    yield from sorted((Path.home() / ".pyenv" / "versions").glob(f"{minor}.*/bin/python"), reverse=True)
    if shutil.which("uv"):
        found = _said(["uv", "python", "find", "--no-python-downloads", minor])
        if found:
            yield Path(found)


def _is_one(path: Path, minor: str) -> bool:
    """Run it: a shim may lead nowhere, and a build may lack what the agent needs."""
    return path.is_file() and _said([str(path), "-c", PROBE]) == minor


def _said(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _fetch(minor: str, target: Path) -> None:
    version, checksum = FETCHED[minor]
    platform = PLATFORMS.get(os.uname().machine)
    if platform is None or shutil.which("go") is None:
        raise UnavailableError(
            f"Python {minor} is fetched as a Go module, for {', '.join(PLATFORMS)}: install Go"
        )
    say(f"fetching Python {minor} (once) into {target}")
    done = subprocess.run(
        ["go", "mod", "download", "-json", f"{MODULE}@{version}"],
        cwd="/", capture_output=True, text=True, check=False,
    )  # fmt: skip
    answer = json.loads(done.stdout or "{}")
    if done.returncode or "Dir" not in answer:
        raise UnavailableError(f"{MODULE} could not be fetched: {answer.get('Error') or done.stderr}")
    if answer["Sum"] != checksum:
        raise UnavailableError(f"{MODULE}@{version} has the checksum {answer['Sum']}, known is {checksum}")
    unfinished = target.with_name(f".{target.name}-{os.getpid()}")
    unpack(Path(answer["Dir"]) / "python" / "internal" / "data" / platform, unfinished)
    shutil.rmtree(target, ignore_errors=True)
    unfinished.rename(target)


def unpack(source: Path, target: Path) -> None:
    """Put files where their list says: some are compressed, links are in the list only."""
    for entry in json.loads((source / "files.json").read_text("utf-8"))["files"]:
        path = target / entry["name"]
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry.get("symlink"):
            path.symlink_to(entry["symlink"])
        elif entry.get("compressed"):
            path.write_bytes(gzip.decompress((source / f"{entry['name']}.gz").read_bytes()))
        elif (source / entry["name"]).is_dir():
            path.mkdir(exist_ok=True)
            continue
        else:
            path.write_bytes((source / entry["name"]).read_bytes())
        if not path.is_symlink():
            path.chmod(0o755 if entry["perm"] & 0o100 else 0o644)


def environment(python: Path, *locks: Path) -> Path:
    """Make a virtual environment, or give the one that was made before: its interpreter; else `UnavailableError`.

    Locks are installed in their order, by hash; the first may bring what the others are built with.
    """
    about = "\n".join(
        [_said([str(python), "-VV"]), str(python), *(lock.read_text("utf-8") for lock in locks)]
    )
    folder = cache() / "environments" / hashlib.sha256(about.encode()).hexdigest()[:16]
    own = folder / "bin" / "python"
    if (folder / "complete").is_file() and _said([str(own), "-c", "print(1)"]) == "1":
        return own
    shutil.rmtree(folder, ignore_errors=True)
    say(f"environment {folder} of {python} with {', '.join(lock.name for lock in locks)}")
    _run([str(python), "-m", "venv", "--without-pip", str(folder)])
    for lock in locks:
        _run([*_installer(own), "--no-build-isolation", "--require-hashes", "--requirement", str(lock)])
    (folder / "complete").touch()
    return own


def _installer(python: Path) -> list[str]:
    if _said(["uv", "--version"]):
        return ["uv", "pip", "install", "--quiet", "--python", str(python)]
    return [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-compile",
    ]


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnavailableError(f"{' '.join(command)} failed: {done.stderr.strip()[-2000:]}")


def say(text: str) -> None:
    """Say what takes a while."""
    sys.stderr.write(f"statewarden pythons: {text}\n")
