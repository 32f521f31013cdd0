"""Detector `skipped-eos-wipe`: reopened after an unclean end instead of wiped (KAFKA-20685, 10362, 9891, 7192)."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from tests.support.scenario import KEY_VALUE, TIMESTAMPED, WINDOWED, App, Scenario

ID = "skipped-eos-wipe"
EOS = "exactly_once_v2"


def crashed(
    release: str = "4.1.2", guarantee: str = EOS, standbys: int | None = 0, *, flushed: int = 6000, **more
) -> Scenario:
    """A restored task (offset 1999) flushes uncommitted data and is killed."""
    run = Scenario(release, guarantee, standbys, **more)
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 1999, puts=2000)
    run.wait(3)
    app.puts("0_0", flushed)
    app.flushes("0_0")
    run.wait(3)
    app.crash()
    run.wait(5)
    return run


def reopened(run: Scenario) -> App:
    """The next process opens the task without a wipe."""
    app = run.start()
    run.wait(5)
    app.opens("0_0")
    return app


def works(run: Scenario, app: App) -> None:
    """The task runs on: more reaches the disk than a restoration flushes without a checkpoint."""
    run.wait(2)
    app.puts("0_0", 40_000)
    app.flushes("0_0")
    run.wait(12)


@pytest.mark.parametrize("kind", [KEY_VALUE, TIMESTAMPED])
@pytest.mark.parametrize("release", ["3.8.1", "3.9.2", "4.0.2", "4.1.2", "4.2.0", "4.2.1"])
def test_first_checkpoint_proves_the_loss(release, kind):
    """The changelog gave back less than had been flushed: uncommitted data is in the store."""
    run = crashed(release, stores={"s": kind})
    app = reopened(run)
    app.restores("0_0", 1999, puts=0)
    works(run, app)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status) == (
        Level.DAMAGE,
        Severity.CRITICAL,
        Confidence.CONFIRMED,
        Status.OPEN,
    )
    assert (finding.task_id, finding.affected, finding.upstream) == ("0_0", Affected.YES, ("KAFKA-20685",))
    assert [step.at_us for step in finding.evidence] == sorted(step.at_us for step in finding.evidence)


def test_suspected_before_the_first_checkpoint():
    """The crash alone says nothing; ten seconds after the reopening it is a warning, and the proof escalates it."""
    run = crashed()
    assert run.findings(ID) == []
    app = reopened(run)
    run.wait(9)
    assert run.findings(ID) == []
    run.wait(3)
    before = run.only(ID)
    assert (before.severity, before.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    app.checkpoints("0_0", 1999)
    works(run, app)
    after = run.only(ID)
    assert (after.id, after.severity) == (before.id, Severity.CRITICAL)
    assert [step.what for step in after.evidence[len(before.evidence) :]] == [
        "first checkpoint after the restart: offset 1999, 8000 puts on disk",
        "proof: the offset advanced by 0, 6000 puts had been flushed beyond it",
    ]


def test_committed_twin_is_not_proven():
    """The same picture with everything committed: the offset advances by more than was flushed."""
    run = crashed(flushed=5322)
    app = reopened(run)
    app.restores("0_0", 1999 + 6002, puts=6000)
    run.wait(30)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    assert "not proven" in finding.summary


def test_aborted_offsets_prove_it_too():
    """Offset +12,002 but only 6,000 puts: as much as had been flushed was aborted (KAFKA-10362, recorded)."""
    run = Scenario("2.6.1", "exactly_once", 0, told={"commit_interval_ms": 60_000})
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 2000)
    app.checkpoints("0_0", 1999)
    app.puts("0_0", 6000)
    app.flushes("0_0")
    run.wait(3)
    app.crash()
    run.wait(5)
    app = reopened(run)
    app.puts("0_0", 6000)
    app.checkpoints("0_0", 1999 + 12_002)
    run.wait(2)
    finding = run.only(ID)
    assert (finding.severity, finding.upstream) == (Severity.CRITICAL, ("KAFKA-10362",))
    assert any("aborted" in step.what for step in finding.evidence)


@pytest.mark.parametrize("standbys", [0, 1])
@pytest.mark.parametrize("more", [3_000, 15_000])
@pytest.mark.parametrize("end", ["goes on", "is killed", "closes"])
def test_restoration_that_is_frozen_half_way(end, more, standbys):
    """All was committed; SIGSTOP, or a volume that stalls, right after a commit and another flush."""
    run = crashed(flushed=40_000, standbys=standbys, stores={"s": TIMESTAMPED})
    app = reopened(run)
    run.wait(1)
    app.puts("0_0", 12_000)
    app.flushes("0_0")
    app.checkpoints("0_0", 13_999)
    run.wait(0.05)
    app.puts("0_0", more)
    app.flushes("0_0")
    run.wait(45)
    if end == "is killed":
        app.crash()
    elif end == "closes":
        app.closes("0_0", 13_999 + more)
    else:
        app.puts("0_0", 28_000 - more)
        app.flushes("0_0")
        run.wait(0.1)
        app.checkpoints("0_0", 41_999)
    run.wait(90)
    assert {x.severity for x in run.findings() if x.detector in (ID, "stale-eos-checkpoint")} <= {
        Severity.WARNING,
        Severity.INFO,
    }


def test_window_segment():
    """In a windowed store the flushed data lies in a segment younger than the checkpoint."""
    run = Scenario("4.0.2", EOS, 0, stores={"w": WINDOWED})
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 1999, puts=2000)
    run.wait(3)
    app.puts("0_0", 6000, segment=60_000)
    app.flushes("0_0")
    run.wait(3)
    app.crash()
    run.wait(5)
    app = reopened(run)
    app.restores("0_0", 1999, puts=0)
    works(run, app)
    assert run.only(ID).severity is Severity.CRITICAL


# -- old releases -------------------------------------------------------------------------------------------


# -- benign twins -------------------------------------------------------------------------------------------


@pytest.mark.twin_of("skipped-eos-wipe", "closed in order")
def test_quiet_for_a_clean_close():
    """A clean close checkpoints what it flushes."""
    run = Scenario("4.1.2", EOS, 0)
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 1999, puts=2000)
    run.wait(3)
    app.puts("0_0", 6000)
    app.stops({"0_0": 7999})
    run.wait(5)
    app = reopened(run)
    app.restores("0_0", 7999, puts=0)
    run.wait(30)
    assert run.findings(ID) == []


@pytest.mark.parametrize("release", ["2.3.1", "3.5.2", "4.2.1"])
@pytest.mark.twin_of(ID, "a store without a changelog")
def test_quiet_where_a_source_topic_is_the_changelog(release):
    """Its checkpoint names the source topic: an orderly stop looked like an unclean end (found live, 4.2.1)."""
    run = Scenario(release, EOS, 0)
    app = run.start()
    app.opens("0_0")
    run.wait(3)
    app.puts("0_0", 600)
    app.flushes("0_0")
    app.write_checkpoint("0_0", {("in-table", 0): 599})
    app.closes("0_0")
    app.ends()
    run.wait(5)
    app = run.start()
    app.opens("0_0")
    run.wait(30)
    assert run.findings(ID) == []
    assert run.world.pipeline is not None
    first = run.world.pipeline.inventory.applications["app"].tasks["0_0"].stores["s"].sessions[0]
    assert first.closed is None  # a checkpoint that never names the store tells nothing of its end


@pytest.mark.twin_of("skipped-eos-wipe", "nothing was flushed beyond the checkpoint")
def test_quiet_for_an_unflushed_crash():
    """What never reached the disk cannot be trusted by anyone."""
    run = Scenario("4.1.2", EOS, 0)
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 1999, puts=2000)
    run.wait(3)
    app.puts("0_0", 6000)
    app.crash()
    run.wait(5)
    app = reopened(run)
    app.restores("0_0", 1999, puts=0)
    run.wait(30)
    assert run.findings(ID) == []


def test_quiet_for_a_crash_during_the_restoration():
    """Before the first checkpoint of the restoration only committed records are flushed, and then covered by it."""
    run = Scenario("4.1.2", EOS, 0)
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 12_000)
    app.checkpoints("0_0", 11_999)
    run.wait(2)
    app.puts("0_0", 3000)
    app.crash()
    run.wait(5)
    app = reopened(run)
    app.restores("0_0", 20_000, puts=8000)
    run.wait(30)
    assert run.findings(ID) == []


def test_quiet_for_the_wipe():
    """The whole directory is deleted and recreated at the restart."""
    run = crashed()
    app = reopened(run)
    app.wipes("0_0")
    app.restores("0_0", 1999, puts=2000)
    run.wait(30)
    assert run.findings(ID) == []


@pytest.mark.parametrize(("guarantee", "hidden"), [("at_least_once", ()), (EOS, ("processing_guarantee",))])
def test_quiet_without_exactly_once(guarantee, hidden):
    """At-least-once replays over old data by design; an unknown guarantee decides nothing."""
    run = crashed(guarantee=guarantee, hidden=hidden)
    app = reopened(run)
    app.restores("0_0", 1999, puts=0)
    run.wait(30)
    assert run.findings(ID) == []


@pytest.mark.parametrize(
    ("standbys", "flushed", "severity", "missing"),
    [
        (0, 500, Severity.WARNING, ()),
        (1, 500, Severity.WARNING, ()),
        (None, 500, Severity.WARNING, ()),
    ],
)
def test_role_decides_how_severe_a_suspicion_is(standbys, flushed, severity, missing):
    """A checkpoint that moved by less than 10,000 and stands is the end of an active task's restoration."""
    run = crashed(standbys=standbys, flushed=flushed)
    app = reopened(run)
    app.restores("0_0", 1999 + flushed + 1, puts=flushed)
    run.wait(2)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence, finding.missing_facts) == (
        severity,
        Confidence.SUSPECTED,
        missing,
    )


def test_clears_when_the_store_is_restored_from_empty():
    """Damage ends with the incarnation that it is in."""
    run = crashed()
    app = reopened(run)
    app.restores("0_0", 1999, puts=0)
    run.wait(2)
    app.stops({"0_0": 2500})
    run.wait(5)
    assert run.only(ID).status is Status.OPEN
    app.deletes_directory("0_0")
    app = reopened(run)
    app.restores("0_0", 2500, puts=2500)
    run.wait(15)
    assert run.only(ID).status is Status.RESOLVED


def test_two_stores_are_one_crash():
    """The worst store decides; the other's crash is the same."""
    run = Scenario("4.1.2", EOS, 0, stores={"a": KEY_VALUE, "b": KEY_VALUE})
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 1999, puts=2000)
    run.wait(3)
    app.puts("0_0", 6000)
    app.flushes("0_0")
    run.wait(1)
    app.crash()
    run.wait(5)
    app = reopened(run)
    app.restores("0_0", {"a": 1999 + 6001, "b": 1999}, puts=0)
    works(run, app)
    finding = run.only(ID)
    assert finding.severity is Severity.CRITICAL
    assert "store b" in finding.summary
