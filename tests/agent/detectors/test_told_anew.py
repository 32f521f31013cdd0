"""An agent that comes back and is told something else: what it remembers happened under the settings before."""

from __future__ import annotations

import pytest

from agent.contract.events import Status
from agent.detectors import DETECTORS
from tests.agent.home.restarting import away
from tests.support.scenario import TIMESTAMPED, Scenario
from tests.support.scenario_script import play

EARLIER = pytest.mark.twin_of("premature-cleanup", "another delay, or guarantee, was told until later")
OLDER = pytest.mark.twin_of(
    "offset-beyond-durable", "another release was told then: up to 2.5 offsets move like that"
)


@pytest.mark.parametrize(("release", "end"), [("4.1.2", 7999), ("4.3.1", 1999)])
@pytest.mark.parametrize("ran", ["at_least_once", "exactly_once_v2"])
def test_what_ran_at_least_once_is_not_judged_by_a_later_guarantee(release: str, end: int, ran: str) -> None:
    """A crash, and the start that kept its files; then application and agent are switched to exactly-once."""
    run = Scenario(release, ran, stores={"s": TIMESTAMPED}, detectors=())
    play(run, f"start, opens, restores 1999 puts=2000, {'commits 1999' * run.habits.offsets_in_store}")
    play(run, "flushes, 5 s, puts 6000, flushes, 1 s, crash, 5 s")
    play(
        run, f"start, opens, restores {end} puts=2000, 30 s, puts 500, flushes, 30 s, stops {end + 500}, 30 s"
    )
    with away(run):
        run.guarantee = run.world.settings["processing_guarantee"] = "exactly_once_v2"
        run.world.detectors = DETECTORS
    play(run, "start, opens, 30 s")
    said = {x.detector for x in run.loud()} - {"auditor-blind"}
    assert bool(said) is (ran == "exactly_once_v2")


@pytest.mark.parametrize(
    ("ran", "later"),
    [
        pytest.param(
            {"processing_guarantee": "exactly_once_v2"},
            {"processing_guarantee": "at_least_once"},
            marks=EARLIER,
        ),
        pytest.param({"state_cleanup_delay_ms": "5000"}, {"state_cleanup_delay_ms": "600000"}, marks=EARLIER),
        ({}, {"kafka_streams_version": "4.3.1"}),
    ],
)
def test_a_deletion_is_judged_by_the_settings_of_its_time(ran: dict[str, str], later: dict[str, str]) -> None:
    """A directory goes seconds after its release; a guarantee or a delay that is told later makes it no early one."""
    told = {"state_cleanup_delay_ms": "600000", **ran}
    run = Scenario("4.3.0", told.get("processing_guarantee", "at_least_once"), told=told, detectors=())
    play(
        run, "start, opens 0_0, 0.5 s, puts 0_0 100, flushes 0_0, opens 0_1, 0.5 s, puts 0_1 100, flushes 0_1"
    )
    play(run, "40 s, closes 0_1 99, 6 s, deletes 0_1, 2 s")
    with away(run):
        run.world.settings |= later
        run.world.detectors = DETECTORS
    run.wait(60)
    assert bool(run.findings("premature-cleanup")) is ("kafka_streams_version" in later)


@pytest.mark.parametrize("ran", [pytest.param("2.5.1", marks=OLDER), "2.8.2"])
def test_an_offset_that_moved_is_judged_by_the_release_of_its_time(ran: str) -> None:
    """Up to 2.5 an offset moves over aborted records, too: what it did then is nothing after an upgrade either."""
    run = Scenario(ran, "exactly_once", detectors=())
    play(run, "start, opens, 5 s, puts 900, flushes, stops 903, 5 s, start, opens, 5 s, stops 3505, 30 s")
    with away(run):
        run.world.settings["kafka_streams_version"] = "2.8.2"
        run.world.detectors = DETECTORS
    run.wait(60)
    assert bool(run.findings("offset-beyond-durable")) is (ran == "2.8.2")


def test_tombstones_lived_as_long_as_was_told_then() -> None:
    """A store that was idle for two hours: a shorter time that is told later brings no deleted key back."""
    run = Scenario("3.9.2", told={"delete_retention_ms": "86400000"})
    play(run, "start, opens, restores 999, stops 999, 7200 s, start, opens, restores 999 puts=0, 40 s")
    with away(run):
        run.world.settings["delete_retention_ms"] = "3600000"
    run.wait(100)
    assert run.findings("zombie-state") == []


def test_a_copy_that_was_a_standby_is_judged_as_one() -> None:
    """What it flushed beyond its checkpoint before it was killed is committed; then standbys are switched off."""
    run = Scenario("3.6.2", "exactly_once_v2", 1, detectors=())
    play(run, "start, opens, puts 11000, checkpoints 10999, 30 s, puts 100, flushes, 1 s, crash, 5 s")
    play(run, "start, opens, restores 11099 puts=100, 5 s, puts 500, flushes, 30 s, stops 11599, 5 s")
    with away(run):
        run.world.settings["num_standby_replicas"] = "0"
        run.world.detectors = DETECTORS
    run.wait(60)
    assert [x.severity.value for x in run.findings("skipped-eos-wipe")] == ["info"]


def test_what_was_told_wrong_is_corrected_where_the_process_runs_on() -> None:
    """It was a standby all the time: no setting of a process changes while it runs."""
    run = Scenario("4.1.2", "exactly_once_v2", 0)
    play(run, "start, opens, puts 11000, checkpoints 10999, 30 s, puts 100, flushes, 60 s")
    assert [x.severity.value for x in run.findings("stale-eos-checkpoint")] == ["warning"]
    with away(run):
        run.world.settings["num_standby_replicas"] = "1"
    run.wait(60)
    is_open = [x for x in run.findings("stale-eos-checkpoint") if x.status is Status.OPEN]
    assert [x.severity.value for x in is_open] == ["info"]
