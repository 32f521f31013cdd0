"""The rollup on a standalone Spark cluster: a master and two workers of the installed pyspark, by `spark-submit`.

    python tests/prove/cluster.py [SCENARIO ...]     default: three recorded incidents

`ingest` and `audit` run there unchanged and on `local[*]`; every table of the audit must be the same. The package is
handed over with `--py-files` as it would be to Kubernetes, and the driver runs outside the source tree.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import pyspark  # noqa: E402 - path first

from deploy.demo.agents import free_port  # noqa: E402
from spark_rollup.spark import needs  # noqa: E402
from tests.delivery.servers import running  # noqa: E402
from tests.support.recorded_fleet import replayed  # noqa: E402

SCENARIOS = ("kafka-8187-stage2-2.0.1", "torn-clean-3.9.2", "kafka-20685-4.1.2")
SPARK = Path(pyspark.__file__).parent
WORKERS = 2
TABLES = ("findings", "timelines", "coverage", "pods", "churn", "restarts", "quarantine")


@contextmanager
def cluster(work: Path) -> Iterator[str]:
    """Run a master and its workers; gives the master's address."""
    port, page = free_port(), free_port()
    surroundings = {"SPARK_HOME": str(SPARK), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    start = [str(SPARK / "bin" / "spark-class")]
    master = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1"]
    with ExitStack() as stack:
        ports = ["--port", str(port), "--webui-port", str(page)]
        stack.enter_context(running([*start, *master, *ports], work / "master.log", port, **surroundings))
        for number in range(WORKERS):
            mine = free_port()
            worker = [
                "org.apache.spark.deploy.worker.Worker",
                "--host",
                "127.0.0.1",
                "--cores",
                "1",
                "--memory",
                "1g",
            ]
            places = ["--webui-port", str(mine), "--work-dir", str(work / f"worker-{number}")]
            log = work / f"worker-{number}.log"
            address = f"spark://127.0.0.1:{port}"
            stack.enter_context(running([*start, *worker, *places, address], log, mine, **surroundings))
        yield f"spark://127.0.0.1:{port}"


def packed(work: Path) -> Path:
    """Pack both packages as `--py-files` takes them."""
    archive = work / "statewarden.zip"
    with zipfile.ZipFile(archive, "w") as out:
        for package in ("agent", "spark_rollup"):
            for path in sorted((ROOT / package).rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    out.write(path, path.relative_to(ROOT))
    return archive


def submitted(master: str, work: Path) -> list[str]:
    """Give the beginning of a command line that runs the rollup on the cluster."""
    main = work / "rollup.py"
    proof = "assert '.zip' in cli.__file__, cli.__file__"  # not what is installed beside Spark
    main.write_text(f"import sys\n\nfrom spark_rollup import cli\n\n{proof}\nsys.exit(cli.main())\n")
    submit = [str(SPARK / "bin" / "spark-submit"), "--master", master, "--executor-memory", "512m"]
    submit += ["--jars", ",".join(map(str, needs.bring([needs.DELTA], None, {})))]
    return [*submit, "--conf", "spark.driver.host=127.0.0.1", "--py-files", str(packed(work)), str(main)]


def run(command: Sequence[str], work: Path) -> float:
    """Run a command outside the source tree; returns its seconds."""
    began_s = time.monotonic()
    surroundings = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, cwd=work, env=surroundings, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        raise RuntimeError(
            f"{command} ended with code {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )
    return time.monotonic() - began_s


def differing(left: Path, right: Path) -> list[str]:
    """Name the tables that are not the same, row by row."""
    import duckdb

    with duckdb.connect() as database:

        def rows(folder: Path, table: str) -> list[str]:
            found = database.execute(
                f"select * from read_parquet('{folder / table}/**/*.parquet')"
            ).fetchall()
            return sorted(map(str, found))

        return [table for table in TABLES if rows(left, table) != rows(right, table)]


def main() -> int:
    """Run both, compare, tell the times."""
    scenarios = sys.argv[1:] or SCENARIOS
    with tempfile.TemporaryDirectory(prefix="statewarden-cluster-") as folder:
        work = Path(folder)
        events = work / "events"
        replayed([ROOT / "tests" / "data" / "traces" / name for name in scenarios], events)
        seconds = {}
        with cluster(work) as master:
            ways = {"local": [sys.executable, "-m", "spark_rollup"], "cluster": submitted(master, work)}
            for name, begin in ways.items():
                bronze, out = work / f"{name}-bronze", work / name
                taken_s = run([*begin, "ingest", "--input", str(events), "--bronze", str(bronze)], work)
                audited_s = run([*begin, "audit", "--input", str(bronze), "--output", str(out)], work)
                seconds[name] = (taken_s, audited_s)
            used = [len(list((work / f"worker-{number}").glob("app-*"))) for number in range(WORKERS)]
        files = [(work / name / "findings.jsonl").read_bytes() for name in ways]
        wrong = differing(*(work / name for name in ways))
    for name, (taken_s, audited_s) in seconds.items():
        sys.stdout.write(f"{name}: ingest {taken_s:.0f} s, audit {audited_s:.0f} s\n")
    holds = files[0] == files[1] and bool(files[0]) and not wrong and all(count == 2 for count in used)
    sys.stdout.write(
        f"{len(files[0].splitlines())} findings; tables that differ: {', '.join(wrong) or 'none'}; "
        f"applications per worker: {used}; {'holds' if holds else 'FAILS'}\n"
    )
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
