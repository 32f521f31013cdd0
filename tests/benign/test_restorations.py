"""Lives under exactly-once in which everything on disk was committed, and that look like a loss."""

from __future__ import annotations

import pytest

from agent.contract.events import Severity
from tests.support.scenario import TIMESTAMPED, App, Scenario

EOS = "exactly_once_v2"
BASE = 1_000_000
"""A store with a past: the first checkpoint of a task that is opened is compared with nothing, so any will do."""
KEPT = ["3.8.1", "3.9.2", "4.1.2", "4.2.1"]
"""Releases that keep the checkpoint while they process."""


def criticals(run: Scenario) -> list[str]:
    """Everything that was ever critical."""
    said = [x.body for x in run.world.records if x.kind.value == "finding"]
    return [str(x["summary"]) for x in said if x["severity"] == Severity.CRITICAL.value]


def confirmed(run: Scenario) -> list[str]:
    """Everything that was ever critical and confirmed."""
    said = [x.body for x in run.world.records if x.kind.value == "finding"]
    return [str(x["summary"]) for x in said if (x["severity"], x["confidence"]) == ("critical", "confirmed")]


def committed_crash(release: str) -> Scenario:
    """A task that had restored up to `BASE` flushes committed records and is killed."""
    run = Scenario(release, EOS, stores={"s": TIMESTAMPED}, told={"commit_interval_ms": 100})
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 2000)
    app.checkpoints("0_0", BASE)
    run.wait(60)
    app.puts("0_0", 5000)
    app.flushes("0_0")
    run.wait(5)
    app.crash()
    run.wait(5)
    return run


def restores_for(run: Scenario, app: App, count: int, seconds: float) -> None:
    """Records of the changelog reach the disk over some time, without a checkpoint."""
    for _ in range(4):
        app.puts("0_0", count // 4)
        app.flushes("0_0")
        run.wait(seconds / 4)


@pytest.mark.parametrize("release", KEPT)
def test_first_commit_of_a_restoration(release):
    """The first commit after an opening writes a checkpoint however little was restored: it is not the end."""
    run = committed_crash(release)
    app = run.start()
    app.opens("0_0")
    run.wait(0.1)
    app.checkpoints("0_0", BASE + 500)
    restores_for(run, app, 5000, 4)
    app.checkpoints("0_0", BASE + 5100)
    run.wait(30)
    app.puts("0_0", 100)
    app.stops({"0_0": BASE + 5300})
    run.wait(120)
    assert criticals(run) == []


@pytest.mark.parametrize("release", KEPT)
def test_pause_in_a_restoration(release):
    """A paused restoration leaves a checkpoint that stands; resumed, it flushes, and ends with another."""
    run = committed_crash(release)
    app = run.start()
    app.opens("0_0")
    app.checkpoints("0_0", BASE + 500)
    run.wait(120)
    restores_for(run, app, 5000, 4)
    run.wait(2)
    assert confirmed(run) == []
    app.checkpoints("0_0", BASE + 5100)
    run.wait(30)
    assert confirmed(run) == []
    app.puts("0_0", 100)
    app.stops({"0_0": BASE + 5300})
    run.wait(120)
    assert confirmed(run) == []


@pytest.mark.parametrize("release", KEPT)
def test_pause_and_a_close_half_way(release):
    """A restoration that was paused and resumed is closed in order before its end."""
    run = committed_crash(release)
    app = run.start()
    app.opens("0_0")
    app.checkpoints("0_0", BASE + 500)
    run.wait(60)
    app.puts("0_0", 2000)
    app.stops({"0_0": BASE + 2500})
    run.wait(120)
    assert run.findings("skipped-eos-wipe")
    assert confirmed(run) == []


@pytest.mark.parametrize("release", KEPT)
@pytest.mark.parametrize("standbys", [0, 1])
def test_killed_while_restoring(release, standbys):
    """What a restoration flushed behind its newest checkpoint is committed: nobody is called before the next start."""
    run = Scenario(release, EOS, standbys, stores={"s": TIMESTAMPED})
    app = run.start()
    app.opens("0_0")
    for done in (12_000, 24_000):
        app.puts("0_0", 12_000)
        app.checkpoints("0_0", done)
        run.wait(0.5)
    app.puts("0_0", 8_000)
    app.flushes("0_0")
    run.wait(0.5)
    app.crash()
    run.wait(300)
    assert criticals(run) == []


@pytest.mark.parametrize("release", KEPT)
@pytest.mark.parametrize("standbys", [0, 1, None])
def test_copy_that_was_started_again(release, standbys):
    """A standby writes a checkpoint at its first commit; without any it may be a copy that warms up: suspected."""
    run = Scenario(release, EOS, standbys, stores={"s": TIMESTAMPED})
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 12_000)
    app.checkpoints("0_0", BASE)
    run.wait(60)
    app.stops({"0_0": BASE + 10})
    app = run.start()
    app.opens("0_0")
    run.wait(0.1)
    app.checkpoints("0_0", BASE + 100)
    run.wait(60)
    app.puts("0_0", 5000)
    app.flushes("0_0")
    run.wait(60)
    app.crash()
    run.wait(300)
    assert (criticals(run) if standbys != 0 else confirmed(run)) == []


@pytest.mark.parametrize("standbys", [0, 1])
def test_active_task_that_becomes_a_standby(standbys):
    """Its checkpoint is written and deleted as it changes, and its store stays open: what follows is committed."""
    run = Scenario("4.1.2", EOS, 1, stores={"s": TIMESTAMPED})
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 1999, puts=2000)
    run.wait(30)
    app.puts("0_0", 500)
    app.checkpoints("0_0", 2600)
    run.wait(0.1)
    app._delete_checkpoint(run.task("0_0"))
    run.wait(60)
    app.puts("0_0", 5000)
    app.flushes("0_0")
    run.wait(60)
    app.crash()
    run.wait(300)
    assert criticals(run) == []


def test_copy_that_catches_up_between_two_commits():
    """More than 10,000 records without a checkpoint are nothing, as long as no commit was due."""
    run = Scenario("4.1.2", EOS, 1, stores={"s": TIMESTAMPED}, told={"commit_interval_ms": 30_000})
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 12_000)
    app.checkpoints("0_0", 12_000)
    run.wait(2)
    app.puts("0_0", 50_000)
    app.flushes("0_0")
    run.wait(2)
    app.crash()
    run.wait(300)
    assert criticals(run) == []
