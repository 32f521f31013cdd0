"""Tries mutants in its own copy of the tree: one order a line on stdin, one answer a line on stdout.

A child is forked for each stage, so what is imported here is imported once; nothing of the project is, since every
child must see the mutant. Children get their own process group, a deadline and a limit on memory.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import runpy
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

EVALUATION = "tests/evaluate/run.py"
MEMORY_BYTES = 4 << 30
PLUGINS = ("pytest_timeout", "_hypothesis_pytestplugin")


FLAGS = (
    "-x", "-q", "-p", "no:cacheprovider",
    "-m", "not heavy and not e2e and not spark",
    "-W", "ignore::pytest.PytestAssertRewriteWarning",  # the plugins are imported before pytest starts
)  # fmt: skip


class Watcher:
    """Notes the first test that fails; makes hypothesis look at the same examples every time."""

    def __init__(self) -> None:
        self.failed = ""

    def pytest_configure(self, config: Any) -> None:
        """Replace the profile that tests/conftest.py chose."""
        settings = importlib.import_module("hypothesis").settings
        settings.register_profile("mutate", deadline=None, max_examples=50, derandomize=True, database=None)
        settings.load_profile("mutate")

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note a failed test."""
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        """Note a test file that cannot be imported."""
        if report.failed and not self.failed:
            self.failed = f"{report.nodeid} (import)"


def run_tests(targets: list[str]) -> str:
    """Run tests until one fails and give its name; empty if none does."""
    pytest = importlib.import_module("pytest")
    watcher = Watcher()
    plugins = [flag for name in PLUGINS for flag in ("-p", name)]
    code = int(pytest.main([*FLAGS, *plugins, *targets], plugins=[watcher]))
    return "" if code == 0 else watcher.failed or f"pytest ended with {code}"


def run_evaluation() -> str:
    """Replay the recorded scenarios until one is judged wrongly and give its name; empty if none is."""
    part = runpy.run_path(EVALUATION)
    for folder in sorted(x.parent for x in part["TRACES"].glob("*/scenario.json")):
        outcome = part["evaluate"](folder)
        if outcome.missed or outcome.false_alarms or outcome.faults:
            return f"evaluate: {outcome.scenario}"
    return ""


def run_stage(targets: list[str], limit_s: float) -> tuple[str, float]:
    """Run one stage in a child.

    Returns:
        What noticed the mutant (empty: nothing), and seconds.
    """
    begun = time.monotonic()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _be_child(targets, writer)
    os.close(writer)
    by = "died"
    if not select.select([reader], [], [], limit_s)[0]:
        by = "timeout"
        os.killpg(pid, signal.SIGKILL)
    elif said := os.read(reader, 4096).decode():
        by = said.strip()
    os.close(reader)
    os.waitpid(pid, 0)
    return by, time.monotonic() - begun


def _be_child(targets: list[str], writer: int) -> None:
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    with open(os.devnull, "r+b") as nowhere:
        for descriptor in (0, 1, 2):
            os.dup2(nowhere.fileno(), descriptor)
    try:
        by = run_evaluation() if targets == [EVALUATION] else run_tests(targets)
        stranger = Path(sys.modules["agent"].__file__ or "").resolve()
        if Path.cwd().resolve() not in stranger.parents:
            by = "error: another copy of the code was tested"
    except BaseException as error:  # noqa: BLE001 - the fence: whatever a mutant does, the answer must go out
        by = f"raised {type(error).__name__}"
    os.write(writer, f"{by}\n".encode()[:4096])
    os._exit(0)


@contextmanager
def broken(path: Path, code: str | None) -> Iterator[None]:
    """Put a mutant in a module's place for a while; without code, leave everything as it is."""
    if code is None:
        yield
        return
    source, before = path.read_bytes(), path.stat()
    cached = Path(importlib.util.cache_from_source(str(path)))
    bytecode = (cached.read_bytes(), cached.stat()) if cached.exists() else None
    cached.unlink(missing_ok=True)  # same size and second: Python would take the old bytecode
    try:
        path.write_text(code, "utf-8")
        yield
    finally:
        path.write_bytes(source)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        if bytecode is not None:
            cached.write_bytes(bytecode[0])


def carry_out(order: dict[str, Any]) -> dict[str, Any]:
    """Try one mutant, stage by stage, until something notices it.

    Args:
        order: `path`, `code` (None: the module as it is), `stages` as [[targets, seconds], ...].

    Returns:
        `by` (empty: it survived), `stage` (number), `seconds` of each stage.
    """
    took = []
    # Bytecode of the tree as it is may be kept; of a mutant never.
    sys.dont_write_bytecode = order["code"] is not None
    with broken(Path(order["path"]), order["code"]):
        for number, (targets, limit_s) in enumerate(order["stages"]):
            by, seconds = run_stage(targets, limit_s)
            took.append(seconds)
            if by:
                return {"by": by, "stage": number, "seconds": took}
    return {"by": "", "stage": len(took), "seconds": took}


def main() -> int:
    """Serve orders until stdin closes."""
    sys.path.insert(0, os.getcwd())
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ.pop("CI", None)  # there, a skip is a failure and hypothesis looks longer
    for name in ("pytest", "hypothesis", "hypothesis.strategies", "concurrent.futures.process", *PLUGINS):
        importlib.import_module(name)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(carry_out(json.loads(line))) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
