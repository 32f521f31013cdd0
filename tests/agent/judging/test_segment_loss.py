"""What is lost, by the pictures of segments: held against a model of the store, and at its exact boundaries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.inventory.observations import StoreOffsets
from agent.inventory.segments import CLOSED, OPEN, Segment
from agent.judging.segment_loss import Grade, changelog_of, losses, unflushed, weigh
from tests.support.segment_model import CHANGELOG, ModelStore
from tests.support.segment_model import segment as made

late = st.sampled_from([0, 0, 0, 1, 2])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), late),
        st.tuples(st.just("next"), st.just(0)),
        st.tuples(st.just("commit"), st.just(0)),
        st.tuples(st.just("flush"), late),
        st.tuples(st.just("kill"), st.integers(0, 6)),
        st.tuples(st.just("cut"), st.integers(0, 3)),
        st.tuples(st.just("restart"), st.just(0)),
        st.tuples(st.just("refused"), st.just(0)),
    ),
    max_size=24,
)


def live(store: ModelStore, life: list[tuple[str, int]]) -> None:
    """Lead a life; every end but the last is followed by a start. Numbers count segments back from the newest one."""
    for what, number in life:
        newest = max(store.segments, default=0)
        if what in ("put", "next"):
            store.put(newest + 1 if what == "next" else max(newest - number, 0))
        elif what == "commit":
            store.commit()
        elif what == "flush":
            store.flush(newest - number)
        else:
            if what in ("cut", "restart"):
                store.close(cut_after=number if what == "cut" else None)
            store.dies()
            if what == "refused":
                store.refused()
            store.starts(number if what == "kill" else None)


def losses_of(store: ModelStore):
    """What the detector reads from the picture."""
    return losses(weigh(store.picture(), CHANGELOG, oldest=store.oldest))


@given(steps, st.booleans())
def test_certain_is_true(life, oldest):
    """Whatever the life was: where it is certain, records are missing that no replay brings."""
    store = ModelStore(oldest=oldest)
    live(store, life)
    store.dies()
    lost = store.lost()
    for loss in losses_of(store).values():
        assert loss.offset == store.answer()
        if loss.grade is Grade.CERTAIN:
            assert lost.get(loss.segment.starts), life


@given(steps, st.booleans())
def test_no_loss_is_passed_over(life, oldest):
    """Every segment that loses what it took as the newest one, in the life that ends, is told at some grade."""
    store = ModelStore(oldest=oldest)
    live(store, life)
    in_memory = {starts: set(one.early) for starts, one in store.segments.items()}
    store.dies()
    found = {loss.segment.starts for loss in losses_of(store).values()}
    for starts, missing in store.lost().items():
        assert not missing & in_memory[starts] or starts in found, life


@given(steps, st.booleans())
def test_knowing_less_is_never_surer(life, oldest):
    """Without the times of the openings, or the order of sequence numbers, nothing gets above what it was."""
    store = ModelStore(oldest=oldest)
    live(store, life)
    store.dies()
    full = losses_of(store)
    for picture in (
        tuple(replace(one, opened_us=None) for one in store.picture()),
        tuple(replace(one, offset_last=None) for one in store.picture()),
    ):
        for name, loss in losses(weigh(picture, CHANGELOG, oldest=oldest)).items():
            before = full[name].grade if name in full else Grade.POSSIBLE
            assert loss.grade <= max(before, Grade.POSSIBLE)


@given(steps, st.booleans())
def test_an_orderly_close_loses_nothing(life, oldest):
    """Every segment carries the same offset, flushed with its last record."""
    store = ModelStore(oldest=oldest)
    live(store, life)
    store.close()
    store.dies()
    assert losses_of(store) == {}


# -- boundaries -----------------------------------------------------------------------------------------------------


def segment(starts: int, *, offset: int | None = None, data: bool = True, **more: Any) -> Segment:
    """A segment with a stored offset or none; times in seconds."""
    written = () if offset is None else ((CHANGELOG, offset, 9),)
    status = more.pop("status", None if offset is None else OPEN)
    return made(starts, has_data=data, offsets=StoreOffsets(status=status, offsets=written), **more)


def grades(*segments: Segment, oldest: bool = False) -> dict[str, Grade]:
    """Name -> grade."""
    found = losses(weigh(segments, CHANGELOG, oldest=oldest))
    return {name: loss.grade for name, loss in found.items()}


POSSIBLE, LIKELY, CERTAIN = sorted(Grade)
NEW = segment(60, born=20, offset=99, offset_us=25)
EMPTY = segment(60, born=10, data=False)
PAST: dict[str, Any] = {"offset": 50, "status": CLOSED, "flushed_us": 19}
CUT: dict[str, Any] = {"status": CLOSED, "offset_last": True}
BEHIND = segment(0, offset=99, offset_us=25, **CUT)
REPLAYED = segment(0, opened=10, offset=50, data=False, status=CLOSED)


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        # made before the one that answers: certain; else it depends on when the offset was written
        (segment(0, born=19, data=False), NEW, {"w.0": CERTAIN}),
        (segment(0, born=20, data=False), NEW, {"w.0": POSSIBLE}),
        (segment(0, born=25, data=False), NEW, {}),
        (segment(0, born=19, data=False, opened=None), NEW, {"w.0": POSSIBLE}),
        # however late the offset reached the disk, it may be of a commit before the first put: brokers stall
        (segment(0, offset=99, offset_us=900, offset_last=False), EMPTY, {"w.60": POSSIBLE}),
        (segment(0, offset=99, offset_us=900, offset_last=None), EMPTY, {"w.60": POSSIBLE}),
        # a close that was cut wrote the offset behind the data and the status, and never came to the other segment
        (segment(0, offset=99, offset_us=11, **CUT), EMPTY, {"w.60": LIKELY}),
        (segment(0, offset=99, offset_us=11, status=CLOSED, offset_last=False), EMPTY, {"w.60": POSSIBLE}),
        (segment(0, offset=99, offset_us=11, status=OPEN, offset_last=True), EMPTY, {"w.60": POSSIBLE}),
        # the pass of the next start closes one after the other as well, but opened them after the other was made
        (segment(0, opened=9, offset=99, offset_us=41, **CUT), EMPTY, {"w.60": LIKELY}),
        (segment(0, opened=10, offset=99, offset_us=41, **CUT), EMPTY, {"w.60": POSSIBLE}),
        (segment(0, opened=None, offset=99, offset_us=41, **CUT), EMPTY, {"w.60": POSSIBLE}),
        # what a segment says of itself is true of itself
        (segment(0, offset=99, flushed_us=5), NEW, {}),
        (segment(0, offset=98, flushed_us=5), NEW, {"w.0": LIKELY}),
        # flushed after its successor was made: only late records can be missing
        (segment(0, offset=50, flushed_us=19), NEW, {"w.0": LIKELY}),
        (segment(0, offset=50, flushed_us=20), NEW, {}),
        # its successor was there at the opening; where that is not known it may have been the newest one
        (segment(0, opened=30, **PAST), NEW, {}),
        (segment(0, opened=None, **PAST), NEW, {"w.0": POSSIBLE}),
        (segment(0, opened=19, **PAST), NEW, {"w.0": POSSIBLE}),
        # one without an entry is passed over, "unknown" is an answer
        (segment(0, offset=50, flushed_us=5), segment(60, born=20, offset=-4), {}),
        (segment(0, data=False), segment(60, born=20, data=False), {}),
        # opened empty: lost before, or replayed before the one that answers was made
        (REPLAYED, NEW, {"w.0": LIKELY}),
        (REPLAYED, segment(60, born=5, offset=99, offset_us=25), {"w.0": POSSIBLE}),
        # a start-up pass that exactly-once refuses opens and closes it and writes no offset: it still lacks nothing
        *((BEHIND, segment(60, born=30, opened=x, data=False, status=CLOSED), {}) for x in (30, 40, None)),
        *((BEHIND, segment(60, born=24, opened=x, data=False), {"w.60": POSSIBLE}) for x in (30, 40, None)),
        (BEHIND, segment(60, born=30, opened=29, data=False), {"w.60": POSSIBLE}),
    ],
)
def test_newest_answers(old, new, lost):
    """4.3.1 asks the newest segment first; the grades are in order."""
    assert grades(old, new) == lost
    assert [x.name for x in (POSSIBLE, LIKELY, CERTAIN)] == ["POSSIBLE", "LIKELY", "CERTAIN"]


FLUSHED = segment(60, born=10, offset=50, flushed_us=20)
FLUSHED_LATE = segment(60, born=20, offset=99, flushed_us=25)


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        (segment(0, offset=50, flushed_us=5), NEW, {}),
        (segment(0, opened=19, offset=99, offset_us=41, **CUT), FLUSHED, {"w.60": LIKELY}),
        (segment(0, opened=20, offset=99, offset_us=41, **CUT), FLUSHED, {"w.60": POSSIBLE}),
        # a close that was cut between the two, or a late flush of the old one
        (segment(0, offset=150, offset_us=40, **CUT), FLUSHED_LATE, {"w.60": LIKELY}),
        (segment(0, offset=150, offset_us=40), FLUSHED_LATE, {"w.60": POSSIBLE}),
        (segment(0, offset=150, offset_us=25), FLUSHED_LATE, {}),
    ],
)
def test_oldest_answers(old, new, lost):
    """4.3.0 asks the oldest segment first."""
    assert grades(old, new, oldest=True) == lost


def test_name_of_the_changelog():
    """The only topic, or the one that has the store's name."""
    odd = replace(segment(0), offsets=StoreOffsets(offsets=(("orders-0", 5, 1),)))
    assert changelog_of((odd,), "app", "w") == "orders-0"
    assert changelog_of((odd, segment(60, offset=9)), "app", "w") == CHANGELOG
    assert changelog_of((odd, segment(60, offset=9)), "app", "x") is None
    assert changelog_of((segment(0),), "app", "w") is None


def test_what_waits_in_a_running_store():
    """All but the newest that took records since they were opened and were not flushed after their successor."""
    one = segment(0, data=False)
    two = segment(60, born=20, offset=9, flushed_us=45)
    three = segment(120, born=40)
    assert [x.name for x in unflushed((one, two, three))] == ["w.0"]
    assert [x.name for x in unflushed((one, replace(two, flushed_us=0), three))] == ["w.0", "w.60"]
    assert unflushed((three,)) == ()
