"""Bounds: a comparison may only be sure where it holds at the worst end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.layout.profile import Truth
from agent.quantities.bounds import Bounds
from agent.quantities.verdicts import holds_uncommitted
from tests.support.scenario_case import PLAIN, TIMESTAMPED, database, profile, store

NUMBERS = st.integers(0, 10_000)


@st.composite
def bounds(draw):
    """A quantity with or without an upper end."""
    low = draw(NUMBERS)
    return Bounds(low, draw(st.none() | st.integers(low, 20_000)))


@st.composite
def widened(draw):
    """A quantity, and the same known less well."""
    known = draw(bounds())
    low = draw(st.integers(0, known.low))
    high = None if known.high is None else draw(st.none() | st.integers(known.high, 30_000))
    return known, Bounds(low, high)


def worse(before: Truth, after: Truth) -> bool:
    """Whether less knowledge made an answer surer, or turned it round."""
    return after is not Truth.MAYBE and after is not before


@given(widened(), widened())
def test_widening_never_makes_surer(one, other):
    """What is known less well is never decided where it was not, and never the other way round."""
    assert not worse(one[0].exceeds(other[0]), one[1].exceeds(other[1]))


@given(widened(), widened())
def test_arithmetic_keeps_what_is_possible(one, other):
    """Sums and quotients of wider bounds are wider."""
    for operation in (Bounds.times, Bounds.over, Bounds.plus):
        narrow, wide = operation(one[0], other[0]), operation(one[1], other[1])
        assert wide.low <= narrow.low
        assert wide.high is None or (narrow.high is not None and narrow.high <= wide.high)


@given(NUMBERS, st.integers(1, 5), st.integers(1, 5))
def test_division_holds_the_truth(things, parts, more):
    """So many things of so many parts each: dividing their number gives them back."""
    puts = Bounds.exactly(things * parts)
    records = puts.over(Bounds(1, parts + more))
    assert records.low <= things
    assert records.high is not None
    assert things <= records.high


@given(
    committed=NUMBERS,
    uncommitted=NUMBERS,
    per_record=st.sampled_from([1, 2]),
    markers=NUMBERS,
    knows_kind=st.booleans(),
    release=st.sampled_from(["3.9.2", "4.1.2", None]),
)
def test_never_says_uncommitted_of_committed_records(
    committed, uncommitted, per_record, markers, knows_kind, release
):
    """Whatever the kind of store and however many markers there are, committed records are never called uncommitted."""
    families = () if not knows_kind else TIMESTAMPED if per_record == 1 else PLAIN
    one = store([database(families=families, entries=0)])
    end = 500 + committed + markers
    said = holds_uncommitted(one, profile(release), committed * per_record, 500, end)
    assert said is not Truth.YES
    if knows_kind and uncommitted > 3 * (committed + markers + 1) + 100:
        assert holds_uncommitted(one, profile(release), uncommitted, 500, end) is Truth.YES
