"""Detector `overlaid-store`: the chain it tells."""

from __future__ import annotations

from tests.support.scenario_case import at, case, database, judge, session, store, task

ID = "overlaid-store"


def test_chain():
    """Release and opening, with the time between them; each such opening is told."""
    sessions = [session(0, 20, puts=3000), session(32, 50, puts=3500), session(64)]
    verdicts = judge(ID, case(task(store([database(puts=3500)], sessions)), release="3.9.2"))
    assert [x.opened_at_us for x in verdicts] == [at(32), at(64)]
    assert [[step.at_us for step in x.evidence] for x in verdicts] == [[at(20), at(32)], [at(50), at(64)]]
    assert "12 s later" in verdicts[0].evidence[1].what
    assert "14 s later" in verdicts[1].evidence[1].what


def test_a_single_put_is_overlaid():
    """What counts is that the store is not empty."""
    sessions = [session(0, 20, puts=1), session(32)]
    assert len(judge(ID, case(task(store([database(puts=1)], sessions)), release="3.9.2"))) == 1
