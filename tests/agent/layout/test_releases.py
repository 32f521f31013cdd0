"""Releases and ranges of them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.layout.releases import ANY_RELEASE, ROCKSDB_RELEASES, Release, ReleaseRange, releases_with_rocksdb
from tests.support.every import every

RELEASES = st.builds(Release, st.integers(1, 4), st.integers(0, 9), st.integers(0, 9))
RANGES = st.builds(ReleaseRange, st.one_of(st.none(), RELEASES), st.one_of(st.none(), RELEASES)).filter(
    lambda one: not one.is_empty
)
of, since, until = ReleaseRange.of, ReleaseRange.since, ReleaseRange.until


def line(text: str) -> ReleaseRange:
    """`2.0.0 2.1.x`."""
    return ReleaseRange.between(*text.split())


SPELLED = {
    "3.9.2": (3, 9, 2), "4.2": (4, 2, 0), " 2.6.1 ": (2, 6, 1), "4.3.1-SNAPSHOT": (4, 3, 1), "3.9.0-rc3": (3, 9, 0),
    "2.8.x": (2, 8, 999),
}  # fmt: skip
NONE = ["", "4", "4.", "v4.1", "4.1.2.3", "7.5.0-ccs", "latest", "4.1.-1", "\u0664.\u0661"]


@every("text", SPELLED)
def test_parse(text):
    """Releases are read in all their spellings."""
    assert Release.parse(text) == SPELLED[text]


@every("text", NONE)
def test_parse_refuses(text):
    """Anything else is refused, with what was given and an example."""
    with pytest.raises(ValueError, match="expected for example") as caught:
        Release.parse(text)
    assert repr(text) in str(caught.value)


@given(RELEASES)
def test_text_round_trip(release):
    """A release is written as it is read."""
    assert Release.parse(str(release)) == release


def test_order():
    """Releases are ordered by number, `x` after every patch of its line."""
    texts = ["2.8.0", "2.8.2", "2.8.x", "3.0.0", "3.9.2", "3.10.0"]
    assert sorted(map(Release.parse, texts)) == [Release.parse(text) for text in texts]


def test_between_refuses_wrong_order():
    """A range that ends before it starts is a mistake in a table."""
    with pytest.raises(ValueError, match="ends before it starts"):
        ReleaseRange.between("4.2", "4.1")


@pytest.mark.parametrize(
    ("inner", "outer", "expected"),
    [
        ("3.8.0 3.9.2", "3.8.0 3.9.x", True),
        ("3.8.0 4.0.1", "3.8.0 3.9.x, 4.0.0 4.0.x", True),  # 3.9 was the last 3.x
        ("2.7.1 3.0.0", "2.7.1 2.7.x, 2.8.0 2.8.x, 3.0.0 3.0.0", True),
        ("2.6.1 2.8.2", "2.6.2 2.6.x, 2.7.1 2.7.x, 2.8.0 2.8.x", False),
        ("2.6.2 2.7.2", "2.6.2 2.6.x, 2.7.1 2.7.x", False),  # 2.7.0 is between them
        ("4.1.2 4.2.0", "4.1.0 4.1.2, 4.2.0 4.2.1", False),  # so may be 4.1.3
        ("4.1.1 4.1.2", "4.1.1 4.1.1, 4.1.2 4.1.2", True),
        # the first, the last and the longest of several merged ranges decide as one
        ("2.5.0 2.7.3", "2.0.0 2.0.x, 2.5.0 2.5.x, 2.6.0 2.6.x, 2.7.0 2.7.x", True),
        ("2.0.0 2.5.0", "2.0.0 2.0.x, 2.5.0 2.5.x, 2.6.0 2.6.x, 2.7.0 2.7.x", False),
        ("2.7.0 2.8.0", "2.0.0 2.0.x, 2.5.0 2.5.x, 2.6.0 2.6.x, 2.7.0 2.7.x", False),
        ("3.0.0 3.8.0", "3.0.0 3.9.0, 3.1.0 3.2.0", True),
        ("3.0.0 3.3.0", "3.0.0 3.1.0, 3.1.0 3.3.0", True),
        ("2.1.0 2.3.0", "2.1.0 2.3.0", True),
    ],
)
def test_within_several(inner, outer, expected):
    """A range lies within several others if no release between them is left out."""
    assert line(inner).within(*map(line, outer.split(", "))) is expected
    assert not line(inner).within()


@given(RANGES, RANGES, RELEASES)
def test_intersection_and_hull(one, other, release):
    """An intersection contains what both contain, a hull at least what either contains."""
    both = one.intersect(other)
    in_both = one.contains(release) and other.contains(release)
    assert in_both == (both is not None and both.contains(release))
    assert (both is not None) == one.overlaps(other)
    if one.contains(release) or other.contains(release):
        assert one.hull(other).contains(release)


@given(RANGES, RANGES, RELEASES)
def test_within_agrees_with_contains(one, other, release):
    """What lies within another range has no release outside of it."""
    if one.within(other) and one.contains(release):
        assert other.contains(release)
    assert one.within(ANY_RELEASE)


def test_rocksdb_table_has_no_gap():
    """The ranges of the table follow each other without gap or overlap; an unknown version says nothing."""
    for before, after in itertools.pairwise(ROCKSDB_RELEASES.values()):
        assert before.high is not None
        assert after.low is not None
        assert before.high.is_followed_by(after.low)
    assert releases_with_rocksdb("6.22.1.1") == line(
        "3.1.0 3.1.x"
    )  # a fourth number of the library is ignored
    assert releases_with_rocksdb("8.0.0") is None


FOLLOW = "2.8.0 2.8.1, 2.7.x 2.8.0, 0.11.x 1.0.0, 1.1.x 2.0.0, 2.8.x 3.0.0, 3.9.x 4.0.0"
DO_NOT = (
    "2.8.0 2.8.2, 2.8.1 2.8.1, 2.7.2 2.8.0, 2.7.x 2.8.1, 2.6.x 2.8.0, 2.7.x 3.0.0, 2.8.x 3.1.0, 2.8.x 4.0.0, "
    "4.3.x 5.0.0, 3.9.x 3.8.0"
)


@pytest.mark.parametrize(("pairs", "follow"), [(FOLLOW, True), (DO_NOT, False)])
def test_neighbours(pairs, follow):
    """Patches, lines and majors follow each other, unless something lies between or they are the wrong way round."""
    for pair in pairs.split(", "):
        before, after = map(Release.parse, pair.split())
        assert before.is_followed_by(after) is follow, pair


LINE = line("2.1.0 2.3.0")
ANSWERS: dict[str, tuple[Any, Any]] = {
    # what neither range closes is open in the intersection; what either leaves open is open in the hull
    "two open ends above": (since("3.0.0").intersect(since("3.2.0")), since("3.2.0")),
    "two open ends below": (until("3.5.0").intersect(until("3.2.0")), until("3.2.0")),
    "an open end on each side": (since("3.0.0").intersect(until("3.5.0")), line("3.0.0 3.5.0")),
    "nothing is closed": (ANY_RELEASE.intersect(ANY_RELEASE), ANY_RELEASE),
    "the hull of both sides": (since("3.0.0").hull(until("3.5.0")), ANY_RELEASE),
    "the hull is open above": (since("3.0.0").hull(line("2.0.0 2.1.0")), since("2.0.0")),
    "the hull is open below": (until("3.5.0").hull(line("4.0.0 4.1.0")), until("4.1.0")),
    "the hull of two lines": (line("2.0.0 2.1.0").hull(line("3.0.0 3.1.0")), line("2.0.0 3.1.0")),
    "both ends belong to a range": (
        [LINE.contains(Release(2, *x)) for x in ((1, 0), (3, 0), (0, 999), (3, 1))], [True, True, False, False]),
    "ranges that share one release overlap": (
        [LINE.overlaps(line(x)) for x in ("2.3.0 2.4.0", "2.0.0 2.1.0", "2.3.1 2.4.0")], [True, True, False]),
    "one release is not empty": ((LINE.is_empty, line("2.1.0 2.1.0").is_empty), (False, False)),
    # an open end has no hidden limit among releases that can be written
    "far in the future": (since("3.0.0").contains(Release(999, 999, 999)), True),
    "far in the past": (until("3.0.0").contains(Release(0, 0, 0)), True),
    "any release": ([of(x).within(ANY_RELEASE) for x in ("999.0.1", "0.0.0")], [True, True]),
    # a full number is that release, two numbers are all its patches; every kind of range can be read
    "said of all": (str(ANY_RELEASE), "any release"),
    "said of an end": (str(until("3.0.0")), "up to 3.0.0"),
    "said of a beginning": (str(since("3.0.0")), "3.0.0 or later"),
    "said of one": (str(of("3.0.0")), "3.0.0"),
    "said of a line": (str(of("4.2")), "4.2.0 to 4.2.x"),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_ranges(answer, expected):
    """Each row says what it is about."""
    assert answer == expected
