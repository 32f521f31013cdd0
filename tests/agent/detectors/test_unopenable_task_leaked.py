"""Detector `unopenable-task`: a segment that the start-up pass of its own process leaked, and its law's silence."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Severity, Status
from agent.judging.upstream import LEAKED_SEGMENT
from tests.support.openings import only, said
from tests.support.scenario import WINDOWED, App, Scenario
from tests.support.scenario_tasks import delete_tree

LAW = "deleted-while-held"
EOS = "exactly_once_v2"


def half_open(guarantee: str = EOS, *, flush_old: bool = False, **more) -> tuple[Scenario, App]:
    """After a kill the start-up pass opened the older segment and was refused the newer one."""
    run = Scenario("4.4.0", guarantee, stores={"w": WINDOWED}, **more)
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 100)
    if flush_old:
        app.flushes("0_0")
        app.closes("0_0", 99)
        app.opens("0_0")
    app.puts("0_0", 100, segment=60_000)
    new = run.task("0_0").databases["w", "60000"]
    new.flush()
    run.wait(5)
    app.crash()
    run.wait(5)
    app = run.start()
    run.wait(3)
    run.task("0_0").databases["w", "0"].open()
    new.refuse()
    run.wait(0.6)
    return run, app


def leaked(guarantee: str = EOS, **more) -> tuple[Scenario, App]:
    """The task fails at the lock of the older one, and is wiped under it."""
    run, app = half_open(guarantee, **more)
    app.deletes_directory("0_0")
    return run, app


def tries_again(run: Scenario, app: App) -> None:
    """A replaced thread makes the task, fails at the same path, and wipes again."""
    path = "app/0_0/w/w.0"
    for made in ("app/0_0", "app/0_0/w", path):
        run.world.mkdir(made)
    run.world.write(f"{path}/LOG", b"")
    run.wait(0.1)
    app.delete_tree("app/0_0")
    run.wait(6)


@pytest.mark.parametrize("flush_old", [False, True])
@pytest.mark.twin_of(LAW, "a segment that its start-up pass left open (unopenable-task)")
def test_it_lasts_as_long_as_the_process(flush_old):
    """Named at once, open through all tries and after the last, until a new process can open the task."""
    run, app = leaked(flush_old=flush_old)
    run.wait(3)
    finding = only(run)
    assert (finding.severity, finding.confidence, finding.status) == (
        Severity.WARNING,
        Confidence.CONFIRMED,
        Status.OPEN,
    )
    assert finding.affected is not Affected.NO
    assert finding.upstream == (LEAKED_SEGMENT.key,)
    assert "Restart this instance: the process" in finding.next_action
    for _ in range(5):
        tries_again(run, app)
        assert only(run).status is Status.OPEN
    run.wait(7200)  # the client gave up, the JVM lives on
    assert only(run).status is Status.OPEN
    run.world.play("unlock", "app/0_0/w/w.0/LOCK", nameless=True)
    app.crash()
    run.wait(2)
    assert only(run).status is Status.RESOLVED
    assert run.findings(LAW) == []


@pytest.mark.twin_of("unopenable-task", "the process that held the segment has ended")
def test_the_next_processes_bring_nothing_back():
    """Neither finding comes again, however often the store is opened later."""
    run, app = leaked()
    run.wait(5)
    app.crash()
    for _ in range(6):
        run.wait(5)
        app = run.start()
        app.opens("0_0")
        app.puts("0_0", 10, segment=60_000)
        app.flushes("0_0")
        app.stops({"0_0": 99})
    assert only(run).status is Status.RESOLVED
    assert run.findings(LAW) == []


def test_the_guarantee_is_not_configured():
    """Suspected: at-least-once refuses nothing."""
    run, _ = leaked(hidden=("*",))
    run.wait(5)
    finding = only(run)
    assert (finding.confidence, finding.missing_facts) == (Confidence.SUSPECTED, ("processing_guarantee",))
    assert run.findings(LAW) == []


@pytest.mark.twin_of("unopenable-task", "the process may be about to end")
def test_a_process_that_ends_within_the_second():
    """Nothing lasts."""
    run, app = leaked()
    run.wait(0.3)
    app.crash()
    run.wait(10)
    assert said(run) == []
    assert run.findings(LAW) == []


def test_at_least_once_leaks_nothing():
    """Whoever deleted it there: the law says so."""
    run, _ = leaked("at_least_once")
    run.wait(5)
    assert said(run) == []
    assert len(run.findings(LAW)) == 1


def test_another_hand_deletes_what_is_open():
    """Closed in order before, opened in full: no segment was refused."""
    run = Scenario("4.4.0", EOS, stores={"w": WINDOWED})
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 100)
    app.puts("0_0", 100, segment=60_000)
    app.flushes("0_0")
    run.wait(5)
    app.stops({"0_0": 99})
    run.wait(5)
    app = run.start()
    app.opens("0_0")
    run.wait(5)
    delete_tree(run.world, "app/0_0")
    run.wait(5)
    assert said(run) == []
    assert run.findings(LAW) != []
