"""Detector `unowned-task`: nobody holds the directory while the process lives (KAFKA-8187 stage 1)."""

from __future__ import annotations

import pytest

from agent.contract.codec import moment
from agent.contract.events import Affected
from agent.inventory.blindness import note_blind
from agent.judging.base import TaskCase
from tests.support.scenario import Scenario
from tests.support.scenario_case import at, case, database, judge, store, task
from tests.support.scenario_script import play
from tests.support.tables import QUIET, REMARKED, SUSPECTED, heard, said, table

ID = "unowned-task"
NOT_ALIVE = "its process ended, or has just begun to take its tasks"
MAY_COME = "it may be handed over yet"


def released(release: str = "2.1.1", standbys: int | None = 1, *, both: bool = False, **more) -> Scenario:
    """Two tasks; one is let go while the other works on, or both."""
    run = Scenario(release, "at_least_once", standbys, **more)
    run.start()
    for task_id in ("0_0", "0_1"):
        run.app.opens(task_id)
    run.wait(1)
    for task_id in ("0_0", "0_1"):
        play(run, f"puts {task_id} 500, checkpoints {task_id} 500")
    play(run, "10 s, closes 0_1 500")
    if both:
        run.app.closes("0_0", 500)
    return run


@table(ID, "more, then, expected", {
    **{f"N7: a task that moved away, {x}": ({"release": x}, None, QUIET)
       for x in ("2.2.2", "2.3.1", "2.8.2", "3.9.2", "4.1.2")},
    "without standbys there is none to orphan": ({"standbys": 0}, None, QUIET),
    # it is assumed that there are none, and said for whoever knows better
    "standbys not told": ({"standbys": None}, None, REMARKED),
    "another thread takes the lock within milliseconds": ({}, lambda run: run.app.opens("0_1"), QUIET),
    "a stopped process holds nothing": ({}, lambda run: run.app.stops({"0_0": 500}), NOT_ALIVE),
    "all are let go, and nobody tries their locks": ({"both": True}, None, NOT_ALIVE),
})  # fmt: skip
def test_ordinary_lives(more, then, expected):
    run = released(**more)
    if then is not None:
        then(run)
    run.wait(120)
    assert heard(ID, run) == expected
    assert {x.missing_facts for x in run.findings(ID)} <= {("num_standby_replicas",)}
    assumed = "assuming the default num.standby.replicas=0"
    assert all(assumed in x.evidence[-1].what for x in run.findings(ID))


@pytest.mark.parametrize("release", ["2.0.1", "2.1.1", "2.2.1"])
@pytest.mark.parametrize("after", [4, 20])
def test_cleaner_is_a_sign_of_life(release, after):
    """Nothing else is held; the cleaner's own lock probes prove RUNNING, even within the time of a hand-over."""
    run = released(release, both=True)
    run.wait(after)
    for task_id in ("0_0", "0_1"):
        run.app.cleaner.probes(task_id)
    assert run.findings(ID) == []
    run.wait(12)
    assert {finding.task_id for finding in run.findings(ID)} == {"0_0", "0_1"}


def dossier(
    now: float = 100,
    *,
    let_go: float | None = 10,
    held: bool | None = False,
    exists: bool = True,
    has_store: bool = True,
    sibling_held: bool = True,
    since: float | None = None,
    probed: float | None = None,
    changed: float = 0,
    clock_set: tuple[float, float] | None = None,
    **settings,
) -> TaskCase:
    """0_0 was let go; 0_1 is held, perhaps `since` then; the lock of 0_0 was `probed`."""
    one, sibling = task(*([store([database()])] if has_store else []), exists=exists), task(task_id="0_1")
    one.held, one.released_us, one.mtime_us = held, None if let_go is None else at(let_go), at(changed)
    one.lock_probed_us = one.lock_probed_us if probed is None else at(probed)
    sibling.held = sibling_held
    sibling.held_since_us = sibling.held_since_us if since is None else at(since)
    chosen = {"release": "2.1.1", "guarantee": None, "standbys": 1, **settings}
    made = case(one, sibling, now=now, **chosen)
    if clock_set is not None:
        note_blind(made.inventory, at(clock_set[0]), at(clock_set[1]), "clock-step")
    return made


STEP = {"clock_set": (11, 3611), "since": 10}
PROBED = {"sibling_held": False}


@table(ID, "more, expected", {
    "five seconds": ({"now": 15}, MAY_COME),
    "more than five seconds": ({"now": 15.1}, SUSPECTED),
    # set forward by an hour right after the release: a hand-over has not taken long, nor has the sibling been held
    "five seconds and an hour that was set": ({"now": 3615, **STEP}, QUIET),
    "more than that": ({"now": 3615.1, **STEP}, SUSPECTED),
    "nobody knows who holds it": ({"held": None}, QUIET),
    "held": ({"held": True}, QUIET),
    "its release was not seen": ({"let_go": None}, QUIET),
    "a directory that is gone": ({"exists": False}, QUIET),
    "a task without a store": ({"has_store": False}, QUIET),
    # after a restart tasks are opened one after another: the first one's lock is no sign that this one is late
    "a sibling that was just taken": ({"since": 99.5}, NOT_ALIVE),
    "a sibling held for five seconds": ({"since": 95}, NOT_ALIVE),
    "a sibling held for longer": ({"since": 94.999}, SUSPECTED),
    # a release is announced like a lock that was tried; one that is tried a second later is the cleaner's
    "its own release": ({**PROBED, "probed": 11}, NOT_ALIVE),
    "another hand": ({**PROBED, "probed": 11.001}, SUSPECTED),
    "any release": ({"release": None}, SUSPECTED),
})  # fmt: skip
def test_limits(more, expected):
    assert said(ID, dossier(**more)) == expected


@pytest.mark.parametrize(
    ("more", "steps"),
    [({}, [10, 10]), ({"since": 20}, [10, 20]), ({**PROBED, "probed": 11.001}, [10, 11.001])],
)
def test_dated_to_the_release(more, steps):
    """The chain begins with the release and goes on with the sign of life, never before the release."""
    (verdict,) = judge(ID, dossier(**more))
    assert verdict.opened_at_us == at(10)
    assert [step.at_us for step in verdict.evidence] == [at(x) for x in steps]
    assert judge(ID, dossier(release=None))[0].affected is Affected.POSSIBLY


@pytest.mark.parametrize(("changed", "delay_s", "due"), [(10, 30, 40), (10, 600, 610), (50, 600, 650)])
def test_says_when_the_cleaner_may_come(changed, delay_s, due):
    """The delay counts from the directory's last change, and may be over; a time, for who reads it later."""
    (verdict,) = judge(ID, dossier(changed=changed, told={"state_cleanup_delay_ms": delay_s * 1_000}))
    assert f"may take it from {moment(at(due))} on" in verdict.summary
    assert "cleaner may" not in judge(ID, dossier())[0].summary
