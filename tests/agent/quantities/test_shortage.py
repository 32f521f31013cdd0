"""Records that no segment can hold, by counting: held against a model, and with what the hunt found on 4.3.1."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from agent.inventory.observations import StoreOffsets
from agent.inventory.segments import CLOSED, OPEN, Segment
from agent.judging.segment_loss import Grade, losses, speaker_of, weigh
from agent.quantities.shortage import is_all_on_disk, shortage
from tests.agent.judging.test_segment_loss import live, steps
from tests.support.segment_model import CHANGELOG, SECOND_US, ModelStore, segment


@given(steps)
def test_what_is_short_is_lost(life):
    """Where every record is a put, whatever the life was: as many records are missing at least."""
    store = ModelStore(oldest=False)
    live(store, life)
    store.dies()
    segments = store.picture()
    speaker = speaker_of(segments, CHANGELOG, oldest=False)
    lost = sum(len(each) for each in store.lost().values())
    for one in segments:
        if speaker is not None and one.has_data and one.starts < speaker.starts:
            assert (shortage(segments, one, speaker, CHANGELOG) or 0) <= lost, life


def flushed(starts: int, born: float, held: StoreOffsets, flushed_us: float, puts: int) -> Segment:
    """A segment that was never opened again, and was flushed with its offset."""
    more: dict[str, Any] = {"deletes": False, "offset_last": False, "puts": puts}
    times = {"offset_us": flushed_us, "flushed_us": flushed_us}
    return segment(starts, born=born, has_data=True, offsets=held, **times, **more)


def said(offset: int, sequence: int, status: int = OPEN) -> StoreOffsets:
    """The offset that lies in it, and its position behind it."""
    return StoreOffsets(
        status=status, offsets=((CHANGELOG, offset, sequence),), position_sequence=sequence + 1
    )


def older(offset: int, sequence: int, puts: int, *, flushed_us: float = 18.6) -> Segment:
    """A segment that was made at 5 s; of its last flush, the newest data has the number `puts`."""
    return flushed(0, 5, said(offset, sequence), flushed_us, puts)


def newer(offset: int, sequence: int) -> Segment:
    """The one that answers, made at 19.8 s."""
    return flushed(60, 19.8, said(offset, sequence), 31.6, sequence)


def grades(*segments: Segment) -> dict[str, Grade]:
    """Name -> grade, of 4.3.1."""
    return {name: loss.grade for name, loss in losses(weigh(segments, CHANGELOG, oldest=False)).items()}


@pytest.mark.parametrize(
    ("pair", "lacking", "grade"),
    [
        ((older(3312, 3159, 3407), newer(10549, 7006)), -15, Grade.POSSIBLE),
        ((older(3205, 3066, 3383), newer(11511, 8062)), -71, Grade.POSSIBLE),
        ((older(3145, 2910, 3003), newer(11337, 7808)), 293, Grade.LIKELY),
    ],
    ids=["none lost", "38 lost", "322 lost"],
)
def test_three_tasks_of_one_kill(pair, lacking, grade):
    """Commits take two numbers each: what they may hide is a warning only."""
    old, new = pair
    assert shortage(pair, old, new, CHANGELOG) == lacking
    assert grades(old, new) == {"w.0": grade}


def test_a_flush_that_took_long():
    """Its file came after the next segment, the memory was closed before: what came in between is missing."""
    new = newer(11337, 7808)
    assert grades(older(3145, 2910, 3003, flushed_us=20.5), new) == {"w.0": Grade.POSSIBLE}
    assert grades(older(3312, 3159, 3407, flushed_us=20.5), newer(10549, 7006)) == {}


def test_what_another_segment_took_long_before():
    """Of a third segment that ended before, only what it took behind its own offset can be what is missing."""
    old, new = older(3145, 2910, 3003, flushed_us=20.5), newer(11337, 7808)
    past = replace(older(3000, 2000, 2001), name="w.-60", starts=-60, identity="id-60")
    assert shortage((past, old, new), old, new, CHANGELOG) == 293
    assert grades(past, old, new)["w.0"] is Grade.POSSIBLE
    busy = replace(past, puts=2001 + 293)
    assert shortage((busy, old, new), old, new, CHANGELOG) == 0
    later = replace(past, offsets=said(3300, 2000))
    assert shortage((later, old, new), old, new, CHANGELOG) == 293 - 2001


def test_what_cannot_be_counted():
    """A compaction zeroed the numbers, or the agent does not know what had been given out at the opening."""
    old, new = older(3145, 2910, 3003), newer(11337, 7808)
    zeroed = replace(old, offsets=replace(old.offsets, offsets=((CHANGELOG, 3145, 0),)))
    reopened = replace(new, opened_us=new.born_us + 1)
    assert shortage((zeroed, new), zeroed, new, CHANGELOG) is None
    assert shortage((old, reopened), old, reopened, CHANGELOG) is None
    counted = replace(reopened, opened_sequence=7000)
    assert shortage((old, counted), old, counted, CHANGELOG) == 293 + 7000
    assert grades(old, counted) == {"w.0": Grade.LIKELY}
    assert grades(old, reopened) == {"w.0": Grade.LIKELY}


@given(steps)
def test_all_on_disk_leaves_nothing_to_lose(life):
    """Where the count comes out even by the entries of the files, no segment of the store lacks a record."""
    store = ModelStore(oldest=False)
    live(store, life)
    store.dies()
    segments = store.picture()
    speaker = speaker_of(segments, CHANGELOG, oldest=False)
    if speaker is not None and is_all_on_disk(segments, speaker, CHANGELOG):
        assert store.lost() == {}, life


def of_a_clean_end(**more: Any) -> tuple[Segment, Segment]:
    """600 records, closed; the next life put offsets 600 to 3599 into a new segment, committed twice, and more."""
    old = replace(
        flushed(0, 5, said(599, 610, CLOSED), 18.6, 603), opened_us=19 * SECOND_US, offset_last=True
    )
    new = replace(flushed(60, 19.8, said(3599, 3004), 31.6, 5975), entries=5970)
    return replace(old, opened_sequence=612, entries=600), replace(new, **more)


@pytest.mark.parametrize(
    ("more", "quiet"),
    [
        ({}, True),
        ({"entries": 5969}, False),  # a key was overwritten, or a record was in the memory of the older one
        ({"entries": 5971}, False),  # some records were put twice: then fewer records are there than entries
        ({"entries": None}, False),  # not counted, or something was deleted
        ({"opened_us": 20 * SECOND_US}, False),  # it was there before: some entries may be older
        ({"puts": None}, False),
    ],
)
def test_every_put_is_counted(more, quiet):
    """The last end was in order, and every offset is an entry of a file: nothing was in memory alone."""
    old, new = of_a_clean_end(**more)
    assert grades(old, new) == ({} if quiet else {"w.0": Grade.POSSIBLE})


@pytest.mark.parametrize(
    "more",
    [
        {"offsets": said(599, 610, OPEN)},
        {"offset_last": False},  # data was written last
        {"offsets": replace(said(599, 610, CLOSED), offsets=())},
        {"entries": 599},
        {"entries": 601},
        {"entries": None},
    ],
)
def test_end_before_that_was_not_in_order(more):
    """Then the older one may lack what came before: by its status, or by its own count."""
    old, new = of_a_clean_end()
    assert grades(replace(old, **more), new)["w.0"] >= Grade.POSSIBLE


def test_others_that_do_not_agree():
    """A life that began at another offset replayed records: an entry is no longer one of them."""
    old, new = of_a_clean_end()
    held = replace(old.offsets, offsets=((CHANGELOG, 400, 500),))
    oldest = replace(old, name="w.-60", starts=-60, identity="id-60", offsets=held, entries=0)
    assert "w.0" in grades(oldest, old, new)
