"""Detector `startup-lock-leak`: what it compares, and the life that it speaks of."""

from __future__ import annotations

from agent.inventory.model import Application, ProcessLife
from tests.support.scenario_case import at, case, database, judge, session, store, task

ID = "startup-lock-leak"


def dossier(*extra, released: float = 50):
    """The process ended at 50 s; 0_0 was let go without a close, 0_1 was closed; 0_2 has the sessions `extra`."""
    app = Application("app", exists=True)
    app.lives += (ProcessLife(at(0), at(50)),)
    mine, other = session(1, released, puts=101, puts_at_open=100), session(1, 49.9, puts=100)
    mine.closed, other.closed = False, True
    third = task(store([database()], extra), task_id="0_2")
    return case(
        task(store([database()], [mine])),
        task(store([database()], [other]), task_id="0_1"),
        third,
        application=app,
        release="4.3.0",
    )


def test_sessions_of_other_times_say_nothing():
    """A session that was let go unclosed at another time, or that lasts, is not of this end."""
    unclosed = session(1, 30)
    unclosed.closed = False
    assert len(judge(ID, dossier(unclosed))) == 1
    assert len(judge(ID, dossier(session(60)))) == 1


def test_named_by_its_life():
    """Two looks at the same end are one finding: its subject is the end of the process."""
    assert judge(ID, dossier())[0].subject == str(at(50))
    assert judge(ID, dossier(released=49.5))[0].subject == str(at(50))
