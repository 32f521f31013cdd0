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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import pyspark  # noqa: E402 - path first

from deploy.demo.agents import free_port  # noqa: E402
from spark_rollup.spark import needs  # noqa: E402
from tests.delivery.servers import running  # noqa: E402
from tests.support.recorded_fleet import differing, replayed  # noqa: E402

SCENARIOS = ("kafka-8187-stage2-2.0.1", "torn-clean-3.9.2", "kafka-20685-4.1.2")
SPARK = Path(pyspark.__file__).parent
WORKERS = 2


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


def run(command: Sequence[str], work: Path) -> None:
    """Run a command outside the source tree."""
    surroundings = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, cwd=work, env=surroundings, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        raise RuntimeError(
            f"{command} ended with code {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )


def compared(ways: Mapping[str, Callable[..., None]], events: Path, base: Path) -> bool:
    """Take in and audit in two ways below a directory; tell the times, and whether every table is the same."""
    for name, do in ways.items():
        began_s = time.monotonic()
        bronze, out = base / f"{name}-bronze", base / name
        do("ingest", "--input", str(events), "--bronze", str(bronze))
        do("audit", "--input", str(bronze), "--output", str(out))
        sys.stdout.write(f"{name}: {time.monotonic() - began_s:.0f} s\n")
    files = [(base / name / "findings.jsonl").read_bytes() for name in ways]
    wrong = differing(*(base / name for name in ways))
    sys.stdout.write(
        f"{len(files[0].splitlines())} findings; tables that differ: {', '.join(wrong) or 'none'}\n"
    )
    return files[0] == files[1] and bool(files[0]) and not wrong


def main() -> int:
    """Run both, compare, tell the times."""
    scenarios = sys.argv[1:] or SCENARIOS
    with tempfile.TemporaryDirectory(prefix="statewarden-cluster-") as folder:
        work = Path(folder)
        events = work / "events"
        replayed([ROOT / "tests" / "data" / "traces" / name for name in scenarios], events)
        with cluster(work) as master:
            begins = {"local": [sys.executable, "-m", "spark_rollup"], "cluster": submitted(master, work)}
            ways = {name: partial(_run_with, begin, work) for name, begin in begins.items()}
            holds = compared(ways, events, work)
            used = [len(list((work / f"worker-{number}").glob("app-*"))) for number in range(WORKERS)]
    holds = holds and all(count == 2 for count in used)
    sys.stdout.write(f"applications per worker: {used}; {'holds' if holds else 'FAILS'}\n")
    return int(not holds)


def _run_with(begin: Sequence[str], work: Path, *words: str) -> None:
    run([*begin, *words], work)


if __name__ == "__main__":
    sys.exit(main())
