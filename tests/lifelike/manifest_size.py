"""Measure how fast a manifest grows: flush after flush, its size now and then.

PYTHON-WITH-ROCKSDICT tests/lifelike/manifest_size.py DIRECTORY [FLUSHES]
"""

from __future__ import annotations

import sys
from pathlib import Path

from application import Application  # type: ignore[import-not-found] # beside it: the script's own directory

EVERY = 1000
KEYS_PER_FLUSH = 20


def main(directory: str, flushes: str = "3000") -> None:
    """Write and print."""
    home = Path(directory) / "app"
    application = Application(home)
    application.do("open 0_0 s")
    for number in range(1, int(flushes) + 1):
        application.do(f"put 0_0 s {number * KEYS_PER_FLUSH} {KEYS_PER_FLUSH}")
        application.do("flush 0_0 s")
        if number % EVERY == 0:
            sizes = {path.name: path.stat().st_size for path in home.rglob("MANIFEST-*")}
            print(number, sizes, flush=True)
    application.do("close 0_0 s")


if __name__ == "__main__":
    main(*sys.argv[1:])
