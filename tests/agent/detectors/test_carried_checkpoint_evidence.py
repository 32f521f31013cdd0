"""Detector `carried-checkpoint`: the chain it tells, and the pairs it looks at."""

from __future__ import annotations

from tests.support.scenario_case import at, case, checkpoint, database, judge, session, store, task

ID = "carried-checkpoint"


def sessions(*, released: float = 20):
    """Wiped, restored in part, let go, and trusted at 30 s."""
    before, after = session(10, released, puts=500), session(30, offset_at_open=3000)
    before.wiped = True
    return before, after


def dossier(*held, written: float = 5, **settings):
    """A checkpoint of 3,000 of an older owner; the store was made at 10 s."""
    one = store([database(puts=500, born=10)], held)
    chosen = {"release": "2.1.1", "guarantee": "exactly_once", **settings}
    return case(task(one, checkpoints=[checkpoint(written, 3000)]), **chosen)


def test_chain():
    """Old checkpoint, wipe, release, reopening, each at its own time."""
    verdict = judge(ID, dossier(*sessions()))[0]
    assert [step.at_us for step in verdict.evidence] == [at(5), at(10), at(20), at(30)]
    assert (verdict.subject, verdict.opened_at_us) == ("identity-1", at(30))


def test_earlier_sessions_hide_nothing():
    """A session in order stands before the pair; a second such pair is the same damage."""
    before, after = sessions()
    assert len(judge(ID, dossier(session(1, 4), before, after))) == 1
    again = session(40, 50, puts=500, offset_at_open=3000)
    assert len(judge(ID, dossier(before, after, again))) == 1


def test_without_the_facts():
    """No database, or no checkpoint before the opening: nothing can be told."""
    gone = dossier(*sessions())
    gone.task.stores["s"].databases.clear()
    assert judge(ID, gone) == []
    assert judge(ID, dossier(*sessions(), written=31)) == []
