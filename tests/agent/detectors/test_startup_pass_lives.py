"""Detector `startup-pass`: each life with its own stores, in order of time."""

from __future__ import annotations

from agent.inventory.model import Application, ProcessLife
from tests.support.scenario_case import at, case, database, judge, session, store, task

ID = "startup-pass"


def dossier(*opened: float, lives: tuple[tuple[float, float | None], ...] = ((0, None),), now: float = 100):
    """One task for each time at which a store was opened."""
    app = Application("app", exists=True)
    app.lives += tuple(ProcessLife(at(a), None if b is None else at(b)) for a, b in lives)
    tasks = [task(store([database()], [session(x)]), task_id=f"0_{n}") for n, x in enumerate(opened)]
    return case(*tasks, application=app, release="4.3.1", now=now)


def test_in_order_of_time():
    """The tasks are told as they were opened, with the time that it took and when it began."""
    verdict = judge(ID, dossier(5, 2, 3))[0]
    assert [step.at_us for step in verdict.evidence] == [at(0), at(2), at(3), at(5)]
    assert "3 stores on disk opened within 3.0 s, 2.0 s after the start" in verdict.summary
    assert verdict.opened_at_us == at(0)


def test_a_life_that_shows_nothing_yet_hides_no_other():
    """A life without openings, and one that has just begun, stand beside one that is told."""
    lives = ((-50, -40), (0, 50), (95, None))
    assert [x.subject for x in judge(ID, dossier(2, lives=lives))] == [str(at(0))]
    swapped = ((95, None), (0, 50))
    assert [x.subject for x in judge(ID, dossier(2, lives=swapped))] == [str(at(0))]
