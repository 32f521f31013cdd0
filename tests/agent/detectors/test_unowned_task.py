"""Detector `unowned-task`: nobody holds the directory while the process lives (KAFKA-8187 stage 1)."""

from __future__ import annotations

import pytest

from agent.contract.codec import moment
from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.inventory.blindness import note_blind
from tests.support.scenario import App, Scenario
from tests.support.scenario_case import at, case, database, judge, store, task

ID = "unowned-task"


def released(release: str, standbys: int | None = 1, **more) -> tuple[Scenario, App]:
    """Two tasks; one is let go while the other works on."""
    run = Scenario(release, "at_least_once", standbys, **more)
    app = run.start()
    for task_id in ("0_0", "0_1"):
        app.opens(task_id)
    run.wait(1)
    for task_id in ("0_0", "0_1"):
        app.puts(task_id, 500)
        app.checkpoints(task_id, 500)
    run.wait(10)
    app.closes("0_1", 500)
    return run, app


@pytest.mark.parametrize("release", ["2.0.1", "2.1.1", "2.2.1"])
def test_suspects_an_orphaned_standby(release):
    """Five seconds without a holder beside a working sibling are a suspicion, with the cleaner's time."""
    run, _ = released(release, told={"state_cleanup_delay_ms": 20_000})
    run.wait(4)
    assert run.findings(ID) == []
    run.wait(8)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence) == (
        Level.EXPOSURE,
        Severity.WARNING,
        Confidence.SUSPECTED,
    )
    assert (finding.task_id, finding.affected, finding.upstream) == ("0_1", Affected.YES, ("KAFKA-8187",))
    assert "the cleaner may take it" in finding.summary


def test_clears_when_it_is_taken_again():
    """A new holder ends the suspicion."""
    run, app = released("2.1.1")
    run.wait(10)
    assert run.only(ID).status is Status.OPEN
    app.opens("0_1")
    run.wait(2)
    assert run.only(ID).status is Status.RESOLVED


def test_clears_when_it_is_deleted():
    """After the cleaner there is no directory to lose."""
    run, app = released("2.1.1")
    run.wait(10)
    app.cleaner.deletes("0_1")
    run.wait(2)
    assert run.only(ID).status is Status.RESOLVED


@pytest.mark.parametrize("release", ["2.2.2", "2.3.1", "2.8.2", "3.9.2", "4.1.2"])
def test_ordinary_move_on_fixed_releases(release):
    """N7: on later releases this is a task that moved away."""
    run, _ = released(release)
    run.wait(120)
    assert run.findings(ID) == []


def test_needs_standbys():
    """Without standbys there is none to orphan; not told, it is assumed so, and said for whoever knows better."""
    run, _ = released("2.1.1", 0)
    run.wait(60)
    assert run.findings(ID) == []
    run, _ = released("2.1.1", None)
    run.wait(60)
    finding = run.only(ID)
    assert (finding.severity, finding.missing_facts) == (Severity.INFO, ("num_standby_replicas",))
    assert "assuming the default num.standby.replicas=0" in finding.evidence[-1].what


def test_hand_over_between_threads():
    """Another thread takes the lock within milliseconds."""
    run, app = released("2.1.1")
    app.opens("0_1")
    run.wait(60)
    assert run.findings(ID) == []


@pytest.mark.twin_of(ID, "its process ended, or has just begun to take its tasks")
def test_process_that_ended():
    """A stopped process holds nothing: that is no orphan."""
    run, app = released("2.1.1")
    app.stops({"0_0": 500})
    run.wait(120)
    assert run.findings(ID) == []


def test_cleaner_is_a_sign_of_life():
    """The cleaner's own lock probes prove that the process lives, even where it holds no other task."""
    run, app = released("2.1.1")
    app.closes("0_0", 500)
    run.wait(20)
    assert run.findings(ID) == []
    app.cleaner.probes("0_1")
    run.wait(12)
    assert run.findings(ID) != []


def dossier(*, released: float | None = 10, held: bool | None = False, now: float = 100, **settings):
    """0_0 was let go; 0_1 is held."""
    one = task(store([database()]))
    one.held, one.released_us = held, None if released is None else at(released)
    sibling = task(store([database()]), task_id="0_1")
    sibling.held = True
    return case(one, sibling, now=now, **{"release": "2.1.1", "guarantee": None, "standbys": 1, **settings})


def test_five_seconds():
    """The wait is more than five seconds."""
    assert judge(ID, dossier(now=15)) == []
    assert len(judge(ID, dossier(now=15.1))) == 1


def test_seconds_that_the_clock_was_set_by():
    """Set forward by an hour right after the release: a hand-over has not taken long, nor has the sibling been held."""
    for now, said in ((3615, 0), (3615.1, 1)):
        one = dossier(now=now)
        one.application.tasks["0_1"].held_since_us = at(10)
        note_blind(one.inventory, at(11), at(3611), "clock-step")
        assert len(judge(ID, one)) == said


def test_release_must_have_been_seen():
    """Unknown holders and unseen releases decide nothing."""
    assert judge(ID, dossier(held=None)) == []
    assert judge(ID, dossier(held=True)) == []
    assert judge(ID, dossier(released=None)) == []


def test_directory_must_be_there_with_a_store():
    """Stateless and deleted tasks have nothing to lose."""
    gone = dossier()
    gone.task.exists = False
    assert judge(ID, gone) == []
    empty = dossier()
    empty.task.stores.clear()
    assert judge(ID, empty) == []


@pytest.mark.twin_of(ID, "its process ended, or has just begun to take its tasks")
def test_sibling_that_was_just_taken():
    """After a restart tasks are opened one after another: the first one's lock is no sign that this one is late."""
    one = dossier(now=100)
    sibling = one.application.tasks["0_1"]
    sibling.held_since_us = at(99.5)
    assert judge(ID, one) == []
    sibling.held_since_us = at(90)
    assert len(judge(ID, one)) == 1


def test_unknown_release_is_possibly_affected():
    """The suspicion stands when the release is not known."""
    assert judge(ID, dossier(release=None))[0].affected is Affected.POSSIBLY


def test_dated_to_the_release():
    """The chain begins with the release and goes on with the sign of life, never before the release."""
    one = dossier()
    assert [step.at_us for step in judge(ID, one)[0].evidence] == [at(10), at(10)]
    one.application.tasks["0_1"].held_since_us = at(20)
    verdict = judge(ID, one)[0]
    assert verdict.opened_at_us == at(10)
    assert [step.at_us for step in verdict.evidence] == [at(10), at(20)]


def test_says_when_the_cleaner_may_come():
    """The delay counts from the directory's last change, and may be over; a time, for who reads it later."""
    for changed, delay_s, due in ((10, 30, 40), (10, 600, 610), (50, 600, 650)):
        one = dossier(told={"state_cleanup_delay_ms": delay_s * 1_000})
        one.task.mtime_us = at(changed)
        assert f"may take it from {moment(at(due))} on" in judge(ID, one)[0].summary
    assert "cleaner may" not in judge(ID, dossier())[0].summary


def test_probe_is_another_hand():
    """A release is announced like a lock that was tried; one that is tried a second later is the cleaner's."""
    one = dossier(now=100)
    one.application.tasks["0_1"].held = False
    one.task.lock_probed_us = at(11)
    assert judge(ID, one) == []
    one.task.lock_probed_us = at(11) + 1
    assert judge(ID, one)[0].evidence[-1].at_us == at(11) + 1


@pytest.mark.parametrize("release", ["2.0.1", "2.1.1", "2.2.1"])
def test_cleaner_that_comes_soon(release):
    """Nothing else is held, and the cleaner's first try comes within the time of a hand-over: it proves RUNNING."""
    run, app = released(release)
    app.closes("0_0", 500)
    run.wait(4)
    for task_id in ("0_0", "0_1"):
        app.cleaner.probes(task_id)
    assert run.findings(ID) == []
    run.wait(4)
    assert {finding.task_id for finding in run.findings(ID)} == {"0_0", "0_1"}


def test_orderly_stop_is_not_probed():
    """All tasks are let go and nobody tries their locks: the process may be gone."""
    run, app = released("2.1.1")
    app.closes("0_0", 500)
    run.wait(60)
    assert run.findings(ID) == []


def test_sibling_held_for_five_seconds():
    """As long as a hand-over may take, a sibling proves nothing."""
    one = dossier(now=100)
    one.application.tasks["0_1"].held_since_us = at(95)
    assert judge(ID, one) == []
    one.application.tasks["0_1"].held_since_us = at(95) - 1
    assert len(judge(ID, one)) == 1
