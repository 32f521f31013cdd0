"""Detector `false-clean-store`: the chain it tells, each step at its own time."""

from __future__ import annotations

from agent.judging.base import TaskCase
from tests.support.scenario_case import at, case, database, judge, session, store, task

ID = "false-clean-store"


def dossier(*, stored: int | None = 1500, released: float | None = 60) -> TaskCase:
    """Closed at 20 s without its offset, 1,000 puts flushed; opened at 30 s, stored `stored`, released."""
    before = session(0, 20, puts=2000, puts_at_open=1000)
    before.closed, before.closed_with_offset, before.stored_offset_at_open = True, False, 999
    before.uncovered_puts, before.covering_offset = 1000, 999
    after = session(30, released)
    after.stored_offset = stored
    return case(task(store([database(puts=2000)], [before, after])), release="4.3.1")


def test_chain_to_the_proof():
    """Opening, close, reopening, and the release at which the next offset was known."""
    verdict = judge(ID, dossier())[0]
    assert [step.at_us for step in verdict.evidence] == [at(0), at(20), at(30), at(60)]
    assert (verdict.subject, verdict.opened_at_us) == (f"close@{at(20)}", at(30))
    assert "never committed" in verdict.summary
    assert "perhaps" not in verdict.summary


def test_chain_while_the_session_lasts():
    """An offset that is stored while the store is open is as old as the look."""
    assert judge(ID, dossier(released=None))[0].evidence[-1].at_us == at(100)


def test_chain_without_the_proof():
    """As long as no offset was stored since, nothing is proved."""
    verdict = judge(ID, dossier(stored=None))[0]
    assert [step.at_us for step in verdict.evidence] == [at(0), at(20), at(30)]
    assert "perhaps never committed" in verdict.summary
