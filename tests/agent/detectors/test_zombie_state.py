"""Detector `zombie-state`: state reused after its tombstones expired (KAFKA-19943)."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity
from tests.support.scenario import Scenario
from tests.support.scenario_case import at, case, database, judge, session, severities, store, task

ID = "zombie-state"


def idle(
    release: str = "3.9.2",
    *,
    seconds: float = 43,
    retention: int | None = 10_000,
    wipe: bool = False,
) -> Scenario:
    """A task is closed clean, lies for `seconds`, and is opened again."""
    told = {} if retention is None else {"delete_retention_ms": retention}
    run = Scenario(release, "exactly_once_v2" if wipe else "at_least_once", told=told)
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 1000)
    if app.habits.offsets_in_store:
        app.commits("0_0", 999)
    run.wait(2)
    app.stops({"0_0": 999})
    run.wait(seconds)
    app = run.start()
    app.opens("0_0")
    if wipe:
        app.wipes("0_0")
    run.wait(15)
    return run


@pytest.mark.parametrize("release", ["2.0.1", "2.3.1", "2.8.2", "3.9.2", "4.1.2", "4.3.1"])
def test_idle_for_longer_than_tombstones_live(release):
    """Unheld for 43 s with a retention of 10 s, then trusted: suspected."""
    finding = idle(release).only(ID)
    assert (finding.level, finding.severity, finding.confidence) == (
        Level.EXPOSURE,
        Severity.WARNING,
        Confidence.SUSPECTED,
    )
    assert (finding.task_id, finding.affected) == ("0_0", Affected.YES)


@pytest.mark.twin_of(ID, "tombstones of that time still live")
def test_short_restart():
    """N6: a restart of seconds is no zombie."""
    assert idle(seconds=5).findings(ID) == []


def test_quiet_store_that_is_held():
    """A store without writes that is held all the time is not idle."""
    run = Scenario("3.9.2", told={"delete_retention_ms": 10_000})
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 1000)
    app.checkpoints("0_0", 999)
    run.wait(300)
    app.stops({"0_0": 999})
    run.wait(3)
    app = run.start()
    app.opens("0_0")
    run.wait(15)
    assert run.findings(ID) == []


def test_needs_the_retention():
    """Without delete.retention.ms nothing is said."""
    assert idle(retention=None).findings(ID) == []


def test_wiped_right_after_the_opening():
    """An opening that ends in a wipe within milliseconds (offset out of range) brings no zombie back."""
    assert idle(wipe=True).findings(ID) == []


def dossier(
    *,
    gap: float = 10.1,
    offset: int | None = 999,
    stored: int | None = None,
    release: str = "3.9.2",
    created: bool = False,
    wiped: bool = False,
):
    """Released at 20 s, opened `gap` seconds later; tombstones live ten seconds."""
    after = session(20 + gap, offset_at_open=offset, created=created)
    after.wiped, after.stored_offset_at_open = wiped, stored
    one = store([database()], [session(0, 20), after])
    return case(task(one), release=release, told={"delete_retention_ms": 10_000})


@pytest.mark.twin_of(ID, "its session made it anew")
@pytest.mark.twin_of(ID, "no offset was trusted")
def test_boundaries():
    """Longer than the retention, at a real offset, on the same store that was not recreated."""
    assert severities(ID, dossier()) == [Severity.WARNING]
    assert judge(ID, dossier(gap=10)) == []
    assert judge(ID, dossier(offset=None)) == []
    assert judge(ID, dossier(offset=0)) == []
    assert (
        judge(ID, dossier(offset=None, release="4.3.1")) == []
    )  # a store without a changelog has no tombstones
    assert len(judge(ID, dossier(offset=None, stored=999, release="4.3.1"))) == 1
    assert judge(ID, dossier(offset=None, stored=999)) == []
    assert len(judge(ID, dossier(release="4.3.1"))) == 1  # the file that 4.2 left
    assert judge(ID, dossier(created=True)) == []
    assert judge(ID, dossier(wiped=True)) == []


def test_a_windowed_store_says_nothing_for_the_others():
    """It has no tombstones to lose; the one behind it has."""
    one = dossier()
    assert one.task is not None
    one.task.stores = {"a": store([database(segment="a.0")], name="a", segmented=True), **one.task.stores}
    (verdict,) = judge(ID, one)
    assert verdict.store == "s"


def test_other_incarnation():
    """A store that was replaced meanwhile is not the old one."""
    one = dossier()
    one.task.stores["s"].sessions[1].identities = frozenset({"identity-2"})
    assert judge(ID, one) == []
    gone = dossier()
    gone.task.stores["s"].databases[""].identity = "identity-2"
    assert judge(ID, gone) == []


def test_chain():
    """From the release to the opening, with the times that decided."""
    verdict = judge(ID, dossier(gap=12))[0]
    assert [step.at_us for step in verdict.evidence] == [at(20), at(32)]
    assert (verdict.opened_at_us, verdict.store) == (at(32), "s")
    assert "unused for 12 s" in verdict.summary
    assert "(10 s)" in verdict.summary
    assert "999" in verdict.evidence[1].what


def test_one_store_answers_for_the_task():
    """A store that was not idle does not hide another; two idle ones are told once."""
    for gap, said in ((5, "b"), (12, "a")):
        one = dossier()
        idle_one = store([database()], [session(0, 20), session(32, offset_at_open=999)], name="b")
        other = store([database()], [session(0, 20), session(20 + gap, offset_at_open=999)], name="a")
        one.task.stores = {"a": other, "b": idle_one}
        assert [x.store for x in judge(ID, one)] == [said]
