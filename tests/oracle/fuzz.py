"""Damage RocksDB files for minutes and hold the reader to its bounds: a part of `make prove`, longer by hand.

    python tests/oracle/fuzz.py --cpu-seconds 300 [--random-seed N]

Starts from the files in tests/data/rocksdb. What breaks a bound or raises is kept in `.cache/fuzz`; once it is
understood it belongs into tests/data/rocksdb/fuzz, which the normal tests read. Exit code 1 if anything was found.
"""

from __future__ import annotations

import argparse
import sys
import tarfile
import tempfile
import time
import traceback
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.oracle import hostile  # noqa: E402 - the repository goes on the path first

DATA = ROOT / "tests" / "data" / "rocksdb"
FOUND = ROOT / ".cache" / "fuzz"


def main(argv: Sequence[str] | None = None) -> int:
    """Run for the time asked for and tell what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cpu-seconds", type=float, default=300)
    parser.add_argument("--random-seed", type=int, default=1)
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as place:
        for archive in sorted(DATA.glob("*.tar.gz")):
            with tarfile.open(archive) as tar:
                tar.extractall(Path(place) / archive.stem, filter="data")
        originals = hostile.sources([Path(place)])
    tracemalloc.start()
    looks, failures = _fuzz(originals, Random(asked.random_seed), asked.cpu_seconds)
    print(f"{looks} looks, {len(failures)} different failures")
    return 1 if failures else 0


def _fuzz(originals: tuple[list[bytes], list[bytes]], random: Random, seconds: float) -> tuple[int, set[str]]:
    tables, manifests = originals
    failures: set[str] = set()
    looks = 0
    end = time.process_time() + seconds
    while time.process_time() < end:
        looks += 1
        is_table = random.random() < 0.7
        if is_table:
            content = hostile.mutate(random.choice(tables), random)
        else:
            content = hostile.mutate_manifest(random.choice(manifests), random)
        try:
            hostile.look(hostile.database_of(content) if is_table else hostile.with_manifest(content))
        except Exception as error:  # noqa: BLE001 - an exception is what this looks for
            place = traceback.extract_tb(error.__traceback__)[-1]
            name = f"{type(error).__name__}-{Path(place.filename).stem}-{place.lineno}"
            if name not in failures:
                failures.add(name)
                FOUND.mkdir(parents=True, exist_ok=True)
                (FOUND / f"{name}{'.sst' if is_table else '.manifest'}").write_bytes(content)
                print(f"{name}: {error}", flush=True)
    return looks, failures


if __name__ == "__main__":
    sys.exit(main())
