"""Openings: what lay on disk when a windowed store was opened again, whatever the order of the looks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.inventory.model import ProcessLife, Store
from agent.inventory.observations import DatabaseReading, Flush, StoreOffsets
from agent.inventory.openings import segments_of
from agent.inventory.segments import OPENINGS_KEPT
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


def test_openings_are_bounded():
    """The newest ones stay."""
    run = held()
    for number in range(1, OPENINGS_KEPT + 3):
        run.see(reopened(10 * number, "w.0", tuple(10.0 * x for x in range(1, number + 1)), 10 + number))
    assert len(store_of(run).openings) == OPENINGS_KEPT


def test_flush_that_no_one_read_came_before_the_opening():
    """The manifest of the opening begins with more than was known: the segment is not taken for empty."""
    run = held()
    run.see(look(11, "w.0", reopened=(10,), manifest=12, puts=500, opened_puts=500))
    (opening,) = store_of(run).openings
    assert opening.segments[0].has_data
    assert opening.segments[0].flushed_us == at(10)
    assert not opening.segments[1].has_data


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


@pytest.mark.parametrize(("written", "opened"), [(10.5, ()), (9, (10.2,))])
def test_flush_after_the_opening_is_not_in_its_picture(written, opened):
    """By its own time, or because the segment is open again: a manifest may be read before its successor is there."""
    run = held()
    run.see(reopened(11, "w.0", (10,), 12))
    new = {
        "puts": 500,
        "flushes": (flush(8, 500, written),),
        "offsets": offsets(99, status=0, written=written),
    }
    run.see(look(11.1, "w.60", reopened=opened, **new))
    (opening,) = store_of(run).openings
    assert [x.has_data for x in opening.segments] == [False, False, False]


def test_segment_that_the_opening_made_is_not_in_its_picture():
    """A deletion of an expired segment was killed half way: the next process makes a new database in its directory."""
    run = held()
    run.application.lives += (ProcessLife(at(1), at(8)), ProcessLife(at(9)))
    run.see(look(10, "w.30", born=9.9))
    run.see(reopened(11, "w.60", (10,), 12))
    assert [x.name for x in store_of(run).openings[0].segments] == list(NAMES)


@pytest.mark.parametrize("lives", [(), ((1, None),), ((1, 20),)])
def test_segment_that_may_have_been_made_before_stays_in_the_picture(lives):
    """Where no end of a process was seen before the opening, it may have been made by a put, and lost it."""
    run = held()
    run.application.lives += tuple(ProcessLife(at(a), None if b is None else at(b)) for a, b in lives)
    run.see(look(10, "w.30", born=9.9))
    run.see(reopened(11, "w.60", (10,), 12))
    assert "w.30" in [x.name for x in store_of(run).openings[0].segments]


def test_clock_that_was_set_back():
    """The end bears an earlier time than what was made before it: only what is born right before the opening is new."""
    run = held()
    run.application.lives += (ProcessLife(at(1), at(8)), ProcessLife(at(9)))
    run.see(look(20, "w.30", born=15))
    run.see(reopened(31, "w.60", (30,), 12))
    assert "w.30" in [x.name for x in store_of(run).openings[0].segments]


def test_segment_that_was_made_between_two_openings_stays_in_the_picture():
    """The end of the second process may be the one that was not seen."""
    run = held()
    run.application.lives += (ProcessLife(at(1), at(8)), ProcessLife(at(9)))
    run.see(reopened(11, "w.60", (10,), 12))
    run.see(look(12, "w.180", born=11.5))
    run.see(reopened(21, "w.60", (10, 20), 19))
    assert "w.180" in [x.name for x in store_of(run).openings[-1].segments]


def test_what_was_given_out_is_no_flush():
    """After a compaction into the last level the manifest tells what had been given out: nobody flushed that much."""
    run = held()
    again = look(11, "w.0", reopened=(10,), manifest=12, opened_puts=12)
    run.see(replace(again, zeroed_puts=12))
    assert not store_of(run).openings[0].segments[0].has_data


def test_file_of_data_is_data():
    """Also one whose sequence numbers a compaction set to 0; a file of offsets is none."""
    run = Reducing()
    run.see(replace(look(2, "w.0"), families_in_use=("offsets",)))
    run.see(replace(look(2, "w.60"), families_in_use=("default", "offsets")))
    assert [x.has_data for x in segments_of(store_of(run)) or ()] == [False, True]


def test_offsets_that_could_not_be_read():
    """What was known before stays, and the store is not judged."""
    run = held()
    run.see(replace(look(9, "w.120", offsets=None), offsets_unread=True))
    assert store_of(run).databases["w.120"].offsets == offsets(99)
    assert segments_of(store_of(run)) is None


def test_key_value_store_has_no_openings():
    """Its one database answers for itself."""
    run = Reducing()
    run.see(database_look(2, offsets=offsets(5)), database_look(11, reopened=(10,), manifest=12))
    assert run.store.openings == ()
    assert segments_of(run.store) == ()


def test_other_manifest_without_a_log_is_no_opening():
    """RocksDB may begin a new manifest in the middle of a life."""
    run = held()
    run.see(look(11, "w.0", manifest=30))
    assert store_of(run).openings == ()


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


def test_segments_in_the_order_of_their_time():
    """By number, not by name."""
    run = held()
    assert [x.name for x in segments_of(store_of(run)) or ()] == list(NAMES)


def test_offset_dates_from_when_it_was_written_first():
    """A compaction writes the same offset to a new file: it is as old as before. A new value is new."""
    run = Reducing()
    run.see(look(6, offsets=offsets(99, written=5)), look(9, offsets=offsets(99, written=8, sequence=0)))
    database_ = store_of(run).databases["w.0"]
    assert database_.offset_us == at(5)
    run.see(look(12, offsets=offsets(120, written=11)))
    assert database_.offset_us == at(11)


def test_order_of_offset_and_data():
    """Sequence numbers of one database; zero means compacted, order unknown."""
    run = Reducing()

    def last(sequence: int, puts: int) -> bool | None:
        files: tuple[Flush, ...] = (flush(8, puts, 4),)
        run.see(look(6, offsets=offsets(99, sequence=sequence), puts=puts, flushes=files))
        (one,) = segments_of(store_of(run)) or ()
        return one.offset_last

    assert last(12, 10) is True
    assert last(9, 10) is False
    assert last(0, 10) is None


def test_deletions_are_remembered():
    """A compaction removes them; that there were some stays true."""
    run = Reducing()
    seen = []
    for number, deletions in enumerate((None, 0, 3, 0, None)):
        run.see(look(2 + number, deletions=deletions))
        seen.append(store_of(run).databases["w.0"].deletes)
    assert seen == [None, False, True, True, True]
