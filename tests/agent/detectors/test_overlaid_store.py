"""Detector `overlaid-store`: the changelog replayed over old files (N22, D3, D4)."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from tests.support.scenario import Scenario
from tests.support.scenario_case import (
    at,
    case,
    checkpoint,
    database,
    judge,
    session,
    severities,
    store,
    task,
)

ID = "overlaid-store"


def without_offset(
    release: str = "3.9.2", *, idle: float = 5, offset: int | None = None, told=None
) -> Scenario:
    """A store with 3,000 puts is opened again `idle` seconds later; its entry is gone, or `offset`."""
    run = Scenario(release, told=told)
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 3000)
    app.checkpoints("0_0", 2999)
    run.wait(1)
    if offset is None:
        run.world.play("unlink", "app/0_0/.checkpoint")
    else:
        app.checkpoints("0_0", offset)
    run.wait(1)
    app.crash()
    run.wait(idle)
    app = run.start()
    run.wait(1)
    app.opens("0_0")
    app.restores("0_0", 3000, puts=3000)
    return run


@pytest.mark.parametrize("release", ["2.6.2", "2.8.2", "3.4.1", "3.9.2", "4.2.1"])
@pytest.mark.parametrize("offset", [None, -4])
def test_replay_from_the_start_is_information(release, offset):
    """No offset in force over files with data: told as information ten seconds later, or at a checkpoint."""
    run = without_offset(release, offset=offset)
    run.wait(5)
    writes_at_restore_end = release in ("3.9.2", "4.2.1")
    assert len(run.findings(ID)) == (1 if writes_at_restore_end else 0)
    run.wait(10)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status) == (
        Level.EXPOSURE,
        Severity.INFO,
        Confidence.CONFIRMED,
        Status.RESOLVED,
    )
    assert "3000 puts" in finding.summary


def test_expired_tombstones_make_it_a_warning():
    """After more downtime than tombstones live, deleted keys may be back."""
    run = without_offset(idle=90, told={"delete_retention_ms": 60_000})
    run.wait(20)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.SUSPECTED)


def test_tombstones_that_still_live():
    """With less downtime it stays information."""
    run = without_offset(idle=30, told={"delete_retention_ms": 60_000})
    run.wait(20)
    assert run.only(ID).severity is Severity.INFO


@pytest.mark.twin_of(ID, "it continues from its offset")
def test_quiet_with_an_offset_in_force():
    """An ordinary restart continues from its offset."""
    run = without_offset(offset=2999)
    run.wait(30)
    assert run.findings(ID) == []


def test_quiet_for_a_wipe():
    """A wiped store has no old files."""
    run = Scenario("3.9.2", "exactly_once_v2")
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 3000)
    app.flushes("0_0")
    run.wait(1)
    app.wipes("0_0")
    run.wait(30)
    assert run.findings(ID) == []


def dossier(
    *,
    idle: float = 10,
    puts: int = 3000,
    offset: int | None = None,
    now: float = 100,
    retention: int | None = 10_000,
    release: str = "3.9.2",
):
    """Released at 20 s with `puts`, opened `idle` seconds later with `offset` in force."""
    before = session(0, 20, puts=puts)
    after = session(20 + idle, offset_at_open=offset)
    told = {} if retention is None else {"delete_retention_ms": retention}
    return case(task(store([database(puts=puts)], [before, after])), release=release, told=told, now=now)


@pytest.mark.twin_of(ID, "nothing was in it")
def test_boundaries():
    """Retention is exceeded, not met; ten seconds settle it; an empty store is not overlaid."""
    assert severities(ID, dossier(idle=10)) == [Severity.INFO]
    assert severities(ID, dossier(idle=10.1)) == [Severity.WARNING]
    assert severities(ID, dossier(idle=10.1, retention=None)) == [Severity.INFO]
    assert judge(ID, dossier(now=39.9)) == []
    assert len(judge(ID, dossier(now=40))) == 1
    assert judge(ID, dossier(puts=0)) == []
    assert len(judge(ID, dossier(puts=1))) == 1
    assert judge(ID, dossier(offset=0)) == []
    assert len(judge(ID, dossier(offset=-4))) == 1


@pytest.mark.twin_of(ID, "its session made it anew")
def test_new_stores_are_not_overlaid():
    """A store that this session made, or wiped, holds nothing old."""
    for change in ("created", "wiped"):
        one = dossier()
        setattr(one.task.stores["s"].sessions[1], change, True)
        assert judge(ID, one) == []


@pytest.mark.twin_of(ID, "no changelog of its own: checkpoints never name it")
def test_stores_that_no_checkpoint_names():
    """The checkpoints of the task name another store, and not this one."""
    one = dossier()
    one.task.checkpoints = (checkpoint(15, 3000, name="other"),)
    assert judge(ID, one) == []


def test_other_incarnation():
    """The files must be those of before, and still be there."""
    one = dossier()
    one.task.stores["s"].sessions[1].identities = frozenset({"identity-2"})
    assert judge(ID, one) == []
    gone = dossier()
    gone.task.stores["s"].databases[""].identity = "identity-2"
    assert judge(ID, gone) == []


@pytest.mark.parametrize("release", [None, "4.3.1"])
def test_offsets_in_the_store(release):
    """Where the store may hold its own offset, a missing checkpoint says nothing."""
    before, after = session(0, 20, puts=3000), session(30)
    assert judge(ID, case(task(store([database(puts=3000)], [before, after])), release=release)) == []


def test_chain_of_the_verdict():
    """Released with its puts, opened again without an offset; the opening is the event."""
    verdict = judge(ID, dossier())[0]
    assert [step.at_us for step in verdict.evidence] == [at(20), at(30)]
    assert "3000 puts" in verdict.evidence[0].what
    assert "10 s later" in verdict.evidence[1].what
    assert (verdict.opened_at_us, verdict.store, verdict.identity) == (at(30), "s", "identity-1")


@pytest.mark.parametrize(("release", "affected"), [("2.5.1", Affected.NO), ("3.9.2", Affected.YES)])
def test_releases_that_replay_over_old_files(release, affected):
    """From 2.6 on nothing is wiped under at-least-once; before, it takes a crash."""
    one = dossier(release=release)
    assert judge(ID, one)[0].affected is affected


def test_every_reopening_is_an_event():
    """A crash loop overlays again and again; each opening is told once."""
    one = dossier()
    store = one.task.stores["s"]
    store.sessions[-1].released_us, store.sessions[-1].puts_at_release = at(50), 3500
    store.sessions += (session(55),)
    first, second = judge(ID, one)
    assert (first.opened_at_us, second.opened_at_us) == (at(30), at(55))
    assert [step.at_us for step in second.evidence] == [at(50), at(55)]
    assert "5.0 s later" in second.evidence[1].what
