"""Detector `resurrected-checkpoint`: an old offset trusted on a fresh store (KAFKA-8187 stage 2, torn deletion)."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from tests.support.scenario import KEY_VALUE, TIMESTAMPED, WINDOWED, App, Scenario

ID = "resurrected-checkpoint"


def torn(release: str, *, stop_after: str = "s/CURRENT", pause: float = 5, **more) -> Scenario:
    """A cleaner is killed half way through an unowned task whose checkpoint says 3000; then a pause, in seconds."""
    run = Scenario(release, **more)
    app = run.start()
    for task_id in ("0_0", "0_1"):
        app.opens(task_id)
        run.wait(1)
        app.puts(task_id, 3000)
        app.checkpoints(task_id, 3000)
    run.wait(5)
    app.closes("0_1", 3000)
    run.wait(30)
    app.cleaner.deletes("0_1", stop_after=stop_after)
    run.wait(1)
    app.crash()
    run.wait(pause)
    return run


def restarted(run: Scenario, *, to: int = 4000, puts: int = 1000, pause: float = 5) -> App:
    """The next owner opens what is left and restores from the old offset."""
    app = run.start()
    run.wait(pause)
    app.opens("0_1")
    app.restores("0_1", to, puts=puts)
    run.wait(2)
    return app


@pytest.mark.parametrize("kind", [KEY_VALUE, TIMESTAMPED])
@pytest.mark.parametrize("release", ["2.1.1", "2.3.1", "2.4.1", "2.7.2", "3.9.2", "4.0.2", "4.1.2", "4.2.1"])
def test_torn_deletion(release, kind):
    """A kill inside the cleaner's walk leaves the checkpoint beside a store that is then recreated."""
    run = torn(release, stores={"s": kind})
    assert run.findings(ID) == []
    restarted(run)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status) == (
        Level.DAMAGE,
        Severity.CRITICAL,
        Confidence.CONFIRMED,
        Status.OPEN,
    )
    assert (finding.task_id, finding.store, finding.affected) == ("0_1", "s", Affected.YES)
    assert finding.upstream == ("torn deletion (no upstream issue)",)
    assert "3000" in finding.summary


@pytest.mark.parametrize(
    "release", ["2.0.1", "2.1.1", "2.3.1", "2.5.1", "2.6.2", "2.8.2", "3.9.2", "4.1.2", "4.2.1"]
)
def test_torn_deletion_under_exactly_once(release):
    """Exactly-once reads the old offset and deletes the file, before its lock up to 2.5, right after the open later."""
    for pause in (5, 1):  # a supervisor restarts at once: the deletion before the lock is not the cleaner's
        run = torn(release, guarantee="exactly_once", pause=pause)
        restarted(run, pause=pause)
        finding = run.only(ID)
        assert (finding.severity, finding.confidence) == (Severity.CRITICAL, Confidence.CONFIRMED)


def test_evidence_is_in_time_order():
    """The chain tells what happened one after the other."""
    run = torn("3.9.2")
    restarted(run)
    times = [step.at_us for step in run.only(ID).evidence]
    assert times == sorted(times)


@pytest.mark.parametrize("release", ["3.9.2", "4.1.2"])
def test_torn_clean_up(release):
    """`cleanUp()` of a process that does not run yet can be killed half way, too: no cleaner, no lock."""
    run = Scenario(release)
    app = run.start()
    app.opens("0_1")
    run.wait(1)
    app.puts("0_1", 3000)
    app.stops({"0_1": 3000})
    run.wait(30)
    app = run.start()
    app.cleans_up(stop_after="s/CURRENT")
    app.crash()
    run.wait(5)
    restarted(run)
    assert run.only(ID).severity is Severity.CRITICAL


def test_torn_before_current_is_gone():
    """While CURRENT and IDENTITY are there, the old store is opened and nothing is lost by an old offset."""
    run = torn("3.9.2", stop_after="LOG")
    restarted(run)
    assert run.findings(ID) == []


def test_torn_after_the_checkpoint_is_gone():
    """A deletion that took the checkpoint leads to a full restoration."""
    run = torn("3.9.2", stop_after=".checkpoint")
    restarted(run, puts=4000)
    assert run.findings(ID) == []


def test_half_torn_reports_only_the_missing_store():
    """Two stores, one deletion killed between them: only the store that is recreated is damaged."""
    run = torn("2.4.1", stop_after="rocksdb/a", stores={"a": KEY_VALUE, "b": KEY_VALUE})
    restarted(run)
    assert run.only(ID).store == "a"


def test_fires_when_the_store_is_made_before_any_checkpoint():
    """The trusted old offset decides; no first checkpoint of the new store is needed."""
    run = torn("3.9.2")
    app = run.start()
    run.wait(5)
    app.opens("0_1")
    run.wait(1)
    assert run.only(ID).severity is Severity.CRITICAL


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once"])
@pytest.mark.parametrize(("release", "told"), [("4.3.1", None), ("4.4.0", None), ("4.3.1", "4.2.1")])
def test_first_start_of_4_3_after_a_torn_deletion(release, told, guarantee):
    """It moves the old offset into the new, empty store; what a kill loses before a flush is no proof."""
    run = torn("4.2.1", guarantee=guarantee, told={"kafka_streams_version": told or release})
    app = run.start(release)
    run.wait(5)
    app.opens("0_1")
    app.checkpoints("0_1", 3000)
    run.wait(1)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence) == (Severity.CRITICAL, Confidence.SUSPECTED)
    app.puts("0_1", 1000)
    app.checkpoints("0_1", 4000)
    app.flushes("0_1")
    run.wait(5)
    assert run.only(ID).confidence is Confidence.CONFIRMED


def test_quiet_on_4_3():
    """4.3 keeps the offset in the store: a torn deletion restores in full."""
    run = torn("4.3.1")
    restarted(run, puts=4000)
    assert run.findings(ID) == []


# -- carried over in memory: KAFKA-8187 stage 2 -----------------------------------------------------------------


def handed_over(release: str, guarantee: str = "at_least_once") -> tuple[Scenario, App]:
    """The cleaner deletes the directory while the next owner, who has read offset 2000, waits for its lock."""
    run = Scenario(release, guarantee, 1)
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 2000)
    app.checkpoints("0_0", 2000)
    run.wait(10)
    app.closes("0_0", 2000)
    run.wait(30)
    app.cleaner.deletes("0_0")
    app.opens("0_0")
    run.wait(0.2)
    return run, app


@pytest.mark.parametrize("release", ["2.0.1", "2.1.1", "2.2.1"])
def test_8187_stage_two(release):
    """The first checkpoint of the new store continues from the old offset, with only what was written since."""
    run, app = handed_over(release)
    assert run.findings(ID) == []
    app.puts("0_0", 50)
    app.checkpoints("0_0", 2050)
    run.wait(1)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence, finding.upstream) == (
        Severity.CRITICAL,
        Confidence.CONFIRMED,
        ("KAFKA-8187",),
    )


def test_8187_right_after_the_new_store():
    """2.0.1 writes the old offset again within one commit interval, here before the look at the store settled."""
    run, app = handed_over("2.0.1")
    app.checkpoints("0_0", 2000)
    run.wait(1)
    assert run.only(ID).severity is Severity.CRITICAL


@pytest.mark.parametrize("release", ["2.0.1", "3.9.2"])
@pytest.mark.twin_of(ID, "restored in full: its puts come with its offset")
def test_full_restoration_is_benign(release):
    """After a cleaning, a full restoration brings its puts with its offset."""
    run, app = handed_over(release)
    app.restores("0_0", 2050, puts=2050)
    run.wait(1)
    app.checkpoints("0_0", 2050)
    run.wait(30)
    assert run.findings(ID) == []


def test_move_away_and_back():
    """A task that was cleaned and comes back much later restores in full: an ordinary move."""
    run, app = handed_over("2.1.1")
    app.closes("0_0", 0)
    run.wait(100)
    app.opens("0_0")
    app.restores("0_0", 2100, puts=2100)
    app.checkpoints("0_0", 2100)
    run.wait(30)
    assert run.findings(ID) == []


def test_unknown_release_is_suspected():
    """Without the release the hand-over is only suspected, and the missing setting is named."""
    run = Scenario("2.1.1", "at_least_once", 1, hidden=("*",))
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 2000)
    app.checkpoints("0_0", 2000)
    app.closes("0_0", 2000)
    run.wait(30)
    app.cleaner.deletes("0_0")
    # another release may have done this: the only trace on disk is the RocksDB version, and it is gone
    run.stores = {"s": KEY_VALUE}
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 50)
    app.checkpoints("0_0", 2050)
    run.wait(1)
    assert run.only(ID).severity.rank >= 1


# -- benign twins -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["2.1.1", "3.9.2", "4.1.2"])
@pytest.mark.twin_of(ID, "a new topology added it: no checkpoint names it")
def test_store_added_by_a_new_topology(release):
    """N24: a new store beside an old checkpoint has no entry in it."""
    run = Scenario(release)
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 3000)
    app.stops({"0_0": 3000})
    run.wait(60)
    run.stores = {"s": KEY_VALUE, "added": KEY_VALUE}
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", {"s": 3000, "added": 500}, puts=500, store="added")
    run.wait(30)
    assert run.findings(ID) == []


@pytest.mark.parametrize("release", ["2.3.1", "3.9.2", "4.1.2"])
def test_young_window_segment(release):
    """A window segment that is younger than the checkpoint is normal operation."""
    run = Scenario(release, stores={"w": WINDOWED})
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 3000, segment=0)
    run.wait(1)
    app.checkpoints("0_0", 3000)
    run.wait(60)
    app.puts("0_0", 100, segment=60_000)
    app.flushes("0_0")
    run.wait(5)
    app.drops_segment("0_0", "w", 0)
    run.wait(30)
    assert run.findings(ID) == []


def test_segments_deleted_by_a_cleaner_are_suspected():
    """Segments that a cleaner tore away beside their checkpoint are a suspicion, never a certainty."""
    run = torn("3.9.2", stop_after="0_1/w", stores={"w": WINDOWED})
    app = run.start()
    run.wait(5)
    app.opens("0_1")
    app.puts("0_1", 100)
    app.flushes("0_1")
    run.wait(2)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.SUSPECTED)


@pytest.mark.parametrize("release", ["2.1.1", "2.5.1"])
def test_owner_wipes_under_its_lock(release):
    """Up to 2.5 exactly-once wipes a store under the task lock and leaves the checkpoint: another matter."""
    run = Scenario(release, "exactly_once")
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 3000)
    app.checkpoints("0_0", 3000)
    run.wait(5)
    app.wipes("0_0")
    app.restores("0_0", 3000)
    run.wait(30)
    assert run.findings(ID) == []


@pytest.mark.parametrize("release", ["2.6.2", "3.4.1", "4.1.2"])
def test_owner_wipes_the_directory(release):
    """From 2.6 on a wipe takes the checkpoint with it; the restoration that follows is full."""
    run = Scenario(release, "exactly_once")
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 3000)
    app.checkpoints("0_0", 3000)
    run.wait(5)
    app.wipes("0_0")
    app.restores("0_0", 3100, puts=3100)
    run.wait(30)
    assert run.findings(ID) == []


def test_clears_with_the_incarnation():
    """The finding is resolved when the damaged store is replaced by one that was restored from empty."""
    run = torn("3.9.2")
    app = restarted(run)
    app.stops({"0_1": 4100})
    run.wait(5)
    assert run.only(ID).status is Status.OPEN
    app.deletes_directory("0_1")
    run.wait(1)
    app = run.start()
    app.opens("0_1")
    app.restores("0_1", 4200, puts=4200)
    run.wait(5)
    assert run.only(ID).status is Status.RESOLVED


# -- from artefacts alone -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "guarantee", "severity"),
    [("3.9.2", "at_least_once", Severity.CRITICAL), ("2.1.1", "exactly_once", Severity.WARNING)],
)
def test_scan_finds_the_old_checkpoint(release, guarantee, severity):
    """A checkpoint that is older than its store convicts, where the release does not wipe beside a checkpoint."""
    run = Scenario(release, guarantee, watched=False)
    app = run.start()
    app.opens("0_1")
    app.puts("0_1", 3000)
    app.checkpoints("0_1", 3000)
    app.crash()
    run.wait(30)
    app.delete_tree("app/0_1/rocksdb")
    app = run.start()
    app._open_store(run.task("0_1"), "s", KEY_VALUE)
    app.puts("0_1", 10)
    app.flushes("0_1")
    app.held.add("0_1")
    app.crash()
    run.wait(30)
    run.world.watch()
    assert run.only(ID).severity is severity


@pytest.mark.twin_of(ID, "its store was there before")
def test_scan_of_a_healthy_directory():
    """A checkpoint that is younger than its store says nothing."""
    run = Scenario("3.9.2", watched=False)
    app = run.start()
    app.opens("0_1")
    app.puts("0_1", 3000)
    app.stops({"0_1": 3000})
    run.wait(30)
    run.world.watch()
    run.wait(30)
    assert run.findings(ID) == []
