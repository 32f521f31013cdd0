"""Openings: what lay on disk when a windowed store was opened again, whatever the order of the looks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.inventory.model import ProcessLife, Store
from agent.inventory.observations import DatabaseReading, StoreOffsets
from agent.inventory.openings import segments_of
from tests.support.scenario_case import at, database
from tests.support.scenario_looks import FREE, HELD, TASK, Reducing, database_look, flush

NAMES = ("w.0", "w.60", "w.120")
TOPIC = "app-w-changelog-0"


def offsets(
    offset: int | None = None, *, status: int = 1, written: float = 5, sequence: int = 9
) -> StoreOffsets:
    """An `offsets` family."""
    rows = () if offset is None else ((TOPIC, offset, sequence),)
    return StoreOffsets(status=status, offsets=rows, written_us=at(written))


def look(seconds: float, name: str = "w.0", **more) -> DatabaseReading:
    """A look at a segment."""
    fields = {"offsets": offsets(), "born": 1, "path": f"{TASK}/w/{name}", **more}
    return database_look(seconds, f"id-{name}", **fields)


def store_of(run: Reducing) -> Store:
    """The windowed store."""
    return run.task.stores["w"]


def held() -> Reducing:
    """Three segments that somebody holds; only the last one has an offset."""
    run = Reducing()
    for name in NAMES:
        stored = offsets(99) if name == "w.120" else StoreOffsets()
        run.see(look(2, name, offsets=stored))
    return run


def reopened(seconds: float, name: str, times: tuple[float, ...], manifest: int) -> DatabaseReading:
    """The look that finds a segment opened again: the start-up pass has written its offset already."""
    return look(seconds, name, reopened=times, manifest=manifest, offsets=offsets(99, status=0, written=10))


@given(st.permutations(NAMES))
def test_picture_from_before_the_first_reading(order):
    """Whichever segment is looked at first: the picture is of before, and all of them are one opening."""
    run = held()
    for number, name in enumerate(order):
        run.see(reopened(11 + number, name, (10,), 12))
    (opening,) = store_of(run).openings
    assert opening.at_us == at(10)
    assert [x.name for x in opening.segments] == list(NAMES)
    assert [x.offset(TOPIC) for x in opening.segments] == [None, None, 99]
    assert [x.status for x in opening.segments] == [None, None, 1]


@given(st.permutations(NAMES))
def test_second_opening_is_another_one(order):
    """Start-up pass and task: two openings, the second with what the first one wrote."""
    run = held()
    for name in NAMES:
        run.see(reopened(11, name, (10,), 12))
    for name in order:
        run.see(reopened(21, name, (10, 20), 19))
    first, second = store_of(run).openings
    assert (first.at_us, second.at_us) == (at(10), at(20))
    assert [x.offset(TOPIC) for x in second.segments] == [99, 99, 99]


@given(st.permutations(NAMES))
def test_flush_of_a_close_that_is_read_late(order):
    """All segments were closed, and the first is open again when the last one is read: the flush is in the picture."""
    run = held()
    first, second, third = order
    closed = {"puts": 500, "flushes": (flush(8, 500, 9),), "offsets": offsets(99, status=0, written=9)}
    run.see(look(9, second, **closed), reopened(11, first, (10,), 12))
    run.see(look(11.1, third, **closed))
    run.see(look(11.3, third, reopened=(11.2,), manifest=12, opened_puts=500, **closed))
    (opening,) = store_of(run).openings
    assert {x.name for x in opening.segments if x.has_data} == {second, third}
    assert {x.flushed_us for x in opening.segments if x.has_data} == {at(9)}
    late = next(x for x in opening.segments if x.name == third)
    assert (late.status, late.offset(TOPIC)) == (0, 99)


def lived(
    *looks: DatabaseReading, lives: tuple[tuple[float, float | None], ...] = ((1, 8), (9, None))
) -> Reducing:
    """Three segments whose process was killed at 8 s and came again at 9 s, then these looks."""
    run = held()
    run.application.lives += tuple(ProcessLife(at(a), None if b is None else at(b)) for a, b in lives)
    run.see(*looks)
    return run


def then(*looks: DatabaseReading) -> Reducing:
    """Three segments that somebody holds, then these looks."""
    return lived(*looks, lives=())


def pictured(run: Reducing) -> list[str]:
    """Names in the newest picture."""
    return [x.name for x in store_of(run).openings[-1].segments]


NEW = {"puts": 500, "flushes": (flush(8, 500, 10.5),), "offsets": offsets(99, status=0, written=10.5)}
EARLIER = {"puts": 500, "flushes": (flush(8, 500, 9),), "offsets": offsets(99, status=0, written=9)}
# fmt: off
PICTURES: dict[str, Any] = {
    "a flush that no one read came before the opening":
        (lambda: then(look(11, reopened=(10,), manifest=12, puts=500, opened_puts=500)),
         lambda x: [(y.has_data, y.flushed_us) for y in store_of(x).openings[0].segments][:2], [(True, at(10)),
          (False, 0)]),
    "what was given out is no flush: after a compaction into the last level the manifest says that":
        (lambda: then(replace(look(11, reopened=(10,), manifest=12, opened_puts=12), zeroed_puts=12)),
         lambda x: store_of(x).openings[0].segments[0].has_data, False),
    "by its own time a flush after the opening is not in its picture":
        (lambda: then(reopened(11, "w.0", (10,), 12), look(11.1, "w.60", **NEW)),
         lambda x: [y.has_data for y in store_of(x).openings[0].segments], [False] * 3),
    "nor where the segment is open again: a manifest may be read before its successor is there":
        (lambda: then(reopened(11, "w.0", (10,), 12), look(11.1, "w.60", reopened=(10.2,), **EARLIER)),
         lambda x: [y.has_data for y in store_of(x).openings[0].segments], [False] * 3),
    "a database that the opening itself made, where an expired segment was half deleted, is not in it":
        (lambda: lived(look(10, "w.30", born=9.9), reopened(11, "w.60", (10,), 12)), pictured, list(NAMES)),
    **{f"where no end of a process was seen before the opening it may have been made by a put: {lives}":
        (lambda lives=lives: lived(look(10, "w.30", born=9.9), reopened(11, "w.60", (10,), 12), lives=lives),
         lambda x: "w.30" in pictured(x), True) for lives in ((), ((1, None),), ((1, 20),))},
    "by a clock that was set back only what is born right before the opening is new":
        (lambda: lived(look(20, "w.30", born=15), reopened(31, "w.60", (30,), 12)),
         lambda x: "w.30" in pictured(x), True),
    "what was made between two openings may have lived through an end that was not seen":
        (lambda: lived(reopened(11, "w.60", (10,), 12), look(12, "w.180", born=11.5), reopened(21, "w.60", (10,
         20), 19)),
         lambda x: "w.180" in pictured(x), True),
    "a new manifest without a log is no opening: RocksDB may begin one in the middle of a life":
        (lambda: then(look(11, manifest=30)), lambda x: store_of(x).openings, ()),
    "the database of a key-value store answers for itself":
        (lambda: then(database_look(2, offsets=offsets(5)), database_look(11, reopened=(10,), manifest=12)),
         lambda x: (x.store.openings, segments_of(x.store)), ((), ())),
    "a file of data is data, also one whose sequence numbers a compaction set to 0; one of offsets is none":
        (lambda: then(replace(look(3, "w.0"), families_in_use=("offsets",)),
                      replace(look(3, "w.60"), families_in_use=("default", "offsets"))),
         lambda x: [y.has_data for y in segments_of(store_of(x)) or ()][:2], [False, True]),
    "offsets that could not be read stay what they were, and the store is not judged":
        (lambda: then(replace(look(9, "w.120", offsets=None), offsets_unread=True)),
         lambda x: (store_of(x).databases["w.120"].offsets, segments_of(store_of(x))), (offsets(99), None)),
    "segments are ordered by number, not by name":
        (held, lambda x: [y.name for y in segments_of(store_of(x)) or ()], list(NAMES)),
    "a compaction writes the same offset to a new file: it is as old as before":
        (lambda: then(look(6, offsets=offsets(99, written=5)), look(9, offsets=offsets(99, written=8, sequence=0))),
         lambda x: store_of(x).databases["w.0"].offset_us, at(5)),
    "a new value is new":
        (lambda: then(look(6, offsets=offsets(99, written=5)), look(12, offsets=offsets(120, written=11))),
         lambda x: store_of(x).databases["w.0"].offset_us, at(11)),
    **{f"an offset of sequence {sequence} beside data up to 10 is last: {is_last}":
        (lambda sequence=sequence: then(look(6, offsets=offsets(99, sequence=sequence), puts=10, flushes=(flush(8,
         10, 4),))),
         lambda x: (segments_of(store_of(x)) or ())[0].offset_last, is_last)
       for sequence, is_last in {12: True, 9: False, 0: None}.items()},
}
# fmt: on


@pytest.mark.parametrize(("run", "ask", "expected"), PICTURES.values(), ids=PICTURES)
def test_pictures(run, ask, expected):
    """Each row says what it is about."""
    assert ask(run()) == expected


@pytest.mark.parametrize(("lock", "count"), [(FREE, 1), (HELD, 0)])
def test_few_logs_kept(lock, count):
    """Where no log tells: a new manifest of a database that was free before."""
    run = Reducing()
    run.see(look(2, all_reopens=False, lock=lock), look(11, all_reopens=False, manifest=30))
    openings = store_of(run).openings
    assert len(openings) == count
    assert all(x.at_us == at(11) and x.segments[0].opened_us is None for x in openings)


def test_segment_that_could_not_be_read_is_not_empty():
    """Nothing is said of the whole store: what could not be read may hold everything."""
    files = {name: database(segment=name, identity=name) for name in ("w.0", "w.60")}
    for one in files.values():
        one.offsets = offsets(5)
    store = Store("w", segmented=True, databases=files)
    assert [x.name for x in segments_of(store) or ()] == ["w.0", "w.60"]
    for problem in (
        {"manifest_problem": "too-large"},
        {"problems": ("000012.sst: corrupt",)},
        {"missing": ("000012.sst",)},
    ):
        store.databases["w.60"] = replace(files["w.60"], **problem)
        assert segments_of(store) is None


def test_deletions_are_remembered():
    """A compaction removes them; that there were some stays true."""
    run = Reducing()
    seen = []
    for number, deletions in enumerate((None, 0, 3, 0, None)):
        run.see(look(2 + number, deletions=deletions))
        seen.append(store_of(run).databases["w.0"].deletes)
    assert seen == [None, False, True, True, True]
