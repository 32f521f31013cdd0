"""Detector `auditor-blind`: the agent missed something, or has nothing to watch."""

from __future__ import annotations

import pytest

from agent.contract.events import Confidence, Level, Severity, Status
from agent.inventory.disk import LockState
from agent.inventory.model import Application, BlindInterval, Inventory
from tests.support.scenario import Scenario
from tests.support.scenario_case import at, case, judge

ID = "auditor-blind"


def test_lost_notifications():
    """An overflow is a warning with its cause; it ends some minutes after the rescan."""
    run = Scenario("4.1.2")
    run.start().opens("0_0")
    run.wait(10)
    run.world.overflows()
    run.wait(40)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.status) == (Level.SELF, Severity.WARNING, Status.OPEN)
    assert (finding.application_id, finding.task_id) == ("", None)
    assert "queue-overflow" in finding.summary
    run.wait(400)
    assert run.only(ID).status is Status.RESOLVED


def test_nothing_to_watch():
    """Five minutes without an application directory is told, as information: it may be right."""
    run = Scenario("4.1.2")
    run.wait(290)
    assert run.findings(ID) == []
    run.wait(60)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence) == (Severity.INFO, Confidence.UNKNOWN)
    run.start().opens("0_0")
    run.wait(60)
    assert run.only(ID).status is Status.RESOLVED


def test_an_hour_without_any_task_is_a_warning():
    """Without an application, or with directories of some that no process holds and that have no task."""
    run = Scenario("4.1.2")
    run.wait(3_500)
    assert run.only(ID).severity is Severity.INFO
    run.wait(200)
    assert (run.only(ID).severity, run.only(ID).confidence) == (Severity.WARNING, Confidence.UNKNOWN)

    left_over = case(now=3_700)
    left_over.inventory.applications["app"] = Application("app", exists=True, lock=LockState.FREE)
    (verdict,) = judge(ID, left_over)
    assert verdict.severity is Severity.WARNING
    assert "none of 1 application directories has one" in verdict.summary


@pytest.mark.parametrize("lock", [LockState.HELD, LockState.UNKNOWN])
def test_an_instance_whose_tasks_are_all_elsewhere_is_no_trouble(lock: LockState):
    """More pods than partitions: it holds the lock of its application, or that cannot be asked."""
    idle = case(now=86_400)
    idle.inventory.applications["app"] = Application("app", exists=True, lock=lock)
    assert judge(ID, idle) == []


def test_a_state_directory_per_pod_below_the_mount_is_named():
    """Which one, and never an advice that would make the pods share one."""
    one = case(now=400)
    one.inventory.applications.clear()
    one.inventory.root_seen, one.inventory.nested = True, ("orders-abcde", "orders-fghij")
    (verdict,) = judge(ID, one)
    assert (verdict.severity, verdict.confidence) == (Severity.WARNING, Confidence.CONFIRMED)
    assert "one level below: orders-abcde is a state directory (2 are: " in verdict.summary
    assert "$(POD_NAME)" in verdict.next_action


def test_quiet_while_it_sees():
    """An ordinary run is not blind."""
    run = Scenario("4.1.2")
    run.start().opens("0_0")
    run.wait(900)
    assert run.findings(ID) == []


def dossier(*intervals: BlindInterval, now: float = 100, root_seen: bool = True):
    """Blind intervals and nothing else; the application is there."""
    one = case(now=now)
    one.inventory.blind.extend(intervals)
    one.inventory.root_seen = root_seen
    return one


def test_no_state_directory_and_one_that_may_not_be_read():
    """Both are nothing to watch, and each names its own remedy."""

    def told(*blind: BlindInterval):
        one = dossier(*blind, now=400, root_seen=False)
        one.inventory.applications.clear()
        return next(x for x in judge(ID, one) if x.subject == "nothing-to-watch")

    missing, refused = told(), told(BlindInterval(at(10), "watch-refused"))
    assert "does not exist" in missing.summary
    assert "no permission to read" in refused.summary
    assert "runAsGroup" in refused.summary
    assert (missing.severity, refused.severity) == (Severity.WARNING, Severity.WARNING)


def test_interval_that_lasts():
    """While it lasts the finding says so, and whom it concerns."""
    verdict = judge(ID, dossier(BlindInterval(at(10), "watch-limit", None, "app", "0_3")))[0]
    assert (verdict.severity, verdict.confidence, verdict.opened_at_us) == (
        Severity.WARNING,
        Confidence.CONFIRMED,
        at(10),
    )
    assert "app/0_3" in verdict.summary
    assert "lasts" in verdict.summary


def test_interval_that_ended():
    """It is told for five minutes after its end, with its length."""
    ended = BlindInterval(at(10), "queue-overflow", at(12), "app")
    verdict = judge(ID, dossier(ended, now=311.9))[0]
    assert "2.0 s" in verdict.summary
    assert len(verdict.evidence) == 2
    assert judge(ID, dossier(ended, now=312)) == []


def test_two_intervals_are_two_findings():
    """Each has its own cause and time."""
    found = judge(ID, dossier(BlindInterval(at(10), "a"), BlindInterval(at(20), "a"), now=30))
    assert len({verdict.subject for verdict in found}) == 2


def test_state_directory_that_is_not_there():
    """A missing mount is a warning; the boundary is five minutes after the start."""
    one = dossier(now=300, root_seen=False)
    one.application.exists = False
    verdict = judge(ID, one)[0]
    assert (verdict.severity, verdict.confidence) == (Severity.WARNING, Confidence.CONFIRMED)
    early = dossier(now=299.9, root_seen=False)
    early.application.exists = False
    assert judge(ID, early) == []
    assert isinstance(one.inventory, Inventory)


def test_a_sidecar_that_waits_for_the_first_start_is_no_warning():
    """Nothing can be lost before an application makes its directory; once one was seen, a missing root is a warning."""
    waited = BlindInterval(at(10), "root-missing", at(15))
    for seen_s, severity in ((15, Severity.INFO), (10, Severity.INFO), (5, Severity.WARNING)):
        one = dossier(waited, now=30)
        one.application.first_seen_us = at(seen_s)
        assert [x.severity for x in judge(ID, one)] == [severity], seen_s
    often = [BlindInterval(at(x), "root-missing", at(x + 0.5)) for x in range(10, 20)]
    for seen_s, severity in ((19, Severity.INFO), (5, Severity.WARNING)):
        one = dossier(*often, now=30)
        one.application.first_seen_us = at(seen_s)
        assert [x.severity for x in judge(ID, one)] == [severity], seen_s
    other = dossier(BlindInterval(at(10), "queue-overflow", at(15)), now=30)
    other.application.first_seen_us = at(15)
    assert [x.severity for x in judge(ID, other)] == [Severity.WARNING]


def test_seen_later_is_no_blindness():
    """Polling is information; a limit of the kernel is a warning with what to set and how to fix it."""
    one = dossier(now=30)
    one.inventory.slowed = {
        "polling": (at(10), "/state is nfs4"),
        "watch-limit": (at(20), "set fs.inotify.max_user_watches=8192 on the node"),
    }
    polling, limit = judge(ID, one)
    assert (polling.severity, limit.severity) == (Severity.INFO, Severity.WARNING)
    assert "nfs4" in polling.summary
    assert "max_user_watches=8192" in limit.summary
    assert "Nothing is wrong with the application" in limit.next_action


def test_every_step_of_doing_less_is_reported():
    """Another step is another finding, and the former one ends."""
    one = dossier(now=30)
    subjects = set()
    for steps in ("slower-rescan", "slower-rescan, longer-batches"):
        one.inventory.slowed = {"self-limit": (at(10), steps)}
        (verdict,) = judge(ID, one)
        assert steps in verdict.summary
        subjects.add(verdict.subject)
    assert len(subjects) == 2


def test_many_places_are_one_finding():
    """A hundred refused directories are one trouble; the remedy is that of the cause."""
    intervals = [BlindInterval(at(10), "denied", None, "app", f"0_{number}") for number in range(100)]
    (verdict,) = judge(ID, dossier(*intervals, now=30))
    assert "100 times" in verdict.summary
    assert "Remedy" in verdict.next_action


def test_the_detail_is_reported():
    """Numbers and names are part of the sentence."""
    one = BlindInterval(at(10), "clock-step", at(20), detail="the clock was set by -3600.0 s")
    (verdict,) = judge(ID, dossier(one, now=30))
    assert "The clock was set by -3600.0 s." in verdict.summary
