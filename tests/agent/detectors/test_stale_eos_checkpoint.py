"""Detector `stale-eos-checkpoint`: flushes beyond a checkpoint that stays while the task runs (KAFKA-20685, 10362)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from tests.support.scenario import TIMESTAMPED, WINDOWED, App, Scenario
from tests.support.scenario_case import (
    at,
    case,
    checkpoint,
    database,
    judge,
    mark,
    session,
    severities,
    store,
    task,
)

ID = "stale-eos-checkpoint"
EOS = "exactly_once_v2"


def restored(
    release: str = "4.1.2", guarantee: str = EOS, standbys: int | None = 0, **more
) -> tuple[Scenario, App]:
    """A task that has just been restored: its checkpoint is there, nothing was flushed beyond it."""
    run = Scenario(release, guarantee, standbys, **more)
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 1999, puts=2000)
    run.wait(3)
    return run, app


@pytest.mark.parametrize("release", ["3.8.1", "3.9.2", "4.0.2", "4.1.2", "4.2.1"])
def test_fires_on_a_flush_beyond_the_checkpoint(release):
    """Data flushed while the checkpoint of the restoration stays is an exposure."""
    run, app = restored(release)
    app.puts("0_0", 500)
    app.flushes("0_0")
    run.wait(2)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence) == (
        Level.EXPOSURE,
        Severity.WARNING,
        Confidence.SUSPECTED,
    )
    assert (finding.task_id, finding.affected, finding.upstream) == ("0_0", Affected.YES, ("KAFKA-20685",))
    assert [step.at_us for step in finding.evidence] == sorted(step.at_us for step in finding.evidence)
    assert "500 puts" in finding.summary


def test_waits_for_the_flush_and_a_second():
    """Neither puts in the memtable nor a flush that a close may be about to checkpoint is a finding."""
    run, app = restored()
    app.puts("0_0", 500)
    run.wait(20)
    assert run.findings(ID) == []
    app.flushes("0_0")
    run.wait(0.8)
    assert run.findings(ID) == []
    run.wait(1.5)
    assert run.only(ID).status is Status.OPEN


def test_checkpoint_milliseconds_after_the_store_was_made():
    """A new task's checkpoint may come before the look at its new store has settled (recorded: 70 ms)."""
    run = Scenario("4.1.2", EOS, 0)
    app = run.start()
    app.opens("0_0")
    run.wait(0.05)
    app.checkpoints("0_0", -4)
    run.wait(1)
    app.puts("0_0", 500)
    app.flushes("0_0")
    run.wait(2)
    assert run.only(ID).severity is Severity.WARNING


def test_says_so_for_a_suspended_task_of_2_6():
    """2.6.0 and 2.6.1 keep the checkpoint of a suspension when the task is resumed."""
    run = Scenario("2.6.1", "exactly_once", 0)
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 2000)
    app.checkpoints("0_0", 1999)
    run.wait(1)
    app.puts("0_0", 500)
    app.flushes("0_0")
    run.wait(2)
    finding = run.only(ID)
    assert (finding.severity, finding.upstream) == (Severity.WARNING, ("KAFKA-10362",))


@pytest.mark.parametrize("release", ["2.5.1", "2.6.2", "3.4.1", "3.7.2", "4.3.1"])
def test_quiet_on_other_releases(release):
    """Releases that delete the checkpoint, or have none, are not accused."""
    run = Scenario(release, "exactly_once", 0)
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 2000)
    app.checkpoints("0_0", 1999)
    run.wait(1)
    app.puts("0_0", 500)
    app.flushes("0_0")
    run.wait(20)
    assert run.findings(ID) == []


@pytest.mark.parametrize(("guarantee", "hidden"), [("at_least_once", ()), (EOS, ("processing_guarantee",))])
def test_quiet_without_exactly_once(guarantee, hidden):
    """Under at-least-once, and while the guarantee is unknown, nothing is said."""
    run, app = restored(guarantee=guarantee, hidden=hidden)
    app.puts("0_0", 20_000)
    app.flushes("0_0")
    run.wait(20)
    assert run.findings(ID) == []


@pytest.mark.twin_of(ID, "nothing was flushed beyond the checkpoint")
def test_quiet_for_a_clean_close():
    """A clean close flushes and then writes the checkpoint within milliseconds."""
    run, app = restored()
    app.puts("0_0", 500)
    app.closes("0_0", 2499)
    run.wait(20)
    assert run.findings(ID) == []


def test_quiet_for_compaction():
    """A compaction makes new files, but no new data."""
    run, app = restored()
    app.compacts("0_0")
    run.wait(20)
    assert run.findings(ID) == []


def test_clears_when_the_checkpoint_is_written_again():
    """A new checkpoint covers what was flushed."""
    run, app = restored()
    app.puts("0_0", 500)
    app.flushes("0_0")
    run.wait(2)
    assert run.only(ID).status is Status.OPEN
    app.checkpoints("0_0", 2499)
    run.wait(1)
    assert run.only(ID).status is Status.RESOLVED


def test_clears_when_the_task_is_wiped():
    """A wipe removes what could have been trusted."""
    run, app = restored()
    app.puts("0_0", 500)
    app.flushes("0_0")
    run.wait(2)
    app.wipes("0_0")
    run.wait(2)
    assert run.only(ID).status is Status.RESOLVED


def test_stays_after_the_crash():
    """After an unclean end the exposure is still on disk."""
    run, app = restored()
    app.puts("0_0", 500)
    app.flushes("0_0")
    run.wait(2)
    app.crash()
    run.wait(5)
    assert run.only(ID).status is Status.OPEN


@pytest.mark.parametrize(
    ("standbys", "puts", "severity", "missing"),
    [
        (0, 500, Severity.WARNING, ()),
        (1, 500, Severity.INFO, ()),
        (1, 10_000, Severity.INFO, ()),
        (1, 10_001, Severity.WARNING, ()),
        (None, 500, Severity.WARNING, ("num_standby_replicas",)),
        (None, 10_001, Severity.WARNING, ()),
    ],
)
def test_role_decides_how_severe_it_is(standbys, puts, severity, missing):
    """After a checkpoint that moved by more than 10,000 only as many records again prove an active task."""
    verdict = judge(ID, dossier(puts=puts, offset=11_999, now=60, standbys=standbys, later=49))[0]
    assert (verdict.severity, verdict.missing_facts) == (severity, missing)
    assert (verdict.confidence is Confidence.CONFIRMED) == (puts > 10_000)


@pytest.mark.parametrize(
    ("later", "severity"), [(None, Severity.INFO), (20.1, Severity.INFO), (20.2, Severity.WARNING)]
)
def test_standby_that_is_frozen_writes_none(later, severity):
    """Forty seconds without a commit, and without any other sign of life, are no commits that were missed."""
    one = dossier(puts=12_000, offset=11_999, now=60, standbys=1, later=later)
    assert [x.severity for x in judge(ID, one)] == [severity]


def test_sign_of_life_of_another_task():
    """What the process flushes to another task shows that it is at work; what comes just now, only that it goes on."""
    for at_s, severity in ((30, Severity.WARNING), (49.9, Severity.WARNING), (50.1, Severity.INFO)):
        one = dossier(puts=12_000, offset=11_999, now=60, standbys=1)
        other = store([database(puts=5, flushed=[(5, at_s)])], [session(0)])
        one.application.tasks["0_1"] = task(other, task_id="0_1")
        assert [x.severity for x in judge(ID, one)] == [severity]


@pytest.mark.parametrize(
    ("flushed", "killed", "severity"),
    [
        (39.9, 70, Severity.WARNING),  # the brokers were away: nothing to restore, and nothing to flush
        (40, 70, Severity.CRITICAL),
        (60, 70, Severity.CRITICAL),
        (60.1, 70, Severity.WARNING),  # it had been frozen, went on, and was killed
    ],
)
def test_restoration_that_stalled_and_was_killed(flushed, killed, severity):
    """Half a minute at one offset ends a restoration only while the process does something: here it flushes at 20 s."""
    one = dossier(puts=500, offset=11_999, now=killed + 60, later=flushed)
    kept = one.task.stores["s"]
    kept.sessions[-1].released_us, kept.sessions[-1].puts_at_release = at(killed), 2501
    assert [x.severity for x in judge(ID, one)] == [severity]


@pytest.mark.parametrize("standbys", [0, 1, None])
def test_checkpoint_of_an_active_task(standbys):
    """A checkpoint that moved by less than 10,000 and stands ends an active task's restoration, or is of a pause."""
    run, app = restored(standbys=standbys)
    app.puts("0_0", 500)
    app.flushes("0_0")
    run.wait(2)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence, finding.missing_facts) == (
        Severity.WARNING,
        Confidence.SUSPECTED,
        (),
    )


def test_unknown_release_is_only_suspected():
    """From the RocksDB version alone the release is a range, and the finding says possibly."""
    run, app = restored(hidden=("kafka_streams_version",))
    app.puts("0_0", 500)
    app.flushes("0_0")
    run.wait(2)
    finding = run.only(ID)
    assert (finding.affected, finding.confidence) == (Affected.POSSIBLY, Confidence.SUSPECTED)


def test_segment_created_after_the_checkpoint():
    """A windowed store flushes into a segment that is younger than the checkpoint (recorded on 4.0.2)."""
    run, app = restored("4.0.2", stores={"w": WINDOWED})
    app.puts("0_0", 300, segment=60_000)
    app.flushes("0_0")
    run.wait(2)
    assert run.only(ID).severity is Severity.WARNING


def test_one_finding_for_two_stores():
    """Two stores of a task are one exposure; the loudest decides."""
    one = dossier(puts=10, offset=11_999, now=60, standbys=1)
    loud = dossier(puts=12_000, offset=11_999, later=49).task.stores["s"]
    loud.name = "b"
    one.task.stores["b"] = loud
    verdicts = judge(ID, one)
    assert [x.severity for x in verdicts] == [Severity.WARNING]
    assert "store b" in verdicts[0].summary


def dossier(*, puts: int = 500, offset: int = 1999, later: float | None = None, **settings: Any) -> Any:
    """`puts` flushed at 20 s beyond a checkpoint of 10 s; one more put is flushed `later`."""
    more = [] if later is None else [(2001 + puts, later)]
    files = database(puts=2000 + puts, flushed=[(2000, 9), (2000 + puts, 20), *more])
    one = session(0, first=mark(10, offset, 2000))
    return case(task(store([files], [one]), checkpoints=[checkpoint(10, offset)]), **settings)


@pytest.mark.parametrize(
    ("standbys", "release", "offset", "severity"),
    [
        (0, "4.1.2", 1999, Severity.CRITICAL),
        (None, "4.1.2", 1999, Severity.CRITICAL),  # by its checkpoint an active task, whatever is told
        (None, "4.1.2", 11_999, Severity.WARNING),  # its role is assumed
        (1, "4.1.2", 11_999, Severity.INFO),
        (0, None, 1999, Severity.WARNING),  # perhaps not affected
    ],
)
def test_dead_and_not_started_again(standbys, release, offset, severity):
    """A minute after an unclean end the next start still loses nothing if the directory goes first."""
    one = dossier(standbys=standbys, release=release, offset=offset, now=90)
    last = one.task.stores["s"].sessions[-1]
    last.released_us, last.puts_at_release = at(30), 2500
    verdict = judge(ID, one)[0]
    assert (verdict.severity, verdict.confidence) == (severity, Confidence.SUSPECTED)
    assert verdict.next_action.startswith("BEFORE the next start: keep a copy of the task directory app/0_0")
    early = judge(ID, replace(one, now_us=at(89.9)))[0]
    assert early.severity is not Severity.CRITICAL


@pytest.mark.parametrize("standbys", [0, 1, None])
def test_dead_with_more_than_ten_thousand_is_confirmed(standbys):
    """Whatever paused it: a standby or a restoration writes a checkpoint at the next commit after 10,000 records."""
    one = dossier(puts=10_001, later=49, standbys=standbys, now=120)
    last = one.task.stores["s"].sessions[-1]
    last.released_us, last.puts_at_release = at(60), 12_002
    assert [(x.severity, x.confidence) for x in judge(ID, one)] == [(Severity.CRITICAL, Confidence.CONFIRMED)]


@pytest.mark.parametrize("release", ["3.8.1", "3.9.2", "4.1.2", "4.2.1"])
@pytest.mark.parametrize("standbys", [0, 1])
@pytest.mark.parametrize(("paused_at", "then"), [(-4, 100), (-4, 6000), (4999, 1000)])
def test_restoration_or_standby_that_was_paused_is_not_sure(release, standbys, paused_at, then):
    """Paused, resumed, flushed and killed: nothing but committed records was ever on disk. It looks the same."""
    run = Scenario(release, EOS, standbys, stores={"s": TIMESTAMPED}, told={"commit_interval_ms": 100})
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    if paused_at > 0:
        app.puts("0_0", paused_at + 1)
    app.checkpoints("0_0", paused_at)
    run.wait(5)
    app.puts("0_0", then)
    app.flushes("0_0")
    run.wait(2)
    assert run.only(ID).confidence is Confidence.SUSPECTED
    app.crash()
    run.wait(130)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence) == (Severity.CRITICAL, Confidence.SUSPECTED)
    assert "paused" in finding.summary
    assert "uncommitted records may stay in the store" in finding.next_action
    app = run.start()
    app.opens("0_0")
    run.wait(130)
    assert {x.confidence for x in run.loud()} == {Confidence.SUSPECTED}
    assert {x.severity for x in run.loud() if x.detector == "skipped-eos-wipe"} == {Severity.WARNING}


def test_every_segment_that_was_flushed_has_expired():
    """Those that are left hold nothing on disk yet: no time of a flush is known, and nothing breaks."""
    one = dossier()
    one.task.stores["s"].databases[""].flushed = ()
    one.task.stores["s"].retired_puts, one.task.stores["s"].databases[""].puts = 2500, 0
    verdict = judge(ID, one)[0]
    assert (verdict.severity, verdict.opened_at_us) == (Severity.WARNING, at(10))


@pytest.mark.twin_of(ID, "a close or a commit may be about to write the checkpoint")
def test_second_is_counted_from_the_flush():
    """The finding comes exactly one second after the flush, and is dated to it."""
    assert judge(ID, dossier(now=20.999)) == []
    assert (
        judge(ID, dossier(now=21))[0].opened_at_us == dossier().task.stores["s"].databases[""].flushed[-1][1]
    )


@pytest.mark.twin_of(ID, "no checkpoint of it was written since it was opened")
def test_needs_a_checkpoint_of_the_session():
    """One from before the opening does not cover what was put since; without one there is nothing to be trusted."""
    one = dossier()
    one.task.stores["s"].sessions[-1].first = one.task.stores["s"].sessions[-1].last = None
    assert judge(ID, one) == []
    one = dossier()
    one.task.checkpoints[-1].ended_us = one.now_us
    assert judge(ID, one) == []


def test_ignores_the_global_task():
    """Global stores have no transactions."""
    one = dossier()
    one.task.id = "global"
    assert judge(ID, one) == []


def test_counts_up_to_the_release():
    """After the release only what was flushed before it counts."""
    one = dossier()
    ended = one.task.stores["s"].sessions[-1]
    ended.released_us, ended.puts_at_release = one.now_us, 2000
    assert judge(ID, one) == []
    ended.puts_at_release = 2500
    assert severities(ID, one) == [Severity.WARNING]


def test_conflicting_profile_is_not_sure():
    """A release that is possibly affected gives no confirmed finding."""
    assert judge(ID, dossier(release="4.1"))[0].confidence is Confidence.SUSPECTED
    assert judge(ID, dossier(release=None))[0].affected is Affected.POSSIBLY
