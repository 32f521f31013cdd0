"""Detector `unopenable-task`: one process is refused a store again and again, and nothing wipes it."""

from __future__ import annotations

from typing import Any

import pytest

from agent.contract.events import Affected, Level, Status
from agent.judging.upstream import REFUSED_OPEN
from tests.support.openings import ID, LEFT_OPEN, only
from tests.support.openings import said as about_openings
from tests.support.scenario import WINDOWED, Scenario
from tests.support.scenario_script import play
from tests.support.scenario_world import BEGIN_US
from tests.support.tables import PROVED, QUIET, SUSPECTED, Said, table

EOS = "exactly_once_v2"
UNKNOWN: dict[str, Any] = {"hidden": ("*",)}
BOTH = ("processing_guarantee", "enable_transactional_statestores")


def heard(run: Scenario) -> Said:
    """What is said of openings."""
    return [(x.severity, x.confidence) for x in about_openings(run)]


def killed(release: str = "4.4.0", guarantee: str = EOS, *, task: str = "0_0", **more) -> Scenario:
    """A store was flushed while it was open, and its process was killed: the status says open."""
    run = Scenario(release, guarantee, **more)
    return play(run, f"start, opens {task}, puts {task} 500, flushes {task}, 5 s, crash, 5 s")


REFUSED = "is_refused, 0.35 s, "
LOOP = f"start, 3 s, {REFUSED * 20}"
"""A process whose start-up pass is refused, and then the assigned task, again and again."""
TWICE = f"start, 3 s, {REFUSED * 2}deletes_directory, 1 s, opens"
"""Refused by the start-up pass and by the task, then wiped."""


# -- a store that is never wiped --------------------------------------------------------------------------------


@pytest.mark.twin_of(ID, "a store of its task is refused already")
def test_a_store_that_is_refused_without_end():
    """The fifth refusal decides; nothing is said of the fourth. Restarted for ever, with pauses: one finding."""
    run = play(killed(), f"start, 3 s, {REFUSED * 4}")
    assert heard(run) == []
    play(run, REFUSED)
    finding = only(run)
    assert heard(run) == PROVED
    assert (finding.level, finding.status, finding.task_id) == (Level.EXPOSURE, Status.OPEN, "0_0")
    assert (finding.store, finding.upstream) == ("s", (REFUSED_OPEN.key,))
    assert finding.affected is not Affected.NO
    assert [step.at_us for step in finding.evidence] == sorted(step.at_us for step in finding.evidence)
    assert finding.evidence[0].at_us > BEGIN_US
    assert "enable.transactional.statestores` off" in finding.next_action
    assert [x.status for x in run.findings(ID) if LEFT_OPEN in x.summary] == [Status.RESOLVED]
    for _ in range(3):
        assert only(play(run, f"crash, 300 s, {LOOP}")).status is Status.OPEN
    assert len(run.loud()) == 1


@table(ID, "script, more, expected", {
    "transactional stores are off again: a wipe": (f"crash, {TWICE}", {}, QUIET),
    "the operator removes the directory": ("crash, 60 s, deletes_directory", {}, QUIET),
    # at-least-once goes on with it, whatever was told
    "a store that is opened for good": ("", {"hidden": ("processing_guarantee",)},
                                        "a process has held the store for longer than a wipe takes"),
})  # fmt: skip
def test_what_ends_it(script, more, expected):
    run = play(killed(**more), LOOP)
    assert only(run).status is Status.OPEN
    play(run, script)
    if not script:
        run.task("0_0").databases["s", ""].open()
    assert only(play(run, "15 s")).status is Status.RESOLVED
    assert [x for x in about_openings(run) if x.status is Status.OPEN] == expected


@table(ID, "more, script, missing, expected", {
    "the guarantee is not configured: no other application opens so often": (UNKNOWN, LOOP, BOTH, SUSPECTED),
    "a stopped volume shows the openings, not who did them": (
        {"watched": False}, f"{LOOP}, crash, 3600 s", BOTH[1:], SUSPECTED),
})  # fmt: skip
def test_what_is_less_sure(more, script, missing, expected):
    run = play(killed(**more), script)
    if "watched" in more:
        run.world.watch()
        assert run.findings(ID) == about_openings(run)  # the gate stays open for the way out
    assert (heard(run), only(run).missing_facts) == (expected, missing)


def test_an_agent_that_comes_late():
    """It sees the openings of before on disk, and further ones under the lock of the process."""
    run = play(killed(watched=False), f"start, {REFUSED * 20}")
    run.world.watch()
    assert heard(run) == SUSPECTED
    assert heard(play(run, REFUSED * 5)) == PROVED


def test_a_release_without_transactional_stores():
    """4.3 wipes; where it cannot, switching nothing helps."""
    finding = only(play(killed("4.3.1"), LOOP))
    assert finding.severity.rank == 1
    assert "transactional" not in finding.next_action
    assert "remove that directory only" in finding.next_action


def tried_in_vain(run: Scenario, path: str) -> None:
    """`lock hold by current process`: LOG is renewed, LOCK is not touched."""
    log = f"{path}/LOG"
    run.world.play("rename", log, to=f"{log}.old.{run.world.now_us}")
    run.world.write(log, b"")


def test_a_windowed_store():
    """The segments before the refused one stay locked by the process: each further try ends at the first of them."""
    run = Scenario("4.4.0", EOS, stores={"w": WINDOWED})
    play(run, "start, opens, puts 100, puts 100 segment=60000")
    old, new = run.task("0_0").databases["w", "0"], run.task("0_0").databases["w", "60000"]
    new.flush()
    play(run, "5 s, crash, 5 s, start")
    run.app.held.add("0_0")
    run.wait(3)
    old.open()
    new.refuse()
    for _ in range(10):
        run.wait(0.3)
        tried_in_vain(run, old.path)
    run.wait(90)  # nothing announces a new LOG: a later look finds it
    assert (heard(run), only(run).status) == (PROVED, Status.OPEN)
    run.app.crash()


@pytest.mark.parametrize(("starts", "expected"), [(1, QUIET), (2, PROVED), (4, PROVED)])
def test_global_stores(starts, expected):
    """KAFKA-21034: each process is refused once and fails; nothing wipes them on any release."""
    run = play(
        killed("4.3.1", task="global"),
        "30 s, start, 1 s, is_refused global, 0.35 s, crash, " * starts + "10 s",
    )
    assert heard(run) == expected
    for finding in about_openings(run):
        assert finding.upstream == ("KAFKA-21034",)
        assert "`app/global`" in finding.next_action


# -- it is silent -----------------------------------------------------------------------------------------------


def looped_at_rest(**more) -> Scenario:
    """Met by an agent that comes later: starts do not follow so closely."""
    run = play(killed(watched=False, **more), "start, 1.5 s, is_refused, 0.1 s, crash, " * 20)
    run.world.watch()
    return run


def read_while_it_runs() -> Scenario:
    """The readers' tries end at its lock: a new LOG each, and the store works on."""
    run = play(Scenario("4.4.0", EOS), "start, opens, puts 100, flushes")
    for _ in range(20):
        run.wait(0.3)
        tried_in_vain(run, run.task("0_0").databases["s", ""].path)
    return run


MOVES = "".join(f"opens, puts 20, flushes, 0.4 s, closes {n * 20}, 0.4 s, " for n in range(1, 20))
BY_DESIGN = "too few openings by one process: a start is refused twice, and wipes"
ALOS = "at-least-once goes on with a store that says open"
KILLED_ALOS = {"guarantee": "at_least_once"}


@table(ID, "life, script, expected", {
    **{f"refused twice, then wiped, {x}": (lambda x=x: killed(x), TWICE, BY_DESIGN)
       for x in ("4.3.0", "4.3.1", "4.4.0")},
    # each process ends before it gets the task: its start-up pass is refused once
    "a crash loop without a broker": (killed, f"start, 3 s, {REFUSED}crash, 10 s, " * 20, QUIET),
    "the same at rest": (looped_at_rest, "", QUIET),
    "the same at rest, nothing told": (lambda: looped_at_rest(**UNKNOWN), "", QUIET),
    # closed in order and opened again, as long as the process lives; flushed in between
    "a task that moves between threads": (
        lambda: Scenario("4.3.1", EOS), f"start, {MOVES}opens, puts 20, flushes, 30 s, crash",
        "the store was not opened since its last flush"),
    # a crash loop, and with transactional stores a status that nobody writes any more
    "at-least-once, 4.3": (lambda: killed("4.3.1", **KILLED_ALOS), LOOP, ALOS),
    "at-least-once, 4.4": (lambda: killed("4.4.0", **KILLED_ALOS), LOOP, ALOS),
    "no process lives: an operator reads the store": (killed, "is_refused, 0.1 s, " * 20, QUIET),
    "readers of a running store": (read_while_it_runs, "", QUIET),
})  # fmt: skip
def test_it_is_silent(life, script, expected):
    run = play(life(), script)
    assert about_openings(run) == expected
    assert about_openings(play(run, "60 s")) == expected
