"""Detector `false-clean-store`: 4.3+, marked clean by a close that did not write its offset (hazard D1)."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.layout.facts import Fact
from tests.support.scenario import App, Scenario
from tests.support.scenario_case import at, case, database, judge, session, severities, store, task
from tests.support.twins import twin

ID = "false-clean-store"
EOS = "exactly_once_v2"


def dirty(
    release: str = "4.3.1", guarantee: str = EOS, standbys: int | None = 0, *, puts: int = 5000, **more
) -> Scenario:
    """Once closed clean at 1999; then uncommitted puts, a dirty close, and a kill before the wipe."""
    run = Scenario(release, guarantee, standbys, **more)
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 2000)
    run.wait(1)
    app.stops({"0_0": 1999})
    run.wait(5)
    app = run.start()
    run.wait(3)
    app.opens("0_0")
    run.wait(1)
    if puts:
        app.puts("0_0", puts)
    app.closes_dirty("0_0")
    app.crash()
    run.wait(5)
    return run


def reopened(run: Scenario) -> App:
    """The next process opens it and trusts the status."""
    app = run.start()
    run.wait(3)
    app.opens("0_0")
    return app


@pytest.mark.parametrize("release", ["4.3.0", "4.3.1"])
def test_next_stored_offset_makes_it_critical(release):
    """Suspected ten seconds after the reopening; worse once the next stored offset is far below the puts."""
    run = dirty(release)
    assert run.findings(ID) == []
    app = reopened(run)
    run.wait(9)
    assert run.findings(ID) == []
    run.wait(3)
    before = run.only(ID)
    assert (before.severity, before.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    app.puts("0_0", 100)
    app.stops({"0_0": 2099})
    run.wait(3)
    after = run.only(ID)
    assert (after.id, after.level, after.severity, after.confidence, after.status) == (
        before.id,
        Level.DAMAGE,
        Severity.CRITICAL,
        Confidence.SUSPECTED,  # it may have been closed in the middle of its restoration
        Status.OPEN,
    )
    assert (after.store, after.affected) == ("s", Affected.YES)
    times = [step.at_us for step in after.evidence]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("flushes_s", "severity", "confidence"),
    [
        ((1, 31), Severity.WARNING, Confidence.SUSPECTED),
        ((1, 31, 62), Severity.CRITICAL, Confidence.CONFIRMED),
    ],
)
def test_data_behind_the_next_offset_proves_it(flushes_s, severity, confidence):
    """Who restores stores an offset at every commit; one flush without may follow a pause, two do not."""
    run = dirty(told={"commit_interval_ms": 10_000})
    app = reopened(run)
    app.puts("0_0", 100)
    app.commits("0_0", 2099)
    since_s = 0
    for at_s in flushes_s:
        run.wait(at_s - since_s)
        since_s = at_s
        app.flushes("0_0")
        app.puts("0_0", 100)
    run.wait(3)
    assert (run.only(ID).severity, run.only(ID).confidence) == (severity, confidence)


@pytest.mark.parametrize(("standbys", "severity"), [(0, Severity.CRITICAL), (1, Severity.WARNING)])
def test_offset_that_the_start_up_pass_puts_back_proves_nothing(standbys, severity):
    """It commits the offset that it read, before anything is restored: as severe as before the start, and no surer."""
    run = dirty(standbys=standbys)
    app = run.start()
    app.startup_pass(1999)
    run.wait(3)
    app.opens("0_0")
    run.wait(30)
    assert (run.only(ID).severity, run.only(ID).confidence) == (severity, Confidence.SUSPECTED)


def test_committed_all_the_same():
    """If the offset advances by as much as was flushed, it stays a suspicion."""
    run = dirty()
    app = reopened(run)
    app.puts("0_0", 5100)
    app.stops({"0_0": 7099})
    run.wait(30)
    assert run.only(ID).severity is Severity.WARNING


@pytest.mark.twin_of(ID, "closed with its offset")
def test_quiet_for_a_clean_close():
    """An orderly close writes its offset between data and status."""
    run = Scenario("4.3.1", EOS)
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 2000)
    run.wait(1)
    app.stops({"0_0": 1999})
    run.wait(5)
    app = reopened(run)
    app.puts("0_0", 100)
    run.wait(5)
    app.stops({"0_0": 2099})
    run.wait(5)
    reopened(run)
    run.wait(30)
    assert run.findings(ID) == []


@pytest.mark.twin_of(ID, "killed open")
def test_quiet_for_a_crash():
    """A kill without a close leaves the status open: the next assignment wipes."""
    run = Scenario("4.3.1", EOS)
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 2000)
    run.wait(1)
    app.stops({"0_0": 1999})
    run.wait(5)
    app = reopened(run)
    app.puts("0_0", 5000)
    app.flushes("0_0")
    run.wait(2)
    app.crash()
    run.wait(5)
    reopened(run)
    run.wait(30)
    assert run.findings(ID) == []


def test_quiet_when_wiped():
    """The wipe that follows at the next start ends the matter."""
    run = dirty()
    app = reopened(run)
    app.wipes("0_0")
    run.wait(30)
    assert run.findings(ID) == []


def test_quiet_without_new_data():
    """A dirty close that flushed nothing but the status marked nothing falsely."""
    run = dirty(puts=0)
    reopened(run)
    run.wait(30)
    assert run.findings(ID) == []


@pytest.mark.parametrize(
    ("release", "guarantee", "hidden"),
    [("4.2.1", EOS, ()), ("4.3.1", "at_least_once", ()), ("4.3.1", EOS, ("processing_guarantee",))],
)
def test_quiet_elsewhere(release, guarantee, hidden):
    """Earlier releases have no status; at-least-once closes like this in good order."""
    run = dirty(release, guarantee, hidden=hidden)
    reopened(run)
    run.wait(30)
    assert run.findings(ID) == []


def test_unknown_role_names_the_missing_setting():
    """Without the standby count, and with few puts, the role is not known."""
    run = dirty(standbys=None)
    reopened(run)
    run.wait(12)
    finding = run.only(ID)
    assert (finding.severity, finding.missing_facts) == (Severity.WARNING, ("num_standby_replicas",))


def test_clears_when_the_store_is_restored_from_empty():
    """Damage ends with the incarnation that it is in."""
    run = dirty()
    app = reopened(run)
    run.wait(12)
    assert run.only(ID).status is Status.OPEN
    app.wipes("0_0")
    run.wait(15)
    assert [x for x in run.findings(ID) if x.status is Status.OPEN] == []


# -- the exact boundary ---------------------------------------------------------------------------------------


def dossier(
    *,
    stored: int | None = None,
    closed: bool = True,
    with_offset: bool | None = False,
    puts: int = 7000,
    **settings,
):
    """Opened with 2,000 puts at stored offset 1999; closed at 20 s with `puts`; opened again at 30 s."""
    before = session(10, 20, puts=puts, puts_at_open=2000)
    before.closed, before.closed_with_offset, before.stored_offset_at_open = closed, with_offset, 1999
    before.uncovered_puts, before.covering_offset = max(puts - 2000, 0), 1999
    after = session(30)
    after.stored_offset = stored
    one = store([database(puts=puts)], [before, after])
    return case(task(one), **{"release": "4.3.1", **settings})


def test_stored_offset_against_the_puts():
    """Fewer offsets than flushed puts, less the status and position of one opening, are proof; as many are not."""
    assert severities(ID, dossier(stored=1999 + 4995)) == [Severity.CRITICAL]
    assert severities(ID, dossier(stored=1999 + 4996)) == [Severity.WARNING]


def test_start_up_passes_are_no_data():
    """Each opening and close rewrites the status: what may be that is no proof."""
    one = dossier(stored=1999 + 4995)
    one.task.stores["s"].databases[""].reopened_us = (at(12),)
    assert severities(ID, one) == [Severity.WARNING]
    one = dossier(stored=1999)
    one.task.stores["s"].databases[""].all_reopens = False
    assert severities(ID, one) == [Severity.WARNING]


def test_offset_whose_order_a_compaction_zeroed():
    """Then commits may have put offsets among the data: ten a second, three entries each, in ten seconds."""
    one = dossier(stored=1999 + 4595)
    one.task.stores["s"].sessions[0].uncovered_puts = None
    assert severities(ID, one) == [Severity.CRITICAL]
    one.task.stores["s"].sessions[1].stored_offset = 1999 + 4700
    assert severities(ID, one) == [Severity.WARNING]


def test_offsets_that_were_stored_before_a_compaction():
    """Puts since the opening are compared with the offset of that time, not with one that was stored since."""
    one = dossier(stored=1999 + 4900)
    before = one.task.stores["s"].sessions[0]
    before.uncovered_puts, before.covering_offset = None, 1999 + 4900
    assert severities(ID, one) == [Severity.WARNING]


def test_versioned_store():
    """A store that may put three times a record needs a third of the offsets to cover its puts."""
    one = dossier(stored=1999 + 1700)
    one.task.stores["s"].databases[""].families = ("default", "offsets")
    assert severities(ID, one) == [Severity.WARNING]


def test_chain_ends_with_the_next_stored_offset():
    """It is as old as the look, or as the release; while it is not known, the chain ends with the reopening."""
    for stored, released, last in ((2099, 60, 60), (2099, None, 100), (None, None, None)):
        one = dossier(stored=stored)
        one.task.stores["s"].sessions[1].released_us = None if released is None else at(released)
        (verdict,) = judge(ID, one)
        times = [step.at_us for step in verdict.evidence]
        assert times == [at(10), at(20), at(30), *([] if last is None else [at(last)])]
        assert ("next stored offset: 2099" in verdict.evidence[-1].what) == (stored is not None)
        assert verdict.subject == f"close@{at(20)}"


def test_known_role_asks_for_nothing():
    """Without standbys every task is active."""
    assert judge(ID, dossier(standbys=0))[0].missing_facts == ()
    assert judge(ID, dossier(standbys=1))[0].missing_facts == ("num_standby_replicas",)


@pytest.mark.parametrize(
    ("closed", "with_offset", "puts"),
    [
        twin(ID, "killed open", False, False, 7000),
        twin(ID, "held too briefly to tell how it ended", None, False, 7000),
        twin(ID, "closed with its offset", True, True, 7000),
        twin(ID, "a store without a changelog", True, None, 7000),
        twin(ID, "nothing was flushed before the close", True, False, 2000),
    ],
)
def test_needs_a_close_without_an_offset_over_new_data(closed, with_offset, puts):
    """Nothing was marked falsely."""
    assert judge(ID, dossier(closed=closed, with_offset=with_offset, puts=puts)) == []


def test_other_incarnation():
    """The store that was marked must be the one that is open."""
    one = dossier()
    one.task.stores["s"].sessions[1].identities = frozenset({"identity-2"})
    assert judge(ID, one) == []
    gone = dossier()
    gone.task.stores["s"].databases[""].identity = "identity-2"
    assert judge(ID, gone) == []


def test_many_puts_prove_the_role():
    """More than 10,000 puts without a stored offset are no standby's, once a commit was due for sure."""
    for puts, earlier_us, missing in ((12_000, 200_000, 1), (12_001, 199_999, 1), (12_001, 200_000, 0)):
        one = dossier(standbys=None, puts=puts)
        one.task.stores["s"].sessions[0].opened_us -= earlier_us
        assert judge(ID, one)[0].missing_facts == ("num_standby_replicas",) * missing


def test_releases_that_may_have_the_status():
    """An unknown release is judged if the disk has a status; one without it is not."""
    assert dossier(release="4.2.1").says(Fact.STATUS_MARKER).value == "no"
    assert judge(ID, dossier(release="4.2.1")) == []
    assert judge(ID, dossier(release=None))[0].affected is Affected.POSSIBLY


def test_names_the_incarnation_and_the_issue():
    """The finding is dated to the reopening; damage ends with the identity that it names."""
    verdict = judge(ID, dossier(stored=2099))[0]
    assert (verdict.store, verdict.identity, verdict.opened_at_us) == ("s", "identity-1", at(30))
    assert verdict.affected is Affected.YES
    assert "never committed" in verdict.summary
    assert "perhaps never committed" in judge(ID, dossier())[0].summary


def test_every_close_is_judged():
    """A good close does not hide the false one after it."""
    one = dossier()
    good = session(0, 9, puts=2000)
    good.closed = good.closed_with_offset = True
    one.task.stores["s"].sessions = (good, *one.task.stores["s"].sessions)
    one.task.stores = {"a": store(name="a"), **one.task.stores}
    assert [verdict.opened_at_us for verdict in judge(ID, one)] == [at(30)]
