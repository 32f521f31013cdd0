"""Measure what docs/evidence.md promises: `make bench`.

Nothing is asserted: a slow machine is not a defect. `make bench ARGS="--full"` takes the sizes of the promise, and
`--against COMMIT` measures an older commit beside this checkout; what follows goes into docs/evidence.md by hand. CPU
is user and kernel time of the process itself, so that other load on the machine changes it little.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench import (  # noqa: E402 - path first
    bench_many,
    bench_memory,
    bench_real,
    bench_replay,
    bench_rocksdb,
    bench_rollup,
    bench_scan,
    bench_spool,
    bench_watch,
)
from tests.bench.report import Measured, Options, table  # noqa: E402
from tests.bench.versions import older  # noqa: E402

BENCHMARKS: dict[str, Callable[[Options], list[Measured]]] = {
    "replay": bench_replay.run,
    "scan": bench_scan.run,
    "watch": bench_watch.run,
    "real": bench_real.run,
    "many": bench_many.run,
    "memory": bench_memory.run,
    "rocksdb": bench_rocksdb.run,
    "spool": bench_spool.run,
    "rollup": bench_rollup.run,
}
MEMORY = Path("/dev/shm")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen benchmarks; always 0, as numbers are not judged."""
    parser = argparse.ArgumentParser(prog="bench", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which of {', '.join(BENCHMARKS)} (default: all)"
    )
    parser.add_argument("--full", action="store_true", help="sizes of the promise; takes about 20 minutes")
    parser.add_argument("--rounds", type=int, default=3, help="how often everything is measured (default: 3)")
    parser.add_argument(
        "--load-seconds", type=float, help="length of each load on a watcher (default: 60 or 10)"
    )
    parser.add_argument("--against", metavar="COMMIT", help="measure this older commit beside, in turn")
    chosen = parser.parse_args(arguments)
    unknown = sorted(set(chosen.names) - BENCHMARKS.keys())
    if unknown or chosen.rounds < 1:
        parser.error(f"no such benchmark: {', '.join(unknown)}" if unknown else "--rounds must be at least 1")
    load_s = chosen.load_seconds or (60.0 if chosen.full else 10.0)
    before = older(chosen.against) if chosen.against else None
    options = Options(chosen.full, chosen.rounds, Path(), Path(), load_s, before)
    for name in chosen.names or BENCHMARKS:
        began_s = time.monotonic()
        sys.stdout.write(table(_run(name, options), options))
        sys.stdout.write(f"{name}: {time.monotonic() - began_s:.0f} s\n")
        sys.stdout.flush()
    return 0


def _run(name: str, options: Options) -> list[Measured]:
    prefix = f"statewarden-bench-{name}-"
    in_memory = MEMORY if os.access(MEMORY, os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(prefix=prefix) as work,
        tempfile.TemporaryDirectory(prefix=prefix, dir=in_memory) as memory,
    ):
        return BENCHMARKS[name](replace(options, work=Path(work), memory=Path(memory)))


if __name__ == "__main__":
    sys.exit(main())
