"""Detector `orphaned-task`: nobody opens it and no cleaner takes it (KAFKA-20663)."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.inventory.model import Application, ProcessLife, Shape, Walk
from tests.support.scenario import App, Scenario
from tests.support.scenario_case import at, case, database, judge, severities, store, task

ID = "orphaned-task"


def unassigned(release: str = "4.3.0", *, delay: int | None = 10_000, **more) -> tuple[Scenario, App]:
    """Two tasks on disk; after a restart with its start-up pass only one of them is assigned."""
    run = Scenario(release, told={"state_cleanup_delay_ms": delay}, **more)
    app = run.start()
    for task_id in ("0_0", "0_1"):
        app.opens(task_id)
        run.wait(0.5)
        app.puts(task_id, 100)
    run.wait(2)
    app.stops({"0_0": 99, "0_1": 99})
    run.wait(5)
    app = run.start()
    if app.habits.startup_pass:
        app.startup_pass()
    run.wait(3)
    app.opens("0_0")
    run.wait(2)
    return run, app


def test_never_cleaned_on_4_3_0():
    """Free for more than two delays beside a living process: the start-up pass keeps its lock."""
    run, _ = unassigned()
    run.wait(15)
    assert run.findings(ID) == []
    run.wait(80)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status) == (
        Level.EXPOSURE,
        Severity.WARNING,
        Confidence.CONFIRMED,
        Status.OPEN,
    )
    assert (finding.task_id, finding.affected, finding.upstream) == ("0_1", Affected.YES, ("KAFKA-20663",))


@pytest.mark.parametrize("release", ["2.3.1", "2.5.1", "2.8.2", "3.9.2", "4.3.1"])
def test_cleaned_as_it_should_be(release):
    """N8: the cleaner takes it after one delay."""
    run, app = unassigned(release)
    run.wait(12)
    app.cleaner.deletes("0_1")
    run.wait(120)
    assert run.findings(ID) == []


def test_information_on_other_releases():
    """Elsewhere an uncleaned directory is only remarkable."""
    run, _ = unassigned("4.3.1")
    run.wait(120)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence) == (Severity.INFO, Confidence.SUSPECTED)


def test_clears_when_it_is_opened():
    """An assignment ends it."""
    run, app = unassigned()
    run.wait(100)
    app.opens("0_1")
    run.wait(2)
    assert run.only(ID).status is Status.RESOLVED


def test_quiet_after_the_process_ended():
    """Without a process there is no cleaner to expect."""
    run, app = unassigned()
    app.stops({"0_0": 99})
    run.wait(300)
    assert run.findings(ID) == []


def test_needs_the_delay():
    """Without the cleanup delay nothing is said."""
    run, _ = unassigned(delay=None)
    run.wait(300)
    assert run.findings(ID) == []


def dossier(
    *,
    now: float = 100,
    released: float = 10,
    mtime: float = 0,
    lives: bool = True,
    held_sibling: bool = False,
):
    """0_0 was released; the delay is ten seconds: two of them and five seconds are the limit."""
    app = Application("app", exists=True)
    if lives:
        app.lives += (ProcessLife(at(5)),)
    one = task(store([database()]))
    one.released_us, one.mtime_us, one.held = at(released), at(mtime), False
    sibling = task(store([database()]), task_id="0_1")
    sibling.held, sibling.held_since_us = held_sibling, at(40)
    told = {"state_cleanup_delay_ms": 10_000}
    return case(one, sibling, application=app, now=now, release="4.3.0", told=told)


def test_two_delays_and_five_seconds():
    """Counted from the last of release, change and start."""
    assert judge(ID, dossier(now=35)) == []
    assert len(judge(ID, dossier(now=35.1))) == 1
    assert judge(ID, dossier(now=35.1, mtime=11)) == []
    assert judge(ID, dossier(now=30, released=0)) == []
    assert len(judge(ID, dossier(now=30.1, released=0))) == 1


def test_sign_of_life():
    """A held sibling is one, too, since it was held."""
    assert judge(ID, dossier(lives=False)) == []
    assert judge(ID, dossier(lives=False, held_sibling=True, now=65)) == []
    assert len(judge(ID, dossier(lives=False, held_sibling=True, now=65.1))) == 1


def test_what_excludes_it():
    """A walk that goes on, the global task, a held task, no stores, no directory."""
    assert severities(ID, dossier()) == [Severity.WARNING]
    for change in ("walk", "id", "held", "stores", "exists"):
        one = dossier()
        value = {
            "walk": Walk(at(90), at(99), Shape.CLEANER_WALK, held=False),
            "id": "global",
            "held": True,
            "stores": {},
            "exists": False,
        }[change]
        setattr(one.task, change, value)
        assert judge(ID, one) == [], change


def test_dated_to_the_limit():
    """Opened when the limit was reached; the sentence says for how long it has been free, and the delay."""
    verdict = judge(ID, dossier())[0]
    assert verdict.opened_at_us == at(35)
    assert "free for 90 s" in verdict.summary
    assert "delay 10 s" in verdict.summary


def test_release_that_nobody_saw():
    """Without a release seen, the directory's own time and the start count."""
    one = dossier()
    one.task.released_us = None
    assert judge(ID, one)[0].opened_at_us == at(30)
