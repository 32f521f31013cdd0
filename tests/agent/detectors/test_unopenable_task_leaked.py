"""Detector `unopenable-task`: a segment that the start-up pass of its own process leaked, and its law's silence."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Status
from agent.judging.upstream import LEAKED_SEGMENT
from tests.support.openings import ID, only
from tests.support.openings import said as about_openings
from tests.support.scenario import WINDOWED, Scenario
from tests.support.scenario_script import play
from tests.support.tables import QUIET, SUSPECTED, WARNED, table

LAW = "deleted-while-held"
EOS = "exactly_once_v2"


def leaked(guarantee: str = EOS, *, flush_old: bool = False, **more) -> Scenario:
    """After a kill the start-up pass opened the older segment and was refused the newer one.

    The task fails at the lock of the older one, and is wiped under it.
    """
    run = play(Scenario("4.4.0", guarantee, stores={"w": WINDOWED}, **more), "start, opens, puts 100")
    if flush_old:
        play(run, "flushes, closes 99, opens")
    run.app.puts("0_0", 100, segment=60_000)
    new = run.task("0_0").databases["w", "60000"]
    new.flush()
    play(run, "5 s, crash, 5 s, start, 3 s")
    run.task("0_0").databases["w", "0"].open()
    new.refuse()
    return play(run, "0.6 s, deletes_directory")


def tries_again(run: Scenario) -> None:
    """A replaced thread makes the task, fails at the same path, and wipes again."""
    path = "app/0_0/w/w.0"
    for made in ("app/0_0", "app/0_0/w", path):
        run.world.mkdir(made)
    run.world.write(f"{path}/LOG", b"")
    play(run, "0.1 s, delete_tree app/0_0, 6 s")


@pytest.mark.parametrize("flush_old", [False, True])
@pytest.mark.twin_of(LAW, "a segment that its start-up pass left open (unopenable-task)")
def test_it_lasts_as_long_as_the_process(flush_old):
    """Named at once, open through all tries and after the last, until a new process can open the task."""
    run = leaked(flush_old=flush_old)
    run.wait(3)
    finding = only(run)
    assert [(finding.severity, finding.confidence)] == WARNED
    assert (finding.upstream, finding.affected is Affected.NO) == ((LEAKED_SEGMENT.key,), False)
    assert "Restart this instance: the process" in finding.next_action
    for _ in range(5):
        assert only(run).status is Status.OPEN
        tries_again(run)
    run.wait(7200)  # the client gave up, the JVM lives on
    assert only(run).status is Status.OPEN
    run.world.play("unlock", "app/0_0/w/w.0/LOCK", nameless=True)
    play(run, "crash, 2 s")
    assert only(run).status is Status.RESOLVED
    assert run.findings(LAW) == []


@pytest.mark.twin_of(ID, "the process that held the segment has ended")
def test_the_next_processes_bring_nothing_back():
    """Neither finding comes again, however often the store is opened later."""
    run = play(leaked(), "5 s, crash")
    for _ in range(6):
        play(run, "5 s, start, opens, puts 10 segment=60000, flushes, stops 99")
    assert only(run).status is Status.RESOLVED
    assert run.findings(LAW) == []


CLOSED = "start, opens, puts 100, puts 100 segment=60000, flushes, 5 s, stops 99, 5 s"


@table(ID, "life, script, by_law, expected", {
    "the guarantee is not configured: at-least-once refuses nothing": (
        lambda: leaked(hidden=("*",)), "", False, SUSPECTED),
    "a process that ends within the second": (leaked, "0.3 s, crash", False, "the process may be about to end"),
    "at-least-once leaks nothing: whoever deleted it": (lambda: leaked("at_least_once"), "", True, QUIET),
    # closed in order before, opened in full: no segment was refused
    "another hand deletes what is open": (
        lambda: Scenario("4.4.0", EOS, stores={"w": WINDOWED}),
        f"{CLOSED}, start, opens, 5 s, delete_tree app/0_0", True, QUIET),
})  # fmt: skip
def test_who_speaks(life, script, by_law, expected):
    run = play(life(), f"{script}, 10 s")
    assert [(x.severity, x.confidence) for x in about_openings(run)] == expected
    assert {x.missing_facts for x in about_openings(run)} <= {("processing_guarantee",)}
    assert bool(run.findings(LAW)) is by_law
