"""Detector `premature-cleanup`: deleted sooner after its release than the cleanup delay allows (KAFKA-20805)."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.inventory.model import Application, PastTask, ProcessLife, Shape
from tests.support.scenario import App, Scenario
from tests.support.scenario_case import at, case, judge, task

ID = "premature-cleanup"


def cleaned(
    release: str = "4.3.1",
    guarantee: str = "at_least_once",
    *,
    after: float = 16,
    delay: int | None = 30_000,
    **more,
) -> tuple[Scenario, App]:
    """A task is closed and, `after` seconds later, deleted by the cleaner; its sibling works on."""
    run = Scenario(release, guarantee, told={"state_cleanup_delay_ms": delay}, **more)
    app = run.start()
    for task_id in ("0_0", "0_1"):
        app.opens(task_id)
        run.wait(0.5)
        app.puts(task_id, 100)
        app.flushes(task_id)
    run.wait(40)
    app.closes("0_1", 99)
    run.wait(after)
    app.cleaner.deletes("0_1")
    run.wait(2)
    return run, app


@pytest.mark.parametrize("release", ["4.3.0", "4.3.1"])
def test_deleted_too_early(release):
    """Sixteen seconds after its release, with a delay of thirty: a full restoration somewhere."""
    run, _ = cleaned(release)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status) == (
        Level.DAMAGE,
        Severity.WARNING,
        Confidence.CONFIRMED,
        Status.RESOLVED,
    )
    assert (finding.task_id, finding.affected, finding.upstream) == ("0_1", Affected.YES, ("KAFKA-20805",))
    times = [step.at_us for step in finding.evidence]
    assert times == sorted(times)


@pytest.mark.parametrize("release", ["3.5.2", "3.7.2", "4.2.1"])
def test_info_where_the_cleaner_counts_from_the_last_change(release):
    """Found by the hunt: closed without a checkpoint, the directory had not changed since its creation."""
    assert [x.severity for x in cleaned(release)[0].findings("premature-cleanup")] == [Severity.INFO]


def test_within_one_process_under_at_least_once():
    """Deleted half a second after the release and recreated at once: not a wipe, because at-least-once has none."""
    run, app = cleaned(after=0.4)
    app.opens("0_1")
    run.wait(5)
    assert run.only(ID).severity is Severity.WARNING


WAITED = pytest.mark.twin_of(ID, "the cleaner waited for its delay")


@pytest.mark.parametrize(
    "release", ["2.3.1", "2.8.2", *(pytest.param(x, marks=WAITED) for x in ("3.9.2", "4.2.1", "4.3.1"))]
)
def test_cleaner_after_the_delay(release):
    """N8: a delay or more after the release is what was asked for."""
    run, _ = cleaned(release, after=35)
    assert run.findings(ID) == []


def test_wipe_under_exactly_once():
    """N13: an owner's wipe follows its close within milliseconds."""
    run = Scenario("4.3.1", "exactly_once_v2", told={"state_cleanup_delay_ms": 30_000})
    app = run.start()
    for task_id in ("0_0", "0_1"):
        app.opens(task_id)
        run.wait(0.5)
        app.puts(task_id, 100)
        app.flushes(task_id)
    run.wait(10)
    app.wipes("0_1")
    run.wait(5)
    assert run.findings(ID) == []


def closed_dirty(release: str, delay_ms: int) -> tuple[Scenario, App]:
    """Exactly-once; one of two tasks with flushed data is closed dirty and is to be wiped."""
    run = Scenario(release, "exactly_once", told={"state_cleanup_delay_ms": delay_ms})
    app = run.start()
    for task_id in ("0_0", "0_1"):
        app.opens(task_id)
        run.wait(0.5)
        app.puts(task_id, 100)
        app.flushes(task_id)
    run.wait(10)
    app.closes_dirty("0_1")
    return run, app


@pytest.mark.parametrize("release", ["2.8.2", "3.7.2", "4.2.1"])
def test_wipe_on_a_slow_volume(release):
    """N13 where every unlink takes a second: options and the WAL file go first, and are the wipe's beginning.

    Seen live on 3.7.2 and 4.2.1: CURRENT went four seconds after the close.
    """
    run, app = closed_dirty(release, 30_000)
    store = "app/0_1/rocksdb/s"
    first = [
        name for name, _ in run.world.children(store) if name.startswith("OPTIONS") or name.endswith(".log")
    ]
    assert first
    for name in [*first, "CURRENT", "IDENTITY"]:
        run.wait(1)
        run.world.play("unlink", f"{store}/{name}")
    app.deletes_directory("0_1")
    run.wait(5)
    assert run.findings(ID) == []


@pytest.mark.parametrize("release", ["2.8.2", "3.5.2", "4.2.1", "4.3.1"])
@pytest.mark.twin_of(ID, "exactly-once wipes a task right after its close")
def test_wipe_in_a_starved_pod(release):
    """Seen live on 3.5.2 beside other work: the wipe of a task that was closed dirty began two seconds later."""
    run, app = closed_dirty(release, 600_000)
    run.wait(4)
    app.deletes_directory("0_1")
    run.wait(5)
    assert run.findings(ID) == []


def test_fires_under_exactly_once_too():
    """Seconds after a clean close it was the cleaner."""
    run, _ = cleaned(guarantee="exactly_once_v2", after=5)
    assert len(run.findings(ID)) == 1


def test_needs_the_guarantee():
    """Without the guarantee it may be the wipe of exactly-once."""
    run, _ = cleaned(hidden=("processing_guarantee",))
    assert run.findings(ID) == []


def test_assumed_delay_wakes_no_detector():
    """By the default delay alone it is too early; many set a short one, and the disk does not tell it."""
    run, _ = cleaned(hidden=("state_cleanup_delay_ms",))
    finding = run.only(ID)
    assert (finding.severity, finding.confidence) == (Severity.INFO, Confidence.SUSPECTED)
    assert finding.missing_facts == ("state_cleanup_delay_ms",)
    assert "assuming the default state.cleanup.delay.ms=600000" in finding.evidence[-1].what


@pytest.mark.twin_of(ID, "no process worked on beside it: cleanUp()")
def test_clean_up_call():
    """N12: `cleanUp()` deletes when no task is held."""
    run = Scenario("4.3.1", told={"state_cleanup_delay_ms": 600_000})
    app = run.start()
    for task_id in ("0_0", "0_1"):
        app.opens(task_id)
        run.wait(0.5)
        app.puts(task_id, 100)
    app.stops({"0_0": 99, "0_1": 99})
    run.wait(5)
    app = run.start()
    app.cleans_up()
    run.wait(20)
    assert run.findings(ID) == []


# -- the exact boundary ---------------------------------------------------------------------------------------


def dossier(
    age: float,
    *,
    held: bool = False,
    shape: Shape = Shape.CLEANER_WALK,
    siblings: bool = True,
    lives: bool = True,
    in_order: bool = True,
    **settings,
):
    """Released at 50 s, first removal `age` seconds later; the delay is ten seconds."""
    app = Application("app", exists=True)
    if lives:
        app.lives += (ProcessLife(at(0)),)
    one = task()
    begun = at(50 + age)
    one.past += (PastTask(1, begun, begun + 1000, shape, {}, at(50), held, siblings, in_order),)
    chosen = {
        "release": "4.3.1",
        "guarantee": "at_least_once",
        "told": {"state_cleanup_delay_ms": 10_000},
        **settings,
    }
    return case(one, application=app, **chosen)


@pytest.mark.parametrize(("age", "said"), [(0, 1), (9.4, 1), (9.5, 0), (10, 0), (30, 0), (-1, 0)])
def test_age_against_the_delay(age, said):
    """Half a second of slack for lock polling."""
    assert len(judge(ID, dossier(age))) == said


@pytest.mark.parametrize(
    ("age", "in_order", "said"), [(1.5, True, 0), (1.6, True, 1), (60, False, 0), (60.1, False, 1)]
)
def test_time_of_a_wipe(age, in_order, said):
    """Under exactly-once the first second and a half belong to the owner; a minute after a close that was not clean."""
    told = {"state_cleanup_delay_ms": 100_000}
    assert len(judge(ID, dossier(age, guarantee="exactly_once_v2", in_order=in_order, told=told))) == said


@pytest.mark.twin_of(ID, "it was held to the end: its owner deleted it")
def test_what_excludes_it():
    """Held to the end, vanished unseen, no living process, no working sibling, no release seen."""
    assert judge(ID, dossier(5, held=True)) == []
    assert judge(ID, dossier(5, shape=Shape.VANISHED_UNSEEN)) == []
    assert judge(ID, dossier(5, lives=False)) == []
    assert judge(ID, dossier(5, siblings=False)) == []
    unseen = dossier(5)
    unseen.task.past[0].released_us = None
    assert judge(ID, unseen) == []


def test_process_must_outlive_the_deletion():
    """A process that ended before the directory was gone is no cleaner's."""
    one = dossier(5)
    one.application.lives[0].ended_us = one.task.past[0].ended_us
    assert judge(ID, one) == []
    one.application.lives[0].ended_us = one.task.past[0].ended_us + 1
    assert len(judge(ID, one)) == 1


def test_process_must_have_been_there():
    """A process that began after the deletion did not do it."""
    one = dossier(5)
    one.application.lives[0].started_us = one.task.past[0].started_us
    assert judge(ID, one) == []


def test_says_how_early():
    """The sentence tells the age and the delay."""
    verdict = judge(ID, dossier(5))[0]
    assert "5.0 s after its release" in verdict.summary
    assert "delay is 10 s" in verdict.summary
