"""Detector `orphaned-task`: nobody opens it and no cleaner takes it (KAFKA-20663)."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.inventory.blindness import note_blind
from agent.inventory.model import Application, Deletion, ProcessLife, Shape
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
    assert "while a task of this instance restores, it takes nothing" in finding.summary


def test_without_the_release_it_names_the_fact():
    """Only 4.3.0 keeps the lock: who does not say the release gets no warning, but is told what would decide."""
    run, _ = unassigned(hidden=("kafka_streams_version",))
    run.wait(100)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence) == (Severity.INFO, Confidence.UNKNOWN)
    assert finding.missing_facts == ("kafka_streams_version",)


def test_a_restoration_holds_the_cleaner_up():
    """A sibling that flushes and has stored no offset yet may restore, for hours: no warning while it does."""
    run, app = unassigned()
    app.puts("0_0", 500)
    app.flushes("0_0")
    run.wait(100)
    assert run.only(ID).severity is Severity.INFO


def test_a_task_that_moved_away_is_not_locked():
    """4.3.0 as well: an assignment takes the lock over from the start-up pass and gives it back."""
    run, app = unassigned()
    app.opens("0_1")
    run.wait(2)
    app.closes("0_1", 99)
    run.wait(100)
    assert run.only(ID).severity is Severity.INFO


def test_clears_when_it_is_opened():
    """An assignment ends it."""
    run, app = unassigned()
    run.wait(100)
    app.opens("0_1")
    run.wait(2)
    assert run.only(ID).status is Status.RESOLVED


@pytest.mark.twin_of(ID, "its process ended: no cleaner is to be expected")
def test_quiet_after_the_process_ended():
    """Without a process there is no cleaner to expect."""
    run, app = unassigned()
    app.stops({"0_0": 99})
    run.wait(300)
    assert run.findings(ID) == []


def test_assumed_delay():
    """Behind the lock of the start-up pass no delay ends: suspected half a minute later, whatever the delay is."""
    run, _ = unassigned(delay=None)
    run.wait(25)
    assert run.findings(ID) == []
    run.wait(10)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    assert "cleanup delay" not in finding.summary
    assert "assuming the default state.cleanup.delay.ms=600000" in finding.evidence[-1].what


def dossier(
    *,
    now: float = 100,
    released: float = 10,
    mtime: float = 0,
    lives: bool = True,
    held_sibling: bool = False,
    opened: tuple[float, ...] = (1, 6),
):
    """0_0 was released; the delay is ten seconds: two of them and five seconds are the limit."""
    app = Application("app", exists=True)
    if lives:
        app.lives += (ProcessLife(at(5)),)
    before = database()
    before.reopened_us = tuple(at(x) for x in opened)
    one = task(store([before]))
    one.released_us, one.mtime_us, one.held = at(released), at(mtime), False
    sibling = task(store([database()]), task_id="0_1")
    sibling.held, sibling.held_since_us = held_sibling, at(40)
    app.task_ever_held = held_sibling
    told = {"state_cleanup_delay_ms": 10_000}
    return case(one, sibling, application=app, now=now, release="4.3.0", told=told)


def test_two_delays_and_five_seconds():
    """Counted from the last of release, change and start."""
    assert judge(ID, dossier(now=35)) == []
    assert len(judge(ID, dossier(now=35.1))) == 1
    assert judge(ID, dossier(now=35.1, mtime=11)) == []
    assert judge(ID, dossier(now=30, released=0)) == []
    assert len(judge(ID, dossier(now=30.1, released=0))) == 1


def test_time_that_the_clock_was_set_by():
    """Set forward by an hour, it made no delay pass."""
    for now, said in ((3635, 0), (3635.1, 1)):
        one = dossier(now=now)
        note_blind(one.inventory, at(20), at(3620), "clock-step")
        assert len(judge(ID, one)) == said


def test_sign_of_life():
    """A held sibling is one, too, since it was held."""
    assert judge(ID, dossier(lives=False)) == []
    assert judge(ID, dossier(lives=False, held_sibling=True, now=65)) == []
    assert len(judge(ID, dossier(lives=False, held_sibling=True, now=65.1))) == 1


@pytest.mark.parametrize(
    ("opened", "severity"),
    [
        ((6,), Severity.WARNING),
        ((1, 2, 4.1), Severity.WARNING),
        ((6, 9), Severity.INFO),
        ((1, 2), Severity.INFO),
        ((), Severity.INFO),
    ],
)
def test_opened_once_by_this_process(opened, severity):
    """By the pass alone: exactly one opening since the process started, a second before it was seen at the earliest."""
    assert severities(ID, dossier(opened=opened)) == [severity]


def test_logs_that_are_not_kept_prove_nothing():
    """Where RocksDB keeps no old logs, openings cannot be counted; without a start that was seen, neither."""
    one = dossier()
    one.task.stores["s"].databases[""].all_reopens = False
    assert severities(ID, one) == [Severity.INFO]
    assert severities(ID, dossier(lives=False, held_sibling=True)) == [Severity.INFO]


@pytest.mark.twin_of(ID, "a cleaner is at work on it")
def test_what_excludes_it():
    """A walk that goes on, the global task, a held task, no stores, no directory."""
    assert severities(ID, dossier()) == [Severity.WARNING]
    for change in ("walk", "id", "held", "stores", "exists"):
        one = dossier()
        value = {
            "walk": Deletion(at(90), at(99), Shape.CLEANER_WALK, held=False),
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


def test_release_that_no_one_saw():
    """Without a release seen, the directory's own time and the start count."""
    one = dossier()
    one.task.released_us = None
    assert judge(ID, one)[0].opened_at_us == at(30)
