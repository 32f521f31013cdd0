"""Detector `zombie-state`: what it tells, and for which store."""

from __future__ import annotations

from agent.inventory.model import Store
from agent.judging.base import TaskCase
from tests.support.scenario_case import at, case, database, judge, session, store, task

ID = "zombie-state"


def idle(name: str = "s", gap: float = 12):
    """A store that was free for `gap` seconds."""
    return store([database()], [session(0, 20), session(20 + gap, offset_at_open=999)], name=name)


def dossier(*stores: Store) -> TaskCase:
    """Tombstones live ten seconds."""
    return case(task(*stores), release="3.9.2", told={"delete_retention_ms": 10_000})


def test_chain():
    """From the release to the opening, with the times that decided."""
    verdict = judge(ID, dossier(idle()))[0]
    assert [step.at_us for step in verdict.evidence] == [at(20), at(32)]
    assert (verdict.opened_at_us, verdict.store) == (at(32), "s")
    assert "unused for 12 s" in verdict.summary
    assert "(10 s)" in verdict.summary
    assert "999" in verdict.evidence[1].what


def test_one_store_answers_for_the_task():
    """A store that was not idle does not hide another; two idle ones are told once."""
    assert [x.store for x in judge(ID, dossier(idle("a", gap=5), idle("b")))] == ["b"]
    assert [x.store for x in judge(ID, dossier(idle("a"), idle("b")))] == ["a"]
