"""Detector `frozen-checkpoint`: at-least-once, data is flushed and the checkpoint does not move."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.inventory.blindness import note_blind
from tests.support.scenario import TIMESTAMPED, App, Scenario
from tests.support.scenario_case import (
    PLAIN,
    at,
    case,
    database,
    judge,
    mark,
    session,
    severities,
    store,
    task,
)

ID = "frozen-checkpoint"


def running(
    release: str = "3.9.2", guarantee: str = "at_least_once", *, commit: int | None = 1000, **more
) -> tuple[Scenario, App]:
    """A task whose checkpoint is up to date."""
    run = Scenario(release, guarantee, told={"commit_interval_ms": commit}, stores={"s": TIMESTAMPED}, **more)
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 1000)
    app.checkpoints("0_0", 999)
    run.wait(2)
    return run, app


@pytest.mark.parametrize("release", ["2.8.2", "3.4.1", "3.9.2", "4.2.1"])
def test_more_than_ten_thousand_puts(release):
    """10,001 flushed puts and five commit intervals without a checkpoint are a warning; a checkpoint clears it."""
    run, app = running(release)
    app.puts("0_0", 10_001)
    app.flushes("0_0")
    run.wait(4)
    assert run.findings(ID) == []
    run.wait(8)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status) == (
        Level.EXPOSURE,
        Severity.WARNING,
        Confidence.CONFIRMED,
        Status.OPEN,
    )
    assert "10001 puts" in finding.summary
    app.checkpoints("0_0", 11_000)
    run.wait(2)
    assert run.only(ID).status is Status.RESOLVED


@pytest.mark.twin_of(ID, "at most 10,000 records were flushed since")
def test_ten_thousand_rule():
    """Up to 10,000 offsets Streams itself writes nothing."""
    run, app = running()
    app.puts("0_0", 10_000)
    app.flushes("0_0")
    run.wait(300)
    assert run.findings(ID) == []


def test_compaction_is_no_flush():
    """Compacted files carry no new puts."""
    run, app = running()
    app.puts("0_0", 9000)
    app.flushes("0_0")
    app.compacts("0_0")
    run.wait(300)
    assert run.findings(ID) == []


@pytest.mark.parametrize("release", ["2.8.2", "3.4.1", "3.9.2"])
@pytest.mark.twin_of(ID, "no checkpoint in this session yet: a long restoration")
def test_long_restoration_without_a_checkpoint(release):
    """KAFKA-12634: up to 3.4 a restoration writes no checkpoint, however long it is."""
    run = Scenario(release, told={"commit_interval_ms": 1000})
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 100_000)
    app.flushes("0_0")
    run.wait(300)
    assert run.findings(ID) == []


@pytest.mark.parametrize(
    ("release", "guarantee", "hidden"),
    [
        ("3.9.2", "exactly_once_v2", ()),
        ("3.9.2", "at_least_once", ("processing_guarantee",)),
        ("4.3.1", "at_least_once", ()),
    ],
)
def test_quiet_elsewhere(release, guarantee, hidden):
    """Exactly-once does not checkpoint while it runs; 4.3 has no checkpoint; unknown decides nothing."""
    run, app = running(release, guarantee, hidden=hidden)
    app.puts("0_0", 50_000)
    app.flushes("0_0")
    run.wait(300)
    assert run.findings(ID) == []


def test_quiet_after_the_release():
    """A store that nobody holds is not expected to be checkpointed."""
    run, app = running()
    app.puts("0_0", 50_000)
    app.flushes("0_0")
    app.crash()
    run.wait(300)
    assert run.findings(ID) == []


def dossier(
    *,
    puts: int = 11_001,
    flushed: float = 20,
    now: float = 100,
    commit: int | None = 2000,
    released: float | None = None,
    marked: bool = True,
    release: str | None = "3.9.2",
    standbys: int | None = 0,
):
    """Checkpoint at 10 s with 1,000 puts; `puts` on disk at `flushed`."""
    one = session(0, released, first=mark(10, 999, 1000) if marked else None)
    files = database(puts=puts, flushed=[(1000, 9), (puts, flushed)])
    told = {} if commit is None else {"commit_interval_ms": commit}
    return case(
        task(store([files], [one])),
        now=now,
        release=release,
        guarantee="at_least_once",
        standbys=standbys,
        told=told,
    )


def test_boundaries():
    """More than 10,000 puts, and more than five commit intervals."""
    assert judge(ID, dossier(puts=11_000)) == []
    assert severities(ID, dossier()) == [Severity.WARNING]
    assert judge(ID, dossier(now=30)) == []
    assert len(judge(ID, dossier(now=30.1))) == 1
    assert judge(ID, dossier(released=50)) == []
    assert judge(ID, dossier(marked=False)) == []


@pytest.mark.twin_of(ID, "fewer than five commits were missed")
def test_default_commit_interval():
    """Without the setting the default of thirty seconds counts."""
    assert judge(ID, dossier(commit=None, now=170)) == []
    assert len(judge(ID, dossier(commit=None, now=170.1))) == 1


def test_assumed_interval_is_only_suspected():
    """A default that nobody confirmed decides nothing for sure, and is named."""
    verdict = judge(ID, dossier(commit=None, now=171))[0]
    assert verdict.confidence is Confidence.SUSPECTED
    assert "assuming the default commit.interval.ms=30000" in verdict.evidence[-1].what


def test_standbys_that_are_not_configured():
    """Up to 3.4 a copy that becomes active restores without a checkpoint: sure only where there is none."""
    verdict = judge(ID, dossier(release="3.4.1", standbys=None))[0]
    assert verdict.confidence is Confidence.SUSPECTED
    assert judge(ID, dossier(release="3.4.1", standbys=0))[0].confidence is Confidence.CONFIRMED


def test_two_puts_a_record():
    """Ten thousand updates of a versioned store are up to three times as many puts."""
    one = dossier(puts=31_100)
    one.task.stores["s"].databases[""].families = PLAIN
    assert judge(ID, one) == []
    one = dossier(puts=31_101)
    one.task.stores["s"].databases[""].families = PLAIN
    assert len(judge(ID, one)) == 1


def test_standby_that_became_active():
    """Up to 3.4 a restoration writes no checkpoint, and with standbys it may go on in a session that has one."""
    assert severities(ID, dossier(release="3.4.1", standbys=1)) == [Severity.INFO]
    assert severities(ID, dossier(release="3.4.1", standbys=0)) == [Severity.WARNING]
    assert severities(ID, dossier(release="3.9.2", standbys=1)) == [Severity.WARNING]


def test_release_with_offsets_in_the_store():
    """From 4.3 on `.checkpoint` says nothing; an unknown release is judged by what is on disk."""
    assert judge(ID, dossier(release="4.3.1")) == []
    assert severities(ID, dossier(release=None)) == [Severity.WARNING]


def test_flush_at_the_moment_of_the_checkpoint():
    """A checkpoint covers the flush that was made for it."""
    assert judge(ID, dossier(flushed=10)) == []
    assert judge(ID, dossier(flushed=10.1))[0].opened_at_us == at(10.1)


def test_clock_that_was_set_forward():
    """By an hour, two seconds after the flush: no commit was missed yet; ten seconds later five were."""
    for now_s, said in ((3632, 0), (3632.1, 1)):
        one = dossier(flushed=22, now=now_s)
        note_blind(one.inventory, at(24), at(3624), "clock-step")
        assert len(judge(ID, one)) == said


def test_chain_of_the_verdict():
    """The last checkpoint, then the flush that it does not cover; opened at that flush."""
    verdict = judge(ID, dossier())[0]
    assert verdict.opened_at_us == at(20)
    assert [step.at_us for step in verdict.evidence] == [at(10), at(20), at(20)]
    assert verdict.affected is Affected.NO


def test_other_stores_hide_nothing():
    """One that is free, and one without a checkpoint in its session, stand before two frozen ones, told once."""
    one = dossier()
    others = {name: dossier(marked=name == "c").task.stores["s"] for name in "bc"}
    one.task.stores = {"a": store(name="a"), "b": others["b"], **one.task.stores, "c": others["c"]}
    (verdict,) = judge(ID, one)
    assert "store s" in verdict.summary


def test_due_from_the_flush_that_crossed_the_limit():
    """A flush below 10,000 puts makes nothing due, however old; five intervals count from the one that crosses it."""
    one = dossier(now=100)
    files = one.task.stores["s"].databases[""]
    files.flushed = ()
    files.flushed += ((1000, at(9)), (10_000, at(20)), (11_001, at(90)))
    assert judge(ID, one) == []
    assert judge(ID, replace(one, now_us=at(100.1)))[0].opened_at_us == at(90)
