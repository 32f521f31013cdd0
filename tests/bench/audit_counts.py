"""What one audit asks of Spark: jobs, stages, tasks, frames kept, collected and written, words to Java, CPU by thread.

    python tests/bench/audit_counts.py BRONZE [--times 2] [--conf KEY=VALUE]

The constant part of an audit is planning and compiling, so these counts are what it costs. The first run in a fresh
Java is what `statewarden-rollup audit` pays; each further one shows what a warm Java would.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from py4j.clientserver import ClientServerConnection  # noqa: E402 - path first
from py4j.java_gateway import GatewayConnection  # noqa: E402
from pyspark.sql import DataFrameWriter, SparkSession  # noqa: E402
from pyspark.sql.classic.dataframe import DataFrame  # noqa: E402

from spark_rollup import audit  # noqa: E402
from spark_rollup.config import AuditOptions  # noqa: E402
from spark_rollup.spark import needs  # noqa: E402
from spark_rollup.spark.session import build_session  # noqa: E402

KINDS = {
    "C1 Compiler": "compiling (C1)",
    "C2 Compiler": "compiling (C2)",
    "GC Thread": "collecting garbage",
    "VM Thread": "collecting garbage",
    "G1 ": "collecting garbage",
    "Executor task l": "tasks",
    "Executor task": "tasks",
    "Thread-": "planning (Python's calls)",
    "dag-scheduler": "scheduling",
    "broadcast": "broadcasts",
}
"""How a thread's name begins, and what it does."""


def main() -> int:
    """Count one audit, or several in one Java."""
    parser = argparse.ArgumentParser(prog="audit_counts", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("input", type=Path)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--bytes", type=int, default=None, help="pretend that the input is so large")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--output", type=Path, help="keep the audit's output there")
    chosen = parser.parse_args()
    delta = (chosen.input / "events").is_dir()
    size = chosen.bytes if chosen.bytes is not None else _size(chosen.input)
    own = time.process_time()
    spark = build_session(
        size,
        master="local[2]",
        conf=dict(word.split("=", 1) for word in chosen.conf),
        jars=needs.bring([needs.DELTA], None, {}) if delta else [],
        delta=delta,
    )
    java = int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    sys.stdout.write(f"start: Python {time.process_time() - own:.1f} s, Java {tree_seconds(java):.1f} s\n")
    for _ in range(chosen.times):
        with TemporaryDirectory() as work:
            options = AuditOptions(chosen.input, chosen.output or Path(work) / "out")
            told = counted(spark, java, partial(audit.run, spark, options))
            sys.stdout.write(f"{json.dumps(told)}\n")
    return 0


def _size(source: Path) -> int:
    return sum(path.stat().st_size for path in source.rglob("*") if path.is_file())


def counted(spark: SparkSession, java: int, work: Callable[[], object]) -> dict[str, object]:
    """Do something and count what it asked of Spark."""
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup(None))
    own_s, java_s, threads = time.process_time(), tree_seconds(java), _threads(java)
    collected = _collected(spark)
    with _calls() as calls:
        work()
    kinds = Counter(_threads(java))
    kinds.subtract(threads)
    jobs = [tracker.getJobInfo(job) for job in sorted(set(tracker.getJobIdsForGroup(None)) - before)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    ran = [stage for stage in stages if stage and stage.numCompletedTasks]
    return {
        "cpu_s": round(time.process_time() - own_s + tree_seconds(java) - java_s, 1),
        "python_s": round(time.process_time() - own_s, 1),
        "java_s": round(tree_seconds(java) - java_s, 1),
        "jobs": len(jobs),
        "stages": len(ran),
        "tasks": sum(stage.numCompletedTasks for stage in ran),
        **calls,
        "gc": {name: round(value - collected[name], 1) for name, value in _collected(spark).items()},
        "threads": {name: round(value, 1) for name, value in kinds.most_common() if value >= 0.05},
    }


@contextmanager
def _calls() -> Iterator[Counter[str]]:
    """Count what is called meanwhile."""
    calls: Counter[str] = Counter()
    places = (
        (DataFrame, "localCheckpoint", "kept"),
        (DataFrame, "checkpoint", "kept"),
        (DataFrame, "collect", "collected"),
        (DataFrameWriter, "parquet", "written"),
        (ClientServerConnection, "send_command", "words_to_java"),
        (GatewayConnection, "send_command", "words_to_java"),
    )
    kept = [(owner, name, getattr(owner, name)) for owner, name, _ in places]

    def counting(owner: type, name: str, what: str) -> None:
        asked = getattr(owner, name)

        def count(*args: object, **named: object) -> object:
            calls[what] += 1
            return asked(*args, **named)

        setattr(owner, name, count)

    for place in places:
        counting(*place)
    try:
        yield calls
    finally:
        for owner, name, asked in kept:
            setattr(owner, name, asked)


def tree_seconds(pid: int) -> float:
    """CPU seconds, user and kernel, of a process and all that it started, whether ended or not."""
    parents: dict[int, list[tuple[int, float]]] = {}
    total = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text("ascii", errors="replace")
        except OSError:
            continue
        fields = text.rpartition(")")[2].split()
        spent = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")  # own, and of children that ended
        parents.setdefault(int(fields[1]), []).append((int(stat.parent.name), spent))
        if int(stat.parent.name) == pid:
            total = spent
    left = [pid]
    while left:
        for child, spent in parents.get(left.pop(), []):
            total += spent
            left.append(child)
    return total


def _collected(spark: SparkSession) -> dict[str, float]:
    """Count Java's garbage collections and their seconds of wall time, by collector."""
    beans = spark._jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()  # type: ignore[union-attr]
    told = {}
    for bean in beans:
        told[f"{bean.getName()} times"] = float(bean.getCollectionCount())
        told[f"{bean.getName()} s"] = bean.getCollectionTime() / 1e3
    return told


def _threads(pid: int) -> Counter[str]:
    """CPU seconds of a process's threads by what they do; threads that ended are not seen."""
    spent: Counter[str] = Counter()
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            text = (task / "stat").read_text("ascii", errors="replace")
        except OSError:
            continue
        name = text.partition("(")[2].rpartition(")")[0]
        fields = text.rpartition(")")[2].split()
        kind = next((kind for begin, kind in KINDS.items() if name.startswith(begin)), name)
        spent[kind] += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # type: ignore[assignment]
    return spent


if __name__ == "__main__":
    sys.exit(main())
