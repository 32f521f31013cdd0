"""What every test may rely on: waiting with a deadline, hypothesis profiles, and no silent skip in CI."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.delivery.rollups import Rollup
    from tests.delivery.servers import Broker

IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}
POLL_S = 0.01
PATIENCE_S = 120.0
"""How long a test waits for what must happen sooner or later: a machine that is busy is no failure."""
T = TypeVar("T")

# Deadlines measure the machine, not the code. Tests look at the same examples each time, CI at more of them; `make
# prove ARGS=search` looks for others.
settings.register_profile("local", deadline=None, max_examples=20, derandomize=True, database=None)
settings.register_profile("ci", deadline=None, max_examples=100, derandomize=True, database=None)
settings.register_profile("search", deadline=None, max_examples=500)
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


@pytest.fixture(scope="session")
def rollup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rollup]:
    """Start one Spark session for all commands."""
    from tests.delivery import rollups

    if not rollups.JARS.is_dir():
        pytest.skip("Spark's jars are fetched by tools/setup_delivery.sh: make test-services")
    with rollups.rollup(tmp_path_factory.mktemp("rollup") / "stderr") as running:
        yield running


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Start one Kafka broker for all tests of a process."""
    from tests.delivery import servers

    pytest.importorskip("confluent_kafka", reason="run: make test-services")
    if not servers.JARS.is_dir():
        pytest.skip("Kafka's jars are fetched by tools/setup_delivery.sh: make test-services")
    with servers.kafka(tmp_path_factory.mktemp("kafka")) as running:
        yield running


TABLES = "delta"
"""Fixture of tests that write bronze. Its jars are not there where `make test` was all that was ever run."""

NAMED = {"slow": "mark.slow", "delivery": "mark.delivery", "packages": "mark.packages", "tables": TABLES}
"""Marker -> what a file of tests with it has in its text, so that it is known without an import."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `make test-services` import one test file in seven."""
    parser.addoption("--naming", default="", help="only files that name one of these markers (MARKER,...)")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of tests that name none of the markers asked for."""
    asked = [NAMED[name] for name in config.getoption("naming").split(",") if name]
    if not asked or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text("utf-8")
    return None if any(word in text for word in asked) else True


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what writes bronze, so that each target runs the same tests wherever it is started."""
    if TABLES in getattr(item, "fixturenames", ()):
        item.add_marker("tables")
    for name in NAMED.keys() & {mark.name for mark in item.iter_markers()}:
        assert NAMED[name] in item.path.read_text("utf-8"), f"{item.path} must name {NAMED[name]}"


def pytest_collection_finish() -> None:
    """Leave what was collected out of every later search for garbage: it stays until the end, and is large.

    And search less often: what tests make is many small objects without cycles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


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
    if IN_CI and exitstatus == pytest.ExitCode.OK and skipped_reports(session.config):
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
