"""Detector `interrupted-wipe`: killed between the close of a corrupted task and its wipe (hazard D2)."""

from __future__ import annotations

from typing import Any

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.inventory.model import Application, CheckpointFact, ProcessLife
from tests.support.kills import killed
from tests.support.scenario import KEY_VALUE, WINDOWED, App, Scenario
from tests.support.scenario_case import at, case, database, judge, mark, session, store, task

ID = "interrupted-wipe"
EOS = "exactly_once_v2"


def closed_then_killed(
    release: str = "4.1.2",
    guarantee: str = EOS,
    *,
    between: float = 0.03,
    offset: int | None = 6999,
    siblings: bool = True,
    unlink: float = 0.0002,
    **more,
) -> Scenario:
    """A running task is closed with a fresh offset, and the process is killed shortly after, seen at once."""
    run = Scenario(release, guarantee, **more)
    run.world.unlink_us = round(unlink * 1_000_000)
    app = run.start()
    ids = ["0_0", "0_1"] if siblings else ["0_1"]
    for task_id in ids:
        app.opens(task_id)
        app.restores(task_id, 1999, puts=2000)
        if app.habits.offsets_in_store:
            app.commits(task_id, 1999)
    run.wait(10)
    for task_id in ids:
        app.puts(task_id, 5000)
        app.flushes(task_id)
    run.wait(2)
    app.closes("0_1", offset)
    run.wait(between)
    killed(run, app)
    return run


def reopened(run: Scenario) -> App:
    """The next process opens the task and trusts it."""
    app = run.start()
    run.wait(5)
    app.opens("0_1")
    return app


@pytest.mark.parametrize("release", ["3.8.1", "3.9.1", "4.1.2", "4.2.1", "4.3.1"])
def test_suspected_when_reopened(release):
    """A close right before the kill, siblings killed open, and no wipe afterwards: suspected, never more."""
    run = closed_then_killed(release)
    assert run.findings(ID) == []
    app = reopened(run)
    app.restores("0_1", 6999, puts=0)
    run.wait(15)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence) == (
        Level.DAMAGE,
        Severity.WARNING,
        Confidence.SUSPECTED,
    )
    assert (finding.task_id, finding.affected) == ("0_1", Affected.YES)
    assert finding.missing_facts == ("aborted transactions in the changelog",)


def test_not_before_the_reopening_is_settled():
    """Without a checkpoint it takes ten seconds after the reopening to know that no wipe comes."""
    run = closed_then_killed()
    reopened(run)
    run.wait(9)
    assert run.findings(ID) == []
    run.wait(3)
    assert len(run.findings(ID)) == 1


def test_quiet_when_wiped():
    """A wipe at the next start is what is due."""
    run = closed_then_killed()
    app = reopened(run)
    app.wipes("0_1")
    run.wait(30)
    assert run.findings(ID) == []


@pytest.mark.twin_of(ID, "revoked seconds before the kill")
def test_quiet_for_a_revoked_task():
    """A task that was let go six seconds before the kill was revoked."""
    run = closed_then_killed(between=6)
    reopened(run)
    run.wait(30)
    assert run.findings(ID) == []


@pytest.mark.twin_of(ID, "an orderly stop: no other task died open")
def test_quiet_for_an_orderly_stop():
    """When everything is closed, nothing was interrupted."""
    run = Scenario("4.1.2", EOS)
    app = run.start()
    for task_id in ("0_0", "0_1"):
        app.opens(task_id)
        app.restores(task_id, 1999, puts=2000)
    run.wait(5)
    app.stops({"0_0": 2500, "0_1": 2500})
    run.wait(5)
    reopened(run)
    run.wait(30)
    assert run.findings(ID) == []


def test_quiet_without_siblings():
    """With no other task held to the end a kill after a close cannot be told from a stop."""
    run = closed_then_killed(siblings=False)
    reopened(run)
    run.wait(30)
    assert run.findings(ID) == []


@pytest.mark.twin_of(ID, "killed open")
def test_quiet_for_a_plain_crash():
    """A kill of open stores is no interrupted wipe."""
    run = Scenario("4.1.2", EOS)
    app = run.start()
    for task_id in ("0_0", "0_1"):
        app.opens(task_id)
        app.restores(task_id, 1999, puts=2000)
    run.wait(5)
    app.crash()
    run.wait(5)
    reopened(run)
    run.wait(30)
    assert run.findings(ID) == []


@pytest.mark.twin_of(ID, "closed without an offset (4.3+)")
def test_quiet_without_a_fresh_offset():
    """A dirty close writes no offset: on 4.3 that is a false clean, before it a skipped wipe."""
    run = closed_then_killed("4.3.1", offset=None)
    reopened(run)
    run.wait(30)
    assert run.findings(ID) == []


@pytest.mark.parametrize(
    ("release", "guarantee", "hidden"),
    [
        ("3.7.2", EOS, ()),
        ("4.4.0", EOS, ()),
        ("4.1.2", "at_least_once", ()),
        ("4.1.2", EOS, ("processing_guarantee",)),
    ],
)
def test_quiet_elsewhere(release, guarantee, hidden):
    """Other releases, at-least-once, and an unknown guarantee."""
    run = closed_then_killed(release, guarantee, hidden=hidden)
    app = reopened(run)
    app.restores("0_1", 6999, puts=0)
    run.wait(30)
    assert run.findings(ID) == []


# -- the exact boundary ---------------------------------------------------------------------------------------


def dossier(
    *,
    closed: float = 49.9,
    sibling_opened: float = 0,
    sibling_released: float = 50,
    sibling_closed: bool | None = False,
    sibling_id: str = "0_1",
    announced: bool = True,
    **settings: Any,
) -> Any:
    """The process ended at 50 s; 0_0 was closed at `closed` and reopened at 60 s, 0_1 was let go at the end."""
    app = Application("app", exists=True)
    app.lives += (ProcessLife(at(0), at(50), announced),)
    before = session(1, closed, puts=7000, last=mark(closed - 0.01, 6999, 7000))
    before.closed = True
    after = session(60, first=mark(61, 6999, 7000))
    other = session(sibling_opened, sibling_released, puts=5000)
    other.closed = sibling_closed
    sibling = task(store([database()], [other]), task_id=sibling_id)
    return case(task(store([database(puts=7000)], [before, after])), sibling, application=app, **settings)


@pytest.mark.parametrize(
    ("closed", "said"), [(44.9, 0), (45, 1), (49.9, 1), (49.992, 1), (49.993, 0), (50.1, 0)]
)
def test_time_between_close_and_kill(closed, said):
    """Up to five seconds before the kill; a release within eight milliseconds of the sibling's is the kill itself."""
    assert len(judge(ID, dossier(closed=closed))) == said


@pytest.mark.parametrize(("released", "said"), [(49, 0), (50, 1), (51, 1), (51.1, 0)])
def test_sibling_ends_with_the_process(released, said):
    """A sibling that went a second or less around the end went with it, and after this task was closed."""
    assert len(judge(ID, dossier(sibling_released=released))) == said


@pytest.mark.parametrize(
    ("lives", "said"),
    [([(-90, -50), (0, 50), (55, None)], 1), ([(0, None)], 0), ([(-90, -50)], 0)],
)
def test_the_life_that_ended_then(lives, said):
    """Earlier lives, and the one that lasts, are not the one that was killed."""
    one = dossier()
    one.application.lives = tuple(ProcessLife(at(a), None if b is None else at(b), True) for a, b in lives)
    assert len(judge(ID, one)) == said


def test_any_sibling_will_do():
    """One that was closed in time, one that lasts and one that came later stand before the one that was killed."""
    one = dossier()
    killed = one.application.tasks.pop("0_1")
    assert judge(ID, one) == []
    for number, (opened, released, closed) in enumerate([(0, 50, True), (0, None, None), (55, 70, False)], 2):
        other = session(opened, released, puts=5000)
        other.closed = closed
        one.application.tasks[f"0_{number}"] = task(store([database()], [other]), task_id=f"0_{number}")
    assert judge(ID, one) == []
    one.application.tasks["0_9"] = killed
    assert len(judge(ID, one)) == 1


def test_close_at_the_very_end():
    """A close at the moment of the end is the end."""
    assert judge(ID, dossier(closed=50)) == []
    assert len(judge(ID, dossier(closed=50, sibling_released=50.1))) == 1


def test_sibling_that_was_there_and_not_closed():
    """A sibling that was closed, is too short to tell, or was opened after the end, proves nothing."""
    assert judge(ID, dossier(sibling_closed=True)) == []
    assert judge(ID, dossier(sibling_closed=None)) == []
    assert judge(ID, dossier(sibling_opened=50, sibling_released=50.5)) == []


def test_global_state_is_no_sibling():
    """An orderly stop closes the stream threads' tasks, then the global state: found live with 3.8.1 and 3.9.0."""
    assert judge(ID, dossier(sibling_id="global")) == []


@pytest.mark.parametrize(
    ("written", "said"),
    [((39.8,), 1), ((49.8,), 1), ((49.89,), 0), ((49.95,), 0), ((5, 39.8), 1), ((5, 40), 0), ((5, 49.8), 0)],
)
def test_sibling_with_a_new_checkpoint_was_stopped(written, said):
    """An orderly stop writes the checkpoints of all tasks in the order in which it closes them.

    One after this task's own shows a stop; so does a second one of the session a few seconds before it, from another
    thread. The first of a session is that of the restoration. It may name no known store.
    """
    one = dossier()
    sibling = one.application.tasks["0_1"]
    sibling.checkpoints = tuple(CheckpointFact(at(x), at(x), {}, (), 1, True) for x in written)
    assert len(judge(ID, one)) == said


@pytest.mark.twin_of(ID, "killed open")
@pytest.mark.twin_of(ID, "held too briefly to tell how it ended")
def test_offset_must_be_fresh():
    """A session without a close, and on 4.3 one whose close wrote no offset, is another matter."""
    one = dossier()
    first = one.task.stores["s"].sessions[0]
    first.closed_with_offset = False
    assert len(judge(ID, one)) == 1
    for first.closed in (False, None):
        assert judge(ID, one) == []
    newest = dossier(release="4.3.1")
    for without in (False, None):
        newest.task.stores["s"].sessions[0].closed_with_offset = without
        assert judge(ID, newest) == []


def test_chain_of_the_verdict():
    """Opened, closed, process gone, opened again: in this order, dated to the reopening, on this incarnation."""
    verdict = judge(ID, dossier())[0]
    assert [step.at_us for step in verdict.evidence] == [at(1), at(49.9), at(50), at(60)]
    assert (verdict.subject, verdict.opened_at_us) == (f"kill@{at(50)}", at(60))
    assert (verdict.identity, verdict.upstream) == ("identity-1", ())
    assert "0.1 s before" in verdict.summary
    assert "2.0 s before" in judge(ID, dossier(closed=48))[0].summary


def test_every_session_is_judged():
    """A good restart before, or another store of the task, does not hide the interrupted wipe."""
    one = dossier()
    first = session(-60, -50, puts=7000)
    first.closed = True
    one.task.stores["s"].sessions = (first, *one.task.stores["s"].sessions)
    one.task.stores = {"a": store(name="a"), **one.task.stores}
    assert [verdict.opened_at_us for verdict in judge(ID, one)] == [at(60)]


def test_session_that_lasts_was_not_interrupted():
    """Another store of the task that nobody ever released says nothing."""
    one = dossier()
    one.task.stores["s"].sessions[0].released_us = None
    assert judge(ID, one) == []


def test_unknown_release_is_possibly_affected():
    """The suspicion stands when the release is not known."""
    assert judge(ID, dossier(release=None))[0].affected is Affected.POSSIBLY


@pytest.mark.parametrize("release", ["4.3.0", "4.3.1"])
def test_orderly_stop_with_segments(release):
    """Each segment counts its own sequence numbers: a closed sibling with an old, small segment was closed."""
    run = Scenario(release, EOS, stores={"s": KEY_VALUE, "w": WINDOWED})
    app = run.start()
    for task_id in ("0_0", "0_1"):
        app.opens(task_id)
        app.puts(task_id, 100, segment=0)
        app.flushes(task_id)
        app.puts(task_id, 5000, segment=60_000)
    run.wait(5)
    for _ in range(2):
        app.closes("0_0", 5099)
        run.wait(0.05)
        app.closes("0_1", 5099)
        run.wait(0.05)
        app.ends()
        run.wait(5)
        app = run.start()
        for task_id in ("0_0", "0_1"):
            app.opens(task_id)
        run.wait(15)
    assert run.loud() == []
    assert run.world.pipeline is not None
    sessions = run.world.pipeline.inventory.applications["app"].tasks["0_0"].stores["w"].sessions
    assert [one.closed for one in sessions if one.released_us is not None] == [True, True]
