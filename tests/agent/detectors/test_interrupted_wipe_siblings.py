"""Detector `interrupted-wipe`: which life, which siblings, which times."""

from __future__ import annotations

from agent.inventory.model import Application, ProcessLife
from tests.support.scenario_case import at, case, database, judge, mark, session, store, task

ID = "interrupted-wipe"


def dossier(*siblings, lives=((0, 50),), closed: float = 49.9):
    """0_0 was closed at `closed` and reopened at 60 s; `siblings` are sessions of other tasks."""
    app = Application("app", exists=True)
    app.lives += tuple(ProcessLife(at(a), None if b is None else at(b)) for a, b in lives)
    before = session(1, closed, puts=7000, last=mark(closed - 0.01, 6999, 7000))
    before.closed = True
    mine = task(store([database(puts=7000)], [before, session(60, first=mark(61, 6999, 7000))]))
    others = [task(store([database()], [x]), task_id=f"0_{n}") for n, x in enumerate(siblings, start=1)]
    return case(mine, *others, application=app)


def let_go(released: float | None = 50, opened: float = 0):
    """A sibling's session that ended without a close."""
    one = session(opened, released, puts=5000)
    one.closed = False
    return one


def test_the_life_that_ended_then():
    """Earlier lives, and the one that lasts, are not the one that was killed."""
    assert len(judge(ID, dossier(let_go(), lives=((-90, -50), (0, 50), (55, None))))) == 1
    assert judge(ID, dossier(let_go(), lives=((0, None),))) == []
    assert judge(ID, dossier(let_go(), lives=((-90, -50),))) == []


def test_any_sibling_will_do():
    """One that was closed in time, one that lasts and one that came later stand before the one that was killed."""
    closed = let_go()
    closed.closed = True
    assert len(judge(ID, dossier(closed, let_go(None), let_go(70, 55), let_go()))) == 1
    assert judge(ID, dossier(closed, let_go(None), let_go(70, 55))) == []
    assert judge(ID, dossier()) == []


def test_close_at_the_very_end():
    """A close at the moment of the end is the end."""
    assert judge(ID, dossier(let_go(), closed=50)) == []
    assert len(judge(ID, dossier(let_go(50.1), closed=50))) == 1
