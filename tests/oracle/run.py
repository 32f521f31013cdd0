"""Compare the RocksDB reader with RocksDB itself, then run it beside a busy writer: `make prove`, or by hand.

    python tests/oracle/run.py                                  all releases, then 300 seconds beside 10.1.3
    python tests/oracle/run.py --releases 5.7.3 --seconds 0     one release, no busy writer
    python tests/oracle/run.py --recorded DIR                   also every database below DIR

Needs java, javac, and mvn the first time. Exit code 0 when everything was equal and nothing was falsely reported,
1 otherwise, 2 when a tool is missing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.oracle.beside import Beside, quantile_ms, read_beside  # noqa: E402 - the repository goes on the path first
from tests.oracle.oracle import Row, compare_recorded, write_and_compare  # noqa: E402
from tests.oracle.toolbox import JARS, MissingToolError, make_writer  # noqa: E402


def main(argv: Sequence[str] | None = None) -> int:
    """Run what was asked for and print it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--releases", nargs="*", default=list(JARS), choices=list(JARS), metavar="VERSION")
    parser.add_argument("--recorded", type=Path, nargs="*", default=[], metavar="DIR")
    parser.add_argument("--seconds", type=int, default=300, help="beside each busy writer; 0 = not at all")
    parser.add_argument("--busy", nargs="*", default=["10.1.3"], choices=list(JARS), metavar="VERSION")
    asked = parser.parse_args(argv)
    try:
        with tempfile.TemporaryDirectory(prefix="oracle-") as place:
            return _run(asked, Path(place))
    except MissingToolError as error:
        print(f"missing: {error}", file=sys.stderr)
        return 2


def _run(asked: argparse.Namespace, place: Path) -> int:
    bad = 0
    if asked.releases or asked.recorded:
        print("| written by | stores | files | entries | deletions | entries of `offsets` | not equal |")
        print("|---|---|---|---|---|---|---|")
    for version in asked.releases:
        bad += _print_row(write_and_compare(make_writer(version), place / version))
    for number, root in enumerate(asked.recorded):
        bad += _print_row(compare_recorded(root, place / f"recorded-{number}"))
    if asked.seconds:
        print(f"\n| beside, {asked.seconds} s | flushes, sessions | reads | raced | false alarms "
              "| fresh: p50, p99, max ms | with cache: p50, p99, max ms |")  # fmt: skip
        print("|---|---|---|---|---|---|---|")
        for version in asked.busy:
            bad += _print_beside(read_beside(make_writer(version), place / f"busy-{version}", asked.seconds))
    return 1 if bad else 0


def _print_row(row: Row) -> int:
    counts = (row.stores, row.files, row.entries, row.deletions, row.offsets, len(row.unequal))
    print(f"| {row.name} | {' | '.join(map(str, counts))} |", flush=True)
    for one in row.unequal[:20]:
        print(f"  {one}")
    return len(row.unequal)


def _print_beside(found: Beside) -> int:
    alarms = found.false_alarms
    raced = found.outcomes["raced"]
    times = [
        ", ".join(f"{quantile_ms(values, share):.1f}" for share in (0.5, 0.99, 1.0))
        for values in found.seconds.values()
    ]
    work = ", ".join(str(value) for value in found.written.values())
    share = f"{raced} ({100 * raced / max(1, found.reads):.2f} %)"
    print(
        f"| {found.name} | {work} | {found.reads} | {share} | {alarms or 0} | {' | '.join(times)} |",
        flush=True,
    )
    return len(alarms)


if __name__ == "__main__":
    sys.exit(main())
