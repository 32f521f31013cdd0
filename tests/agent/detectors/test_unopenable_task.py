"""Detector `unopenable-task`: one process is refused a store again and again, and nothing wipes it."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.judging.upstream import REFUSED_OPEN
from tests.support.openings import ID, LEFT_OPEN, only, said
from tests.support.scenario import WINDOWED, App, Scenario
from tests.support.scenario_world import BEGIN_US

EOS = "exactly_once_v2"


def killed(release: str = "4.4.0", guarantee: str = EOS, **more) -> Scenario:
    """A store was flushed while it was open, and its process was killed: the status says open."""
    run = Scenario(release, guarantee, **more)
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 500)
    app.flushes("0_0")
    run.wait(5)
    app.crash()
    run.wait(5)
    return run


def refuses(run: Scenario, times: int, *, every: float = 0.35, task: str = "0_0") -> None:
    """Kafka Streams refuses every store of a task that says open, the first of them each time."""
    for _ in range(times):
        next(iter(run.task(task).databases.values())).refuse()
        run.wait(every)


def looping(run: Scenario, times: int = 20) -> App:
    """A process whose start-up pass is refused, and then the assigned task, again and again."""
    app = run.start()
    run.wait(3)
    refuses(run, times)
    return app


# -- a store that is never wiped --------------------------------------------------------------------------------


@pytest.mark.twin_of("unopenable-task", "a store of its task is refused already")
def test_a_store_that_is_refused_without_end():
    """The fifth refusal decides; nothing is said of the fourth."""
    run = killed()
    app = run.start()
    run.wait(3)
    refuses(run, 4)
    assert said(run) == []
    refuses(run, 1)
    finding = only(run)
    assert (finding.level, finding.severity, finding.confidence, finding.status) == (
        Level.EXPOSURE,
        Severity.CRITICAL,
        Confidence.CONFIRMED,
        Status.OPEN,
    )
    assert (finding.task_id, finding.store) == ("0_0", "s")
    assert finding.affected is not Affected.NO
    assert [step.at_us for step in finding.evidence] == sorted(step.at_us for step in finding.evidence)
    assert finding.evidence[0].at_us > BEGIN_US
    assert finding.upstream == (REFUSED_OPEN.key,)
    assert "enable.transactional.statestores` off" in finding.next_action
    assert [x.status for x in run.findings(ID) if LEFT_OPEN in x.summary] == [Status.RESOLVED]
    app.crash()


def test_it_lasts_beyond_the_process_and_into_the_next():
    """Restarted for ever, with pauses: one finding, open all the time."""
    run = killed()
    for _ in range(3):
        looping(run).crash()
        run.wait(300)
        assert only(run).status is Status.OPEN
    assert len(run.loud()) == 1


def test_a_wipe_ends_it():
    """Transactional stores are off again: refused twice more, then wiped."""
    run = killed()
    looping(run).crash()
    app = run.start()
    run.wait(3)
    refuses(run, 2)
    app.deletes_directory("0_0")
    run.wait(1)
    app.opens("0_0")
    run.wait(5)
    assert only(run).status is Status.RESOLVED


def test_its_removal_ends_it():
    """The operator removes the task directory."""
    run = killed()
    app = looping(run)
    app.crash()
    run.wait(60)
    app.deletes_directory("0_0")
    run.wait(5)
    assert only(run).status is Status.RESOLVED


@pytest.mark.twin_of("unopenable-task", "a process has held the store for longer than a wipe takes")
def test_a_store_that_is_opened_for_good_ends_it():
    """At-least-once goes on with it, whatever was told."""
    run = killed(hidden=("processing_guarantee",))
    looping(run)
    assert only(run).status is Status.OPEN
    run.task("0_0").databases["s", ""].open()
    run.wait(15)
    assert only(run).status is Status.RESOLVED


def test_the_guarantee_is_not_configured():
    """So close together no at-least-once application opens a store: suspected."""
    run = killed(hidden=("*",))
    looping(run)
    finding = only(run)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    assert finding.missing_facts == ("processing_guarantee", "enable_transactional_statestores")


def test_at_rest():
    """A stopped volume shows the openings, not who did them. The gate stays open for the way out."""
    run = killed(watched=False)
    looping(run).crash()
    run.wait(3600)
    run.world.watch()
    finding = only(run)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    assert run.findings(ID) == [finding]


def test_an_agent_that_comes_late():
    """It sees the openings of before on disk, and further ones under the lock of the process."""
    run = killed(watched=False)
    app = run.start()
    refuses(run, 20)
    run.world.watch()
    assert only(run).confidence is Confidence.SUSPECTED
    refuses(run, 5)
    finding = only(run)
    assert (finding.severity, finding.confidence) == (Severity.CRITICAL, Confidence.CONFIRMED)
    app.crash()


def test_a_release_without_transactional_stores():
    """4.3 wipes; where it cannot, switching nothing helps."""
    run = killed("4.3.1")
    looping(run)
    finding = only(run)
    assert finding.severity is Severity.WARNING
    assert "transactional" not in finding.next_action
    assert "remove that directory only" in finding.next_action


def test_a_windowed_store():
    """The segments before the refused one stay locked by the process: each further try ends at the first of them."""
    run = Scenario("4.4.0", EOS, stores={"w": WINDOWED})
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 100)
    app.puts("0_0", 100, segment=60_000)
    old, new = run.task("0_0").databases["w", "0"], run.task("0_0").databases["w", "60000"]
    new.flush()
    run.wait(5)
    app.crash()
    run.wait(5)
    app = run.start()
    app.held.add("0_0")
    run.wait(3)
    old.open()
    new.refuse()
    for _ in range(10):
        run.wait(0.3)
        tried_in_vain(run, old.path)
    run.wait(90)  # nothing announces a new LOG: a later look finds it
    assert (only(run).severity, only(run).status) == (Severity.CRITICAL, Status.OPEN)
    app.crash()


@pytest.mark.parametrize(("starts", "number"), [(1, 0), (2, 1), (4, 1)])
def test_global_stores(starts, number):
    """KAFKA-21034: each process is refused once and fails; nothing wipes them on any release."""
    run = Scenario("4.3.1", EOS)
    app = run.start()
    app.opens("global")
    app.puts("global", 50)
    app.flushes("global")
    run.wait(5)
    app.crash()
    for _ in range(starts):
        run.wait(30)
        app = run.start()
        run.wait(1)
        refuses(run, 1, task="global")
        app.crash()
    run.wait(10)
    found = said(run)
    assert len(found) == number
    for finding in found:
        assert (finding.severity, finding.confidence) == (Severity.CRITICAL, Confidence.CONFIRMED)
        assert finding.upstream == ("KAFKA-21034",)
        assert "`app/global`" in finding.next_action


# -- it is silent -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["4.3.0", "4.3.1", "4.4.0"])
@pytest.mark.twin_of(
    "unopenable-task", "too few openings by one process: a start is refused twice, and wipes"
)
def test_refused_twice_then_wiped(release):
    """The start-up pass, and the task: an orderly life after a kill."""
    run = killed(release)
    app = run.start()
    run.wait(3)
    refuses(run, 2)
    app.deletes_directory("0_0")
    run.wait(1)
    app.opens("0_0")
    app.puts("0_0", 500)
    app.flushes("0_0")
    run.wait(60)
    assert said(run) == []


def test_a_task_that_corrupts_and_wipes_again_and_again():
    """Each wipe makes another store."""
    run = killed()
    app = run.start()
    for _ in range(10):
        app.opens("0_0")
        app.puts("0_0", 50)
        app.flushes("0_0")
        run.wait(0.3)
        app.wipes("0_0", again=False)
        run.wait(0.3)
    assert said(run) == []


def test_processes_that_end_before_they_get_the_task():
    """A crash loop without a broker: each start-up pass is refused once."""
    run = killed()
    for _ in range(20):
        app = run.start()
        run.wait(3)
        refuses(run, 1)
        app.crash()
        run.wait(10)
    assert said(run) == []


@pytest.mark.parametrize("told", [(), ("*",)])
def test_the_same_crash_loop_at_rest(told):
    """Starts do not follow so closely."""
    run = killed(watched=False, hidden=told)
    for _ in range(20):
        app = run.start()
        run.wait(1.5)
        refuses(run, 1, every=0.1)
        app.crash()
    run.world.watch()
    assert said(run) == []


@pytest.mark.twin_of("unopenable-task", "the store was not opened since its last flush")
def test_a_task_that_moves_between_threads():
    """Closed in order and opened again, as long as the process lives; flushed in between."""
    run = Scenario("4.3.1", EOS)
    app = run.start()
    for number in range(1, 20):
        app.opens("0_0")
        app.puts("0_0", 20)
        app.flushes("0_0")
        run.wait(0.4)
        app.closes("0_0", number * 20)
        run.wait(0.4)
    app.opens("0_0")
    app.puts("0_0", 20)
    app.flushes("0_0")
    run.wait(30)
    app.crash()
    run.wait(30)
    assert said(run) == []


@pytest.mark.parametrize("release", ["4.3.1", "4.4.0"])
@pytest.mark.twin_of("unopenable-task", "at-least-once goes on with a store that says open")
def test_at_least_once_goes_on_with_it(release):
    """A crash loop, and with transactional stores a status that nobody writes any more."""
    run = killed(release, "at_least_once")
    looping(run)
    assert said(run) == []


@pytest.mark.parametrize("release", ["2.3.1", "2.5.1", "3.7.2", "4.2.1"])
def test_releases_without_a_status(release):
    """Bulk loading reopens, new timestamped stores open twice, and nothing says open."""
    run = Scenario(release, EOS)
    app = run.start()
    for number in range(10):
        app.opens("0_0")
        app.restores("0_0", 100 * number + 99)
        app.closes("0_0", 100 * number + 99)
        run.wait(0.1)
    assert said(run) == []


def test_a_tool_that_opens_it_while_no_process_runs():
    """No process of the application lives: an operator reads the store."""
    run = killed()
    refuses(run, 20, every=0.1)
    run.wait(30)
    assert said(run) == []


def test_readers_of_a_running_store():
    """Their tries end at its lock: a new LOG each, and the store works on."""
    run = Scenario("4.4.0", EOS)
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 100)
    app.flushes("0_0")
    for _ in range(20):
        run.wait(0.3)
        tried_in_vain(run, run.task("0_0").databases["s", ""].path)
    run.wait(20)
    assert said(run) == []


def tried_in_vain(run: Scenario, path: str) -> None:
    """`lock hold by current process`: LOG is renewed, LOCK is not touched."""
    log = f"{path}/LOG"
    run.world.play("rename", log, to=f"{log}.old.{run.world.now_us}")
    run.world.write(log, b"")
