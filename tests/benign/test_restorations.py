"""Lives under exactly-once in which everything on disk was committed, and that look like a loss."""

from __future__ import annotations

import pytest

from agent.contract.events import Severity
from tests.support.scenario import TIMESTAMPED, Scenario
from tests.support.scenario_script import play

EOS = "exactly_once_v2"
BASE = 1_000_000
"""A store with a past: the first checkpoint of a task that is opened is compared with nothing, so any will do."""
KEPT = ["3.8.1", "3.9.2", "4.1.2", "4.2.1"]
"""Releases that keep the checkpoint while they process."""
RESTORED_FOR_4_S = ", ".join(["puts 1250, flushes, 1 s"] * 4)
"""Records of the changelog reach the disk over some time, without a checkpoint."""


def criticals(run: Scenario) -> list[str]:
    """Everything that was ever critical."""
    said = [x.body for x in run.world.records if x.kind.value == "finding"]
    return [str(x["summary"]) for x in said if x["severity"] == Severity.CRITICAL.value]


def confirmed(run: Scenario) -> list[str]:
    """Everything that was ever critical and confirmed."""
    said = [x.body for x in run.world.records if x.kind.value == "finding"]
    return [str(x["summary"]) for x in said if (x["severity"], x["confidence"]) == ("critical", "confirmed")]


def committed_crash(release: str, then: str) -> Scenario:
    """A task that had restored up to `BASE` flushes committed records, is killed, and opened again."""
    run = Scenario(release, EOS, stores={"s": TIMESTAMPED}, told={"commit_interval_ms": 100})
    play(run, f"start, opens, puts 2000, checkpoints {BASE}, 60 s, puts 5000, flushes, 5 s, crash, 5 s")
    return play(run, f"start, opens, {then}")


@pytest.mark.parametrize("release", KEPT)
def test_first_commit_of_a_restoration(release):
    """The first commit after an opening writes a checkpoint however little was restored: it is not the end."""
    run = committed_crash(
        release,
        f"0.1 s, checkpoints {BASE + 500}, {RESTORED_FOR_4_S}, checkpoints {BASE + 5100}, 30 s,"
        f"puts 100, stops {BASE + 5300}, 120 s",
    )
    assert criticals(run) == []


@pytest.mark.parametrize("release", KEPT)
def test_pause_in_a_restoration(release):
    """A paused restoration leaves a checkpoint that stands; resumed, it flushes, and ends with another."""
    run = committed_crash(release, f"checkpoints {BASE + 500}, 120 s, {RESTORED_FOR_4_S}, 2 s")
    assert confirmed(run) == []
    play(run, f"checkpoints {BASE + 5100}, 30 s, puts 100, stops {BASE + 5300}, 120 s")
    assert confirmed(run) == []


@pytest.mark.parametrize("release", KEPT)
def test_pause_and_a_close_half_way(release):
    """A restoration that was paused and resumed is closed in order before its end."""
    run = committed_crash(release, f"checkpoints {BASE + 500}, 60 s, puts 2000, stops {BASE + 2500}, 120 s")
    assert run.findings("skipped-eos-wipe")
    assert confirmed(run) == []


@pytest.mark.parametrize("release", KEPT)
@pytest.mark.parametrize("standbys", [0, 1])
def test_killed_while_restoring(release, standbys):
    """What a restoration flushed behind its newest checkpoint is committed: nobody is called before the next start."""
    run = play(
        Scenario(release, EOS, standbys, stores={"s": TIMESTAMPED}),
        "start, opens, puts 12000, checkpoints 12000, 0.5 s, puts 12000, checkpoints 24000, 0.5 s,"
        "puts 8000, flushes, 0.5 s, crash, 300 s",
    )
    assert criticals(run) == []


@pytest.mark.parametrize("release", KEPT)
@pytest.mark.parametrize("standbys", [0, 1, None])
def test_copy_that_was_started_again(release, standbys):
    """A standby writes a checkpoint at its first commit; without any it may be a copy that warms up: suspected."""
    run = play(
        Scenario(release, EOS, standbys, stores={"s": TIMESTAMPED}),
        f"start, opens, puts 12000, checkpoints {BASE}, 60 s, stops {BASE + 10},"
        f"start, opens, 0.1 s, checkpoints {BASE + 100}, 60 s, puts 5000, flushes, 60 s, crash, 300 s",
    )
    assert (criticals(run) if standbys != 0 else confirmed(run)) == []


def test_active_task_that_becomes_a_standby():
    """Its checkpoint is written and deleted as it changes, and its store stays open: what follows is committed."""
    run = play(
        Scenario("4.1.2", EOS, 1, stores={"s": TIMESTAMPED}),
        "start, opens, restores 1999 puts=2000, 30 s, puts 500, checkpoints 2600, 0.1 s",
    )
    run.world.play("unlink", "app/0_0/.checkpoint")
    play(run, "60 s, puts 5000, flushes, 60 s, crash, 300 s")
    assert criticals(run) == []


def test_copy_that_catches_up_between_two_commits():
    """More than 10,000 records without a checkpoint are nothing, as long as no commit was due."""
    run = play(
        Scenario("4.1.2", EOS, 1, stores={"s": TIMESTAMPED}, told={"commit_interval_ms": 30_000}),
        "start, opens, puts 12000, checkpoints 12000, 2 s, puts 50000, flushes, 2 s, crash, 300 s",
    )
    assert criticals(run) == []
