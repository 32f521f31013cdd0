"""Run tests in processes over lists of folders, and sum them up: `make test`, `make test-services`.

One process has what shares a Spark session, one what only computes, and the first has the rest, so live agents, which
mostly wait, are seldom beside each other. The first one's output is shown as it comes, those of the others after it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
NO_TESTS = 5
SLOWEST = ("--durations=10", "--durations-min=5")
"""What takes longest is listed at the end of each share."""
COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?)\b")
SUMMARY = re.compile(r"^(?:\x1b\[[\d;]*m|=| )*(?:\d+ [a-z]+|no tests ran).* in [\d.]+s", re.MULTILINE)
ORDER = ("failed", "passed", "skipped", "deselected", "xfailed", "xpassed", "error", "warning")


@dataclass(frozen=True, slots=True)
class Suite:
    """What a target runs: an expression of markers, and folders or files of each process beside the first."""

    marks: str
    others: tuple[list[str], ...]
    options: tuple[str, ...] = ()


SUITES: Mapping[str, Suite] = {
    "test": Suite(
        "not heavy and not slow and not tables and not delivery and not packages and not charts and not cluster"
        " and not supply",
        (
            ["tests/spark_rollup"],
            ["tests/architecture", "tests/packaging", "tests/benign", "tests/proof", "tests/agent/detectors",
             "tests/agent/engine", "tests/agent/observe/rocksdb"],
        ),
    ),
    "services": Suite(
        "(delivery or packages or tables or slow) and not heavy",
        (
            ["tests/spark_rollup", "tests/delivery/test_digests.py", "tests/delivery/test_rollup_bronze.py",
             "tests/delivery/test_rollup_sources.py", "tests/delivery/test_rollup_streams.py",
             "tests/e2e/test_levels.py"],
        ),
        ("--naming=delivery,packages,tables,slow",),
    ),
}  # fmt: skip


def shares(suite: Suite, arguments: Sequence[str]) -> list[list[str]]:
    """Give the arguments of each process; tests that are named are run in one."""
    named = [x for x in arguments if x.startswith("tests") and (ROOT / x.partition("::")[0]).exists()]
    common = ["-m", suite.marks, *suite.options, *arguments]
    if named:
        return [common]
    left_out = [f"--ignore={path}" for paths in suite.others for path in paths]
    return [
        ["-o", f"cache_dir=.pytest_cache/{number}", *SLOWEST, *common, *chosen]
        for number, chosen in enumerate(((*left_out, "tests"), *suite.others))
    ]


def start(arguments: Sequence[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start pytest; in a session of its own, so that Ctrl-C reaches it once."""
    color = ["--color=yes"] if sys.stdout.isatty() else []
    command = [sys.executable, "-m", "pytest", *color, *arguments]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
    )


def show(process: subprocess.Popen[bytes], output: Path) -> str:
    """Show what a process writes until it ends; returns all of it."""
    written = b""
    with output.open("rb") as file:
        while True:
            over = process.poll() is not None
            more = file.read()
            written += more
            sys.stdout.buffer.write(more)
            sys.stdout.flush()
            if over and not more:
                return written.decode(errors="replace")
            time.sleep(0.1)


def total(outputs: Sequence[str]) -> str:
    """Add up the last lines of all processes."""
    counts: Counter[str] = Counter()
    for output in outputs:
        lines = SUMMARY.findall(output)
        for count, what in COUNT.findall(lines[-1] if lines else ""):
            counts[what.removesuffix("s")] += int(count)
    return ", ".join(f"{counts[what]} {what}" for what in ORDER if counts[what]) or "no tests ran"


def status(codes: Sequence[int]) -> int:
    """Give the exit code of all: no tests in one share only is no failure."""
    bad = [code for code in codes if code not in (0, NO_TESTS)]
    if bad:
        return bad[0] if bad[0] > 0 else 128 - bad[0]
    return 0 if 0 in codes else NO_TESTS


def run(suite: Suite, arguments: Sequence[str]) -> int:
    """Run all shares and print one last line."""
    began = time.monotonic()
    processes: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / str(number) for number, _ in enumerate(shares(suite, arguments))]
        try:
            for file, share in zip(files, shares(suite, arguments), strict=True):
                with file.open("wb") as output:
                    processes.append(start(share, output))
            outputs = [show(process, file) for process, file in zip(processes, files, strict=True)]
        finally:
            stop(processes)
    codes = [process.returncode for process in processes]
    sys.stdout.write(f"{total(outputs)} in {time.monotonic() - began:.2f}s\n")
    return status(codes)


def stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Interrupt what still runs, as Ctrl-C does, and kill what does not listen."""
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
    for process in processes:
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _terminated(number: int, _: object) -> None:
    raise SystemExit(128 + number)


def main(arguments: Sequence[str]) -> int:
    """Run a suite: its name, then arguments for pytest."""
    if not arguments or arguments[0] not in SUITES:
        sys.stderr.write(f"usage: run_tests.py {{{','.join(SUITES)}}} [argument of pytest ...]\n")
        return 2
    signal.signal(signal.SIGTERM, _terminated)
    try:
        return run(SUITES[arguments[0]], arguments[1:])
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
