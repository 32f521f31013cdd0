"""Detector `unclean-store`: times, and which database of a store speaks."""

from __future__ import annotations

from agent.inventory.model import Store
from agent.inventory.observations import StoreOffsets
from agent.judging.base import TaskCase
from tests.support.scenario_case import at, case, database, judge, store, task

ID = "unclean-store"


def left_open(segment: str | None = None, *, status: int = 1, lock_since: float = 50):
    """A database whose status says open; its lock is free since `lock_since`, looked at 60 s after the beginning."""
    files = database(segment=segment, identity=f"id-{segment}")
    files.offsets = StoreOffsets(status=status, status_sequence=7)
    files.lock_since_us, files.seen_us = at(lock_since), at(60)
    return files


def dossier(*stores: Store) -> TaskCase:
    """A task of 4.3.1."""
    return case(task(*stores), release="4.3.1")


def test_dated_to_the_release_of_the_lock():
    """The moment is when the lock became free, not when somebody looked."""
    verdict = judge(ID, dossier(store([left_open()])))[0]
    assert verdict.opened_at_us == at(50)
    assert [step.at_us for step in verdict.evidence] == [at(60), at(50)]


def test_dated_to_the_reading_where_the_lock_shows_nothing():
    """A lock that was free from the first look on has no time."""
    files = left_open()
    files.lock_since_us = 0
    verdict = judge(ID, dossier(store([files])))[0]
    assert verdict.opened_at_us == at(60)
    assert [step.at_us for step in verdict.evidence] == [at(60), at(60)]


def test_one_segment_answers_for_its_store():
    """Segments that were closed do not hide an open one; two open ones are told once; every store is judged."""
    segments = [left_open("w.0", status=0), left_open("w.1"), left_open("w.2")]
    windowed = store(segments, segmented=True, name="w")
    verdicts = judge(ID, dossier(windowed, store([left_open()], name="s")))
    assert [(x.store, x.identity) for x in verdicts] == [("w", "id-w.1"), ("s", "id-None")]
