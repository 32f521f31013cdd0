"""The fleet audit on simulated fleets of growing size: seconds per million events, growth, memory."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from spark_rollup import audit, ingest  # noqa: E402 - path first
from spark_rollup.config import AuditOptions  # noqa: E402
from spark_rollup.session import build_session  # noqa: E402
from tests.bench import fleet  # noqa: E402
from tests.bench.report import Options, Section  # noqa: E402

Result = TypeVar("Result")

SMALL = (fleet.Size(hours=0.25), fleet.Size(hours=2))
FULL = (fleet.Size(pods=950, hours=4), fleet.Size(pods=950, hours=40))
"""About 15,000 and 60,000 events; 5 and 50 million: idle pods beside copies of recorded scenarios."""


def run(options: Options) -> Section:
    """Generate, take in and audit each size in a process of its own."""
    results = []
    for number, size in enumerate(FULL if options.full else SMALL):
        work = options.work / str(number)
        words = [sys.executable, __file__, str(work), str(size.pods), str(size.hours)]
        done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
        results.append(json.loads(done.stdout.splitlines()[-1]))
    first, last = results[0], results[-1]
    exponent = math.log(last["audit_s"] / first["audit_s"]) / math.log(last["events"] / first["events"])
    rows = [
        (
            f"{one['events']:,}",
            f"{one['ingest_s']:.1f} s",
            f"{one['again_s']:.1f} s",
            f"{one['audit_s']:.1f} s",
            f"{one['audit_s'] / one['events'] * 1e6:.0f} s",
            f"{one['peak_mib']:.0f} MiB",
        )
        for one in results
    ]
    return Section(
        "Fleet audit",
        "A simulated fleet (`tests/bench/fleet.py`: recorded incidents among idle pods) is taken in and audited on"
        " `local[2]`, once. The start of Spark is not counted; tables and report are.",
        (
            "events",
            "ingest",
            "ingest, nothing new",
            "audit",
            "audit per million events",
            "peak memory of Java",
        ),
        rows,
        [f"Growth exponent of the audit, smallest to largest, its constant part included: {exponent:.2f}."],
    )


def measure(spark: SparkSession, size: fleet.Size, work: Path) -> dict[str, float]:
    """Measure one size; seconds, and the peak resident memory of the driver's Java."""
    fleet.write(spark, size, work / "raw")
    source, bronze = work / "raw" / "events", work / "bronze"
    taken, ingest_s = _timed(lambda: ingest.run(spark, source, bronze))
    _, again_s = _timed(lambda: ingest.run(spark, source, bronze))
    _, audit_s = _timed(lambda: audit.run(spark, AuditOptions(bronze, work / "out")))
    return {
        "events": taken.events,
        "ingest_s": ingest_s,
        "again_s": again_s,
        "audit_s": audit_s,
        "peak_mib": _peak_mib(spark),
    }


def _timed(work: Callable[[], Result]) -> tuple[Result, float]:
    began = time.monotonic()
    return work(), time.monotonic() - began


def _peak_mib(spark: SparkSession) -> float:
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main() -> int:
    """Measure the size that the arguments name: work directory, pods, hours."""
    work, pods, hours = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    work.mkdir(parents=True)
    size = fleet.Size(pods=pods, hours=hours)
    input_bytes = (1 << 30) if pods > SMALL[0].pods else 0
    sys.stdout.write(f"{json.dumps(measure(build_session(input_bytes, master='local[2]'), size, work))}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
