"""A store that says open while nobody holds it: what is said before the start."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.inventory.disk import LockState
from agent.inventory.model import Database
from agent.inventory.observations import StoreOffsets
from agent.layout.profile import Truth
from tests.support.scenario_case import at, case, database, judge, store, task

ID = "unopenable-task"


def left_open(
    segment: str | None = None,
    *,
    status: int | None = 1,
    lock: LockState | None = LockState.FREE,
    since: float = 50,
) -> Database:
    """A database whose status says open; its lock is free since then, and it was read at 60 s."""
    files = database(segment=segment, identity=f"id-{segment}", lock=lock)
    files.offsets = StoreOffsets(status=status, status_sequence=7)
    files.lock_since_us, files.seen_us = at(since) if since else 0, at(60)
    return files


@pytest.mark.parametrize(
    ("status", "lock", "number"),
    [
        (1, LockState.FREE, 1),
        (0, LockState.FREE, 0),
        (None, LockState.FREE, 0),
        (1, LockState.HELD, 0),
        (1, LockState.UNKNOWN, 0),
        (1, None, 0),
    ],
)
def test_open_and_free(status, lock, number):
    """Both must be known: the status, and that nobody holds it. Whether the stores are transactional is not."""
    found = judge(ID, case(task(store([left_open(status=status, lock=lock)])), release="4.4.0"))
    assert len(found) == number
    for one in found:
        assert (one.severity, one.confidence) == (Severity.INFO, Confidence.CONFIRMED)
        assert one.missing_facts == ("enable_transactional_statestores",)


def test_without_the_guarantee_it_is_asked_for():
    """Transactional stores are configured; whether a start refuses the store depends on the guarantee."""
    told = {"enable_transactional_statestores": "true"}
    one = case(task(store([left_open()])), release="4.4.0", guarantee=None, told=told)
    one = replace(one, profile=replace(one.profile, transactional=Truth.YES))
    (found,) = judge(ID, one)
    assert (found.severity, found.missing_facts) == (Severity.INFO, ("processing_guarantee",))
    assert "under exactly-once" in found.summary


WIPED = pytest.mark.twin_of(ID, "without transactional stores the next start wipes the store")


@pytest.mark.parametrize("release", ["4.2.1", pytest.param("4.3.1", marks=WIPED)])
def test_a_release_without_transactional_stores_wipes_it(release):
    """Kafka Streams handles it: no finding."""
    assert judge(ID, case(task(store([left_open()])), release=release)) == []


@pytest.mark.parametrize(
    ("guarantee", "then"),
    [
        ("exactly_once_v2", "the application fails at every start"),
        (None, "under exactly-once the application fails"),
    ],
)
def test_a_global_store_is_never_wiped(guarantee, then):
    """KAFKA-21034: under exactly-once its directory must be removed by hand."""
    one = case(task(store([left_open()]), task_id="global"), release="4.3.1", guarantee=guarantee)
    (found,) = judge(ID, one)
    assert then in found.summary
    assert (found.level or Level.EXPOSURE, found.affected) == (Level.EXPOSURE, Affected.YES)
    assert "remove that directory only" in found.next_action


def test_a_global_store_under_at_least_once():
    """It is opened whatever its status says."""
    one = case(task(store([left_open()]), task_id="global"), release="4.3.1", guarantee="at_least_once")
    assert judge(ID, one) == []


@pytest.mark.parametrize(("since", "dated"), [(50, 50), (0, 60)])
def test_dated_to_the_release_of_the_lock(since, dated):
    """The moment is when the lock became free; of one that was free from the first reading on it is the reading."""
    (verdict,) = judge(ID, case(task(store([left_open(since=since)])), release="4.4.0"))
    assert verdict.opened_at_us == at(dated)
    assert [step.at_us for step in verdict.evidence] == [at(60), at(dated)]


def test_one_segment_answers_for_its_store():
    """Segments that were closed do not hide an open one; of two open ones one is named; every store is judged."""
    segments = [left_open("w.0", status=0), left_open("w.1"), left_open("w.2")]
    windowed = store(segments, segmented=True, name="w")
    verdicts = judge(ID, case(task(windowed, store([left_open()], name="s")), release="4.4.0"))
    assert [(x.store, x.identity) for x in verdicts] == [("w", "id-w.1"), ("s", "id-None")]
