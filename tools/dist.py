"""Build the sdist from the checkout and the wheel from that sdist, as anyone else would; print their hashes.

The same commit, backend (`deploy/locks/build.txt`) and zlib give the same bytes, on any machine: the backend sorts the
files and gives them one fixed time. So SOURCE_DATE_EPOCH, which would change that time, is not passed on.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def build(source: Path, kind: str, target: Path) -> Path:
    """Build sdist or wheel of a tree with the backend of this environment, without network; give the file."""
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    program = f"import hatchling.build, sys; print(hatchling.build.build_{kind}(sys.argv[1]))"
    target.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", program, str(target.resolve())],
        cwd=source, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"the {kind} could not be built:\n{done.stderr}")
    return target / done.stdout.split()[-1]


def unpack(sdist: Path, target: Path) -> Path:
    """Unpack an sdist and give its root."""
    with tarfile.open(sdist) as archive:
        archive.extractall(target, filter="data")
    return target / sdist.name.removesuffix(".tar.gz")


def dist(target: Path) -> list[Path]:
    """Build sdist and wheel."""
    sdist = build(ROOT, "sdist", target)
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(unpack(sdist, Path(folder)), "wheel", target)
    return [sdist, wheel]


def main(argv: list[str]) -> int:
    """Build into a directory and print what is there, in the form that `sha256sum --check` reads."""
    parser = argparse.ArgumentParser(description="Build sdist and wheel.")
    parser.add_argument("--directory", type=Path, default=ROOT / "dist", help="where to (default: dist)")
    for path in dist(parser.parse_args(argv).directory):
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
