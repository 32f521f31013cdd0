"""Records that no segment can hold, by counting: held against a model, and with what the hunt found on 4.3.1."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from agent.inventory.observations import StoreOffsets
from agent.inventory.segments import OPEN, Segment
from agent.judging.segment_loss import Grade, find_losses, speaker_of
from agent.quantities.shortage import shortage
from tests.agent.judging.test_segment_loss import live, steps
from tests.support.segment_model import CHANGELOG, SECOND_US, ModelStore


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


def older(offset: int, sequence: int, puts: int, *, flushed_s: float = 18.6) -> Segment:
    """A segment that was made at 5 s; of its last flush, the newest data has the number `puts`."""
    held = StoreOffsets(status=OPEN, offsets=((CHANGELOG, offset, sequence),), position_sequence=sequence + 1)
    return segment(0, 5, held, flushed_s, puts)


def newer(offset: int, sequence: int) -> Segment:
    """The one that answers, made at 19.8 s."""
    held = StoreOffsets(status=OPEN, offsets=((CHANGELOG, offset, sequence),), position_sequence=sequence + 1)
    return segment(60, 19.8, held, 31.6, sequence)


def segment(starts: int, born_s: float, held: StoreOffsets, flushed_s: float, puts: int) -> Segment:
    """A segment that was never opened again."""
    return Segment(
        name=f"w.{starts}",
        path=f"app/0_0/w/w.{starts}",
        starts=starts,
        identity=f"id-{starts}",
        born_us=round(born_s * SECOND_US),
        opened_us=round(born_s * SECOND_US),
        manifest=1,
        has_data=True,
        offsets=held,
        offset_us=round(flushed_s * SECOND_US),
        flushed_us=round(flushed_s * SECOND_US),
        deletes=False,
        offset_last=False,
        puts=puts,
    )


def grades(*segments: Segment) -> dict[str, Grade]:
    """Name -> grade, of 4.3.1."""
    return {name: loss.grade for name, loss in find_losses(segments, CHANGELOG, oldest=False).items()}


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
    assert grades(older(3145, 2910, 3003, flushed_s=20.5), new) == {"w.0": Grade.POSSIBLE}
    assert grades(older(3312, 3159, 3407, flushed_s=20.5), newer(10549, 7006)) == {}


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
