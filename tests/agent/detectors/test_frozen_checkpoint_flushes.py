"""Detector `frozen-checkpoint`: every store is looked at, and only flushes after the checkpoint count."""

from __future__ import annotations

from dataclasses import replace

from agent.inventory.blindness import note_blind
from agent.inventory.model import Store
from agent.judging.base import TaskCase
from tests.support.scenario_case import at, case, database, judge, mark, session, store, task

ID = "frozen-checkpoint"


def frozen(name: str, *, flushed: float = 20, marked: bool = True):
    """10,001 puts beyond the checkpoint of 10 s."""
    files = database(puts=11_001, flushed=[(11_001, flushed)])
    return store([files], [session(0, first=mark(10, 999, 1000) if marked else None)], name=name)


def dossier(*stores: Store) -> TaskCase:
    """At-least-once, commits every two seconds."""
    told = {"commit_interval_ms": 2000}
    return case(task(*stores), release="3.9.2", guarantee="at_least_once", told=told)


def test_other_stores_hide_nothing():
    """A store without a checkpoint in its session stands before the frozen one; two frozen ones are told once."""
    verdicts = judge(ID, dossier(frozen("a", marked=False), frozen("b"), frozen("c")))
    assert len(verdicts) == 1
    assert "store b were" in verdicts[0].summary


def test_flush_of_the_checkpoint_itself():
    """What was flushed with the checkpoint, at the same moment, made no new one due."""
    assert judge(ID, dossier(frozen("a", flushed=10))) == []
    assert judge(ID, dossier(frozen("a", flushed=10.1)))[0].opened_at_us == at(10.1)


def test_clock_that_was_set_forward():
    """By an hour, two seconds after the flush: no commit was missed yet; ten seconds later five were."""
    for now_s, said in ((3632, 0), (3632.1, 1)):
        one = replace(dossier(frozen("a", flushed=22)), now_us=at(now_s))
        note_blind(one.inventory, at(24), at(3624), "clock-step")
        assert len(judge(ID, one)) == said
