"""Set the version everywhere that names it: `python tools/set_version.py 0.3.0`. A test holds the places together."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

_VERSION = r"\d+\.\d+\.\d+"
_CHART = rf"(?<=^version: ){_VERSION}|(?<=^appVersion: ){_VERSION}"
_IMAGE = rf"(?<=/spark-with-statewarden:){_VERSION}|(?<=statewarden-agent:){_VERSION}|(?<=newTag: ){_VERSION}"
HOMES: dict[str, str] = {
    "pyproject.toml": rf'(?<=^version = "){_VERSION}',
    "agent/__init__.py": rf'(?<=^__version__ = "){_VERSION}',
    "spark_rollup/__init__.py": rf'(?<=^__version__ = "){_VERSION}',
    "helm/*/Chart.yaml": _CHART,
    "helm/*/README.md": rf"(?<=Version ){_VERSION}|(?<= version: ){_VERSION}",
    "helm/statewarden-sidecar/templates/_values.tpl": rf'(?<="){_VERSION}(?=-sinks")|(?<="){_VERSION}(?=" )',
    "deploy/**/*.yaml": _IMAGE,
    "tests/charts/consumer/Chart.yaml": rf"{_CHART}|(?<=^    version: ){_VERSION}",
    "tests/charts/test_sidecar.py": rf'(?<=", "){_VERSION}(?=-sinks"\))|(?<=", "){_VERSION}(?="\))',
}
"""Files (a pattern below the root) -> where in them the version is."""


def places(root: Path) -> Iterator[tuple[Path, re.Pattern[str]]]:
    """List the files that name the version, each with what finds it there."""
    for files, pattern in HOMES.items():
        for path in sorted(root.glob(files)):
            yield path, re.compile(pattern, re.MULTILINE)


def named_versions(root: Path) -> dict[str, set[str]]:
    """Find the versions that the files name: path -> versions; files that name none are left out."""
    named = {
        path.relative_to(root).as_posix(): set(found.findall(path.read_text("utf-8")))
        for path, found in places(root)
    }
    return {name: versions for name, versions in named.items() if versions}


def set_version(root: Path, version: str) -> list[str]:
    """Write a version into every file that names one, and list the files that changed."""
    changed = []
    for path, found in places(root):
        text = path.read_text("utf-8")
        if (new := found.sub(version, text)) != text:
            path.write_text(new, "utf-8")
            changed.append(path.relative_to(root).as_posix())
    return changed


def main(argv: list[str]) -> int:
    """Set the version that is given, or list which file names which."""
    parser = argparse.ArgumentParser(description="Set the version everywhere that names it.")
    parser.add_argument(
        "version", nargs="?", help="as in 0.3.0; without it: list the files and what they name"
    )
    version = parser.parse_args(argv).version
    if version is None:
        for name, found in named_versions(ROOT).items():
            print(f"{name}: {', '.join(sorted(found))}")
        return 0
    if not re.fullmatch(_VERSION, version):
        parser.error(f"{version!r} is no version; expected three numbers, such as 0.3.0")
    for name in set_version(ROOT, version):
        print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
