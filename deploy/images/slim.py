"""Take out of a virtual environment what an image never needs. Run by the environment's own Python, in the build.

Usage: python slim.py agent|rollup
"""

from __future__ import annotations

import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

UNUSED = {
    "agent": ("spark_rollup", "psutil/tests"),
    "rollup": ("pyspark/examples", "pyspark/data", "pyspark/pandas/tests", "pyspark/sql/tests"),
}
"""Below the site-packages. The contract that the rollup reads is the agent's, so the agent stays in both."""

SUFFIXES = (".pyi", ".c", ".h", ".pxd", ".pyx", ".a")
SCRIPTS = {"agent": ("statewarden-rollup",), "rollup": ("statewarden",)}


def doomed(site: Path, image: str) -> Iterator[Path]:
    """Name what goes."""
    yield from (site / name for name in UNUSED[image])
    yield from (path for path in site.rglob("*") if path.suffix in SUFFIXES)
    yield from (path for path in site.rglob("__pycache__"))
    scripts = Path(sysconfig.get_path("scripts"))
    yield from (scripts / name for name in SCRIPTS[image])
    yield from scripts.glob("[Aa]ctivate*")


def main(image: str) -> int:
    """Remove it."""
    for path in list(doomed(Path(sysconfig.get_path("purelib")), image)):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
