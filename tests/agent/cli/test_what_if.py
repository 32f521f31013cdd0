"""`preflight --if`: what a changed setting would make of the state on disk."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.inventory.disk import EntryKind, Unseen
from tests.support.scenario import Scenario

SNAPSHOTS = Path(__file__).resolve().parents[2] / "data" / "snapshots"
T = "enable_transactional_statestores=true"
EOS = ("--set", "processing_guarantee=exactly_once_v2", "--set", "num_standby_replicas=0")


@pytest.fixture
def left_open(tmp_path: Path) -> Path:
    """A store of 4.3.1 whose status says open, after a kill under exactly-once."""
    run = Scenario("4.3.1", "exactly_once_v2")
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 100)
    app.commits("0_0", 99)
    app.flushes("0_0")
    app.crash()
    for path in reversed(run.everything()):
        stat = run.world.disk.stat(path)
        assert not isinstance(stat, Unseen)
        place = tmp_path / "left" / path
        if stat.kind is EntryKind.DIRECTORY:
            place.mkdir(parents=True, exist_ok=True)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        content = run.world.disk.read_at(path, 0, stat.size_bytes)
        assert isinstance(content, bytes)
        place.write_bytes(content)
        os.utime(place, (stat.mtime_us / 1e6, stat.mtime_us / 1e6))
    return tmp_path / "left"


def test_blockers_are_failed_checks(statewarden: Callable, left_open: Path) -> None:
    """Each names its task, says what would happen, and the one step that helps."""
    said = statewarden("preflight", left_open, "--if", T, *EOS, "--json")
    (row,) = said.rows
    assert (said.code, row["check"], row["level"], row["where"]) == (1, "if", "failed", "app/0_0")
    assert "refuse it at every opening" in row["what"]
    assert row["change"].startswith("Start once with enable.transactional.statestores=false")


def test_a_store_of_an_older_release_without_a_checkpoint(statewarden: Callable, tmp_path: Path) -> None:
    """What 3.x or 4.x would wipe at its next start, transactional stores keep."""
    with tarfile.open(SNAPSHOTS / "kafka-20685-4.1.2.tar.gz") as packed:
        packed.extractall(tmp_path / "s", filter="data")
    checkpoint = next((tmp_path / "s").glob("*/0_0/.checkpoint"))
    checkpoint.unlink()
    told = ("--set", "kafka_streams_version=4.1.2")
    said = statewarden("preflight", tmp_path / "s", "--if", T, *EOS, *told, "--json")
    assert said.code == 1
    row = next(row for row in said.rows if row["where"].endswith("/0_0"))
    assert (row["level"], "does not wipe it" in row["what"]) == ("failed", True)
    assert "remove that directory only" in row["change"]


def test_without_the_guarantee_it_is_not_decided(statewarden: Callable, left_open: Path) -> None:
    """At-least-once opens such a store, exactly-once with transactional stores never does."""
    said = statewarden("preflight", left_open, "--if", T, "--json")
    assert [row["level"] for row in said.rows] == ["warning"]
    assert "If it runs exactly-once" in said.rows[0]["what"]
    assert "processing.guarantee" in said.rows[0]["change"]


def test_nothing_is_in_the_way_under_at_least_once(statewarden: Callable, left_open: Path) -> None:
    """The status is ignored."""
    told = ("--set", "processing_guarantee=at_least_once")
    said = statewarden("preflight", left_open, "--if", T, *told, "--json")
    assert (said.code, [row["level"] for row in said.rows]) == (0, ["ok"])
    assert "no all-clear, open already: 0 critical findings (" in said.rows[0]["what"]


def test_an_unknown_setting_is_wrong_use(statewarden: Callable, left_open: Path) -> None:
    """It says which are known."""
    said = statewarden("preflight", left_open, "--if", "no.such=1")
    assert said.code == 2


def test_a_change_that_adds_nothing_is_no_all_clear(statewarden: Callable, tmp_path: Path) -> None:
    """What is critical without the change is counted: an upgrade makes none of it go away."""
    with tarfile.open(SNAPSHOTS / "kafka-20685-4.1.2.tar.gz") as packed:
        packed.extractall(tmp_path / "s", filter="data")
    told = ("--set", "kafka_streams_version=4.1.2")
    said = statewarden("preflight", tmp_path / "s", "--if", "commit.interval.ms=200", *EOS, *told, "--json")
    assert "no all-clear, open already: 1 critical finding (" in said.rows[0]["what"]
