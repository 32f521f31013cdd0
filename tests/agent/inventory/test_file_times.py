"""The clock of a file server: how the difference is measured, and what moves with it."""

from __future__ import annotations

import pytest

from agent.inventory.file_times import ClockDifference, clock_sentence, move_file_times
from agent.inventory.model import Application, Inventory
from agent.inventory.observations import StoreOffsets
from agent.inventory.segments import Opening, Segment
from tests.support.scenario_case import at, checkpoint, database, mark, past, session, store, task

SECOND_US = 1_000_000


def measured(*differences_s: float) -> int | None:
    """What is known after files with these times, announced now."""
    clock, found = ClockDifference(), None
    for each in differences_s:
        found = clock.note(at(100 + each), at(100))
    return found


@pytest.mark.parametrize(
    ("differences", "ahead_s"),
    [
        ((3,), None),  # one may be any file
        ((3, 3), 3),
        ((-0.5, -0.51), -0.5),
        ((-0.1, -0.1), 0),  # a delay of our own looks the same
        ((-0.101, -2), -0.101),
        ((2.9, 3, 2.2), 3),  # the least delay counts
        ((7_200, 0, 0), 0),  # set by hand
        ((-0.3, -0.2, 0, -0.4), 0),  # one file that was heard of in time is enough
    ],
)
def test_difference(differences, ahead_s):
    """The largest one has the least delay of our own in it."""
    assert measured(*differences) == (None if ahead_s is None else round(ahead_s * SECOND_US))


def test_everything_that_is_known_by_a_file_moves():
    """What is known by an announcement, a lock or a name does not."""
    files = database(puts=9, flushed=[(5, 3), (9, 7)], born=1)
    files.options_written_us, files.touched_us, files.reopened_us = at(2), at(8), (at(2),)
    files.offsets = StoreOffsets(written_us=at(7))
    made, opened = session(1, 5, first=mark(4, 5, 5), last=mark(6, 9, 9)), session(2)
    made.bulk_load_commits = (at(4),)
    kept = store([files], [made, opened])
    kept.past += (past(0.5, flushed=0.2),)
    one = Segment("w.0", "app/0_0/w/w.0", 0, "i", at(1), at(1), 5, True, StoreOffsets(), at(6), at(7))
    kept.openings = (Opening(at(2), (one,), at(3)),)
    gone, there = checkpoint(4, 5, ended=5, deleted=True), checkpoint(6, 9)
    owner = task(kept, checkpoints=[checkpoint(3, 1, ended=4), gone, there])
    owner.mtime_us, owner.checkpoint_problem_us, owner.released_us = at(6), at(7), at(5)
    app = Application("app", tasks={"0_0": owner}, rocksdb_versions={"7.9.2": at(2)}, plain_us=at(2))
    move_file_times(Inventory({"app": app}), 10 * SECOND_US)
    assert ([*files.flushed], files.born_us) == ([(5, at(13)), (9, at(17))], at(11))
    assert (files.options_written_us, files.touched_us, files.offset_us) == (at(12), at(18), 0)
    assert (files.offsets.written_us, files.reopened_us) == (at(17), (at(2),))
    assert (made.opened_us, made.released_us, opened.opened_us) == (at(11), at(5), at(2))
    assert made.first is not None
    assert made.last is not None
    assert (made.first.at_us, made.last.at_us, made.bulk_load_commits) == (at(14), at(16), (at(14),))
    written = [(x.written_us, x.ended_us) for x in owner.checkpoints]
    assert written == [(at(13), at(14)), (at(14), at(5)), (at(16), None)]
    assert (owner.mtime_us, owner.checkpoint_problem_us, owner.released_us) == (at(16), at(17), at(5))
    assert (app.rocksdb_versions, app.plain_us, app.offsets_family_us) == ({"7.9.2": at(12)}, at(12), 0)
    ended = kept.past[0]
    assert (ended.born_us, ended.flushed_us, ended.ended_us) == (at(10), at(10.2), at(0.5))
    (opening,) = kept.openings
    (moved,) = opening.segments
    assert (opening.at_us, moved.born_us, moved.opened_us) == (at(2), at(11), at(11))
    assert (moved.offset_us, moved.flushed_us) == (at(16), at(17))


@pytest.mark.parametrize(
    ("volume", "ahead_s", "said"),
    [("local", None, ""), ("network", 0, ""), ("network", None, "not compared"), ("fuse", -3, "-3.0 s off")],
)
def test_what_is_said(volume, ahead_s, said):
    """Only where file times are a file server's, and only what is not in step."""
    ahead_us = None if ahead_s is None else ahead_s * SECOND_US
    sentence = clock_sentence(Inventory(volume=volume, ahead_us=ahead_us))
    assert said in sentence
    assert bool(sentence) == bool(said)
