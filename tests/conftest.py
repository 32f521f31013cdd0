"""What every test may rely on: waiting with a deadline, hypothesis profiles, and no silent skip in CI."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}
POLL_S = 0.01
PATIENCE_S = 120.0
"""How long a test waits for what must happen sooner or later: a machine that is busy is no failure."""
T = TypeVar("T")

# Deadlines measure the machine, not the code. CI looks at more examples and always at the same ones.
settings.register_profile("local", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=100, derandomize=True, database=None)
settings.load_profile("ci" if IN_CI else "local")

# A shell that runs tests in the background has them, and all that they start, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def wait_until(predicate: Callable[[], T], timeout_s: float = PATIENCE_S) -> T:
    """Poll until the predicate is true and return its value; fail when the time is up."""
    give_up_at = time.monotonic() + timeout_s
    while not (value := predicate()):
        if time.monotonic() > give_up_at:
            pytest.fail(f"still not true after {timeout_s} s: {predicate}")
        time.sleep(POLL_S)
    return value


@pytest.fixture
def eventually() -> Callable[..., object]:
    """Give `eventually(predicate)`, the only way to wait in a test."""
    return wait_until


@pytest.fixture(scope="session")
def repository() -> Path:
    """Give the root of the checkout."""
    return Path(__file__).resolve().parent.parent


SPARK, AGENT = "spark", "agent"

ANYWHERE = (
    "tests/agent/detectors/",
    "tests/agent/engine/",
    "tests/agent/findings/",
    "tests/agent/inventory/",
    "tests/agent/judging/",
    "tests/agent/layout/",
    "tests/agent/observe/rocksdb/",
    "tests/agent/quantities/",
    "tests/architecture/",
    "tests/benign/",
    "tests/docs/",
    "tests/contract/",
    "tests/evaluate/",
    "tests/lab/",
    "tests/spark_rollup/report/page/",
)
"""Folders whose tests start no live agent and no Spark, and do not look at their own process."""

BESIDE = {
    "tests/delivery/test_rollup_sources.py": "commands",
    "tests/delivery/test_rollup_bronze.py": "commands",
    "tests/delivery/test_digests.py": "commands",
    "tests/delivery/test_workload_identity.py": "identity",
    "tests/delivery/test_rollup_streams.py": "streams",
}
"""Files beside real services whose tests start no live agent: what shares a Spark session has one name."""

FIRST = (SPARK, AGENT, *dict.fromkeys(BESIDE.values()))
"""The longest shares, longest first: the short ones fill up what is left."""

TABLES = "delta"
"""Fixture of tests that write bronze. Its jars are not there where `make test` was all that was ever run."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what writes bronze, so that each target runs the same tests wherever it is started."""
    if TABLES in getattr(item, "fixturenames", ()):
        item.add_marker("tables")


class SharesScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """What needs Spark for one worker, what starts live agents for another, then the rest.

    A second session would plan everything again in a Java that knows nothing yet. Live agents are never beside each
    other: they would put their load on each other's time. Marks of a group (`--dist loadgroup`) would say the same,
    but xdist 3.8 does not see them with pytest 9.2.
    """

    def _split_scope(self, nodeid: str) -> str:
        if (folder := next((folder for folder in ANYWHERE if nodeid.startswith(folder)), None)) is not None:
            return folder
        if nodeid.startswith("tests/spark_rollup/"):
            return SPARK
        return BESIDE.get(nodeid.partition("::")[0], AGENT)

    def _assign_work_unit(self, node: WorkerController) -> None:
        for long in reversed(FIRST):
            if long in self.workqueue:
                self.workqueue.move_to_end(long, last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)  # mutants are tried without xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Make these shares where scopes are asked for (`--dist loadscope`)."""
    return SharesScheduling(config, log) if config.getoption("dist") == "loadscope" else None


def pytest_collection_finish() -> None:
    """Leave what was collected out of every later search for garbage: it stays until the end, and is large."""
    gc.collect()
    gc.freeze()


def skip_lines(reports: Sequence[pytest.TestReport | pytest.CollectReport]) -> list[str]:
    """List skipped tests with their reasons, one line each."""
    lines = []
    for report in reports:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        lines.append(f"{report.nodeid}: {reason}")
    return sorted(lines)


def skipped_reports(config: pytest.Config) -> list[pytest.TestReport | pytest.CollectReport]:
    """Collect the reports of everything skipped so far, modules skipped as a whole included."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return list(reporter.stats.get("skipped", [])) if reporter is not None else []


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail the run in CI if anything was skipped: there, a skip is a proof that nobody made."""
    is_worker = hasattr(session.config, "workerinput")
    if IN_CI and not is_worker and exitstatus == pytest.ExitCode.OK and skipped_reports(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(wrapper=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> Generator[None, None, None]:
    """Name what CI does not accept."""
    yield
    skipped = skipped_reports(config)
    if IN_CI and skipped:
        terminalreporter.section("skipped, which CI does not accept", red=True)
        for line in skip_lines(skipped):
            terminalreporter.line(line)
