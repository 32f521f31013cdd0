"""Detector `torn-store`: files that are not there because the application keeps them on another path (`db_paths`)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.contract.events import Confidence, Severity
from agent.inventory.disk import LockState
from tests.support.scenario_case import case, judge
from tests.support.scenario_looks import FREE, HELD, Reducing, checkpoint_look, database_look, task_look

ID = "torn-store"
SUSPECTED = [(Severity.WARNING, Confidence.SUSPECTED)]
ELSEWHERE = "000009.sst: elsewhere: it is on another path of the database (db_paths, cf_paths)"


def looked(
    *looks: tuple[LockState, int, int], problems: tuple[str, ...] = ()
) -> list[tuple[Severity, Confidence]]:
    """What is said minutes after looks at (lock, live files, of these not there), five seconds apart."""
    one = Reducing()
    one.see(task_look(0.5), database_look(1, born=1, lock=FREE), checkpoint_look(2, {"s": 3000}))
    for number, (lock, files, missing) in enumerate(looks):
        names = tuple(f"{x:06d}.sst" for x in range(7, 7 + missing))
        look = database_look(5 * number + 5, born=1, lock=lock)
        one.see(replace(look, files=files, missing_files=names, problems=problems))
    now = 5 * len(looks) + 200
    found = judge(ID, case(one.task, application=one.application, now=now))
    return [(x.severity, x.confidence) for x in found if "not there" in x.summary]


@pytest.mark.twin_of("torn-store", "all of its files lie on another path")
def test_an_open_store_misses_no_file():
    """RocksDB opens none that does: all of them lie elsewhere, also after it was closed."""
    assert looked((HELD, 1, 1), (HELD, 2, 2)) == []
    assert looked((HELD, 1, 1), (HELD, 2, 2), (FREE, 2, 2)) == []
    assert looked((HELD, 2, 1), (HELD, 2, 2), problems=(ELSEWHERE,)) == []


def test_no_one_was_seen_to_open_it():
    """From one look at a store that is free both are possible."""
    assert looked((FREE, 2, 2)) == SUSPECTED
    assert looked((FREE, 2, 1), problems=(ELSEWHERE,)) == SUSPECTED


@pytest.mark.parametrize(
    "looks",
    [
        [(HELD, 2, 0), (HELD, 2, 2)],
        [(HELD, 2, 1), (HELD, 2, 2)],
        [(HELD, 2, 0), (FREE, 2, 2)],
        [(FREE, 2, 1)],
        [(HELD, 2, 2), (HELD, 2, 2), (HELD, 3, 2), (FREE, 3, 3)],
    ],
)
def test_a_file_that_was_seen_there_shows_where_they_lie(looks):
    """Then what is missing was taken away, whoever holds the store."""
    assert [confidence for _, confidence in looked(*looks)] == [Confidence.CONFIRMED]


def test_files_on_another_path_are_a_remark():
    """It says how many, and where, as the manifest or LOG has it."""
    one = Reducing()
    problems = tuple(f"00000{n}.sst: elsewhere: LOG says that it is in /fast (db_paths)" for n in (7, 8))
    one.see(task_look(0.5), replace(database_look(5, born=1, lock=FREE), files=2, problems=problems))
    (verdict,) = judge(ID, case(one.task, application=one.application, now=200))
    assert (verdict.severity, verdict.confidence) == (Severity.INFO, Confidence.CONFIRMED)
    assert "2 files of store s are on another path" in verdict.summary
    assert "/fast (db_paths)" in verdict.summary
