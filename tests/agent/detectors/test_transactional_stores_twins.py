"""Transactional stores (4.4+): lives that look like damage and are none, and some that nearly hide it."""

from __future__ import annotations

import pytest

from agent.contract.events import Level, Severity
from tests.agent.detectors.test_transactional_stores import SKIPPED, committed, corrupted, transactional
from tests.support.scenario import UNLOGGED, WINDOWED, Scenario
from tests.support.twins import twin

T = "enable_transactional_statestores"


# -- a kill while segments are being made: expired ones are being taken away


@pytest.mark.parametrize(("held", "said"), [(True, 0), (False, 1)])
def test_expired_segment_that_was_half_deleted(held, said):
    """While later segments are held only an expired one is taken away; without a holder it is a torn deletion."""
    run = Scenario("4.4.0", "at_least_once", stores={"w": WINDOWED})
    app = run.start()
    app.opens("0_0")
    for segment in (10, 20):
        app.puts("0_0", 100, store="w", segment=segment)
    app.commits("0_0", 199)
    app.flushes("0_0")
    run.wait(2)
    oldest = run.task("0_0").databases.pop(("w", "10"))
    if held:
        oldest.close()
    else:
        app.stops({"0_0": 200})
        run.wait(5)
    for name in ("CURRENT", "IDENTITY"):
        run.world.play("unlink", f"{oldest.path}/{name}")
    run.wait(0.5)
    if held:
        app.crash()
    run.wait(100)
    torn = [x for x in run.findings("torn-store") if "data file" in x.summary]
    assert len(torn) == said


# -- lives that an enemy of these verdicts found


def test_a_store_without_a_changelog_is_never_to_be_removed():
    """It has no checkpoint after an orderly stop, either, and nothing would bring it back."""
    run = transactional(stores={"u": UNLOGGED})
    app = run.start("4.2.2", transactional=False)
    app.opens("0_0")
    app.puts("0_0", 500)
    app.flushes("0_0")
    run.wait(5)
    app.crash()
    run.wait(100)
    finding = run.only(SKIPPED)
    assert finding.severity is Severity.WARNING
    assert "Remove nothing" in finding.next_action
    app = run.start("4.4.0", transactional=True)
    app.startup_pass()
    app.opens("0_0")
    run.wait(30)
    assert {x.level for x in run.loud() if x.detector == SKIPPED} == {Level.EXPOSURE}


def test_upgrade_from_a_restoration_that_wrote_a_checkpoint_and_took_it_away():
    """4.2.2 writes the checkpoint at the end of a restoration, and deletes it at once."""
    run = transactional()
    app = run.start("4.2.2", transactional=False)
    app.opens("0_0")
    app.puts("0_0", 500)
    run.wait(2)
    app.stops({"0_0": 499})
    run.wait(3)
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.checkpoints("0_0", 499)
    run.world.play("unlink", "app/0_0/.checkpoint")
    app.puts("0_0", 5000)
    app.flushes("0_0")
    run.wait(1)
    app.crash()
    run.wait(70)
    finding = run.only(SKIPPED)
    assert (finding.severity, finding.level) == (Severity.CRITICAL, Level.EXPOSURE)


def test_upgrade_under_an_agent_that_starts_with_its_pod():
    """It sees no life of the older release, and first of all the start-up pass."""
    run = transactional(watched=False)
    app = run.start("4.2.2", transactional=False)
    app.opens("0_0")
    app.puts("0_0", 500)
    run.wait(1)
    app.stops({"0_0": 499})
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 5000)
    app.flushes("0_0")
    run.wait(1)
    app.crash()
    run.wait(2)
    run.world.watch()
    run.wait(1)
    app = run.start("4.4.0", transactional=True)
    app.startup_pass()
    app.opens("0_0")
    app.puts("0_0", 6000)
    app.commits("0_0", 12_000)
    app.flushes("0_0")
    run.wait(30)
    damage = [x for x in run.findings(SKIPPED) if x.level is Level.DAMAGE]
    assert [x.severity for x in damage] == [Severity.WARNING]


@pytest.mark.parametrize(("release", "told"), [("4.4.0", "false"), ("4.3.1", None)])
@pytest.mark.twin_of(SKIPPED, "without transactional stores the next start wipes it")
def test_a_start_that_wipes_is_no_exposure(release, told):
    """Transactional stores are switched off, or the application goes back to 4.3.1: the next start wipes."""
    run = Scenario(release, "exactly_once_v2", told={T: told, "commit_interval_ms": 500})
    corrupted(run, _on_4_4_0(run), uncommitted=300)
    run.wait(100)
    assert run.findings(SKIPPED) == []


def _on_4_4_0(run: Scenario):
    run.release = "4.4.0"
    return committed(run)


def test_the_start_up_pass_keeps_nothing():
    """It opens and closes every store; whether the task is wiped, its assignment decides."""
    run = transactional()
    corrupted(run, committed(run), uncommitted=300)
    run.wait(5)
    app = run.start(transactional=True)
    app.startup_pass()
    run.wait(100)
    assert [x.level for x in run.findings(SKIPPED)] == [Level.EXPOSURE]


def test_offset_of_a_source_topic():
    """What a table lacks that reads its source topic again was committed there."""
    run = transactional()
    app = run.start(transactional=True)
    app.opens("0_0")
    app.puts("0_0", 500)
    database = run.task("0_0").databases["s", ""]
    database.put_offset("input-0", 500)
    database.put_position()
    app.flushes("0_0")
    run.wait(2)
    app.puts("0_0", 300)
    database.drop_offset("input-0")
    database.put_position()
    app.closes_dirty("0_0")
    app.crash()
    run.wait(100)
    assert run.findings(SKIPPED) == []


def test_changelog_that_was_switched_off():
    """The first commit takes the offset away, and the store goes on."""
    run = transactional()
    app = committed(run)
    app.stops()
    app = run.start(transactional=True)
    app.opens("0_0")
    app.puts("0_0", 300)
    database = run.task("0_0").databases["s", ""]
    database.drop_offset("app-s-changelog-0")
    database.put_position()
    for _ in range(5):
        app.puts("0_0", 10)
        database.put_position()
    app.stops()
    run.wait(100)
    assert run.findings(SKIPPED) == []


@pytest.mark.parametrize(
    ("puts", "is_started_again"),
    [
        twin(SKIPPED, "nothing is in it", 0, True),
        twin(SKIPPED, "it holds what was restored, no more", 100, True),
        twin(SKIPPED, "it has an offset", 100, False),
    ],
)
def test_upgrade_after_a_kill_without_a_flush(puts, is_started_again):
    """A start took the checkpoint away, and flushed nothing: one reading shows only committed data."""
    run = transactional(watched=False)
    app = run.start("4.2.2", transactional=False)
    app.opens("0_0")
    app.puts("0_0", puts)
    run.wait(1)
    app.stops({"0_0": puts - 1})
    run.wait(5)
    if is_started_again:
        app = run.start()
        app.opens("0_0")
        run.wait(300)
        app.crash()
    run.wait(100)
    run.world.watch()
    run.wait(5)
    assert run.findings(SKIPPED) == []


def test_corrupted_without_transactions_then_switched_on():
    """4.4.0 without them puts uncommitted records into the store as it goes; closed, without an offset."""
    run = transactional()
    app = committed(run, transactional=False)
    app.puts("0_0", 300)
    for database in run.task("0_0").databases.values():
        database.drop_offset("app-s-changelog-0")
    app.closes_dirty("0_0")
    app.crash()
    run.wait(100)
    assert (run.only(SKIPPED).severity, run.only(SKIPPED).level) == (Severity.CRITICAL, Level.EXPOSURE)
    app = run.start(transactional=True)
    app.startup_pass()
    app.opens("0_0")
    app.puts("0_0", 100)
    app.commits("0_0", 900)
    app.flushes("0_0")
    run.wait(30)
    assert [x.level for x in run.findings(SKIPPED)] == [Level.EXPOSURE, Level.DAMAGE]


def test_standby_of_transactional_stores_that_are_switched_off():
    """What it had read ahead of its offset was committed; the start-up pass puts the same offset again."""
    run = Scenario("4.4.0", "exactly_once_v2", 1, told={T: "false", "commit_interval_ms": 500})
    app = run.start(transactional=True)
    app.opens("0_0")
    app.puts("0_0", 500)
    app.commits("0_0", 500)
    app.puts("0_0", 20_000)
    app.flushes("0_0")
    run.wait(5)
    app.crash()
    run.wait(5)
    app = run.start(transactional=False)
    app.startup_pass(500)
    run.wait(60)
    assert [x for x in run.loud() if x.detector == "data-beyond-changelog"] == []


def test_step_beside_a_store_without_a_changelog():
    """The start that wipes the task would take it for good."""
    run = Scenario("4.4.0", "exactly_once_v2", stores={"s": "key-value", "u": UNLOGGED}, told={T: "true"})
    app = run.start(transactional=False)
    app.opens("0_0")
    app.puts("0_0", 500)
    app.commits("0_0", 500)
    app.flushes("0_0")
    run.wait(2)
    app.crash()
    run.wait(5)
    steps = {x.next_action for x in run.findings("unopenable-task")}
    assert steps
    assert all("u may have no changelog" in step for step in steps)
