"""Releases and ranges of them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.layout.releases import (
    ANY_RELEASE,
    ROCKSDB_RELEASES,
    Release,
    ReleaseRange,
    releases_with_rocksdb,
)

RELEASES = st.builds(Release, st.integers(1, 4), st.integers(0, 9), st.integers(0, 9))
RANGES = st.builds(ReleaseRange, st.one_of(st.none(), RELEASES), st.one_of(st.none(), RELEASES)).filter(
    lambda one: not one.is_empty
)


def between_(text: str) -> ReleaseRange:
    """`2.0.0 2.1.x`."""
    return ReleaseRange.between(*text.split())


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("3.9.2", (3, 9, 2)),
        ("4.2", (4, 2, 0)),
        (" 2.6.1 ", (2, 6, 1)),
        ("4.3.1-SNAPSHOT", (4, 3, 1)),
        ("3.9.0-rc3", (3, 9, 0)),
        ("2.8.x", (2, 8, 999)),
    ],
)
def test_parse(text, release):
    """Releases are read in all their spellings."""
    assert Release.parse(text) == release


@pytest.mark.parametrize(
    "text", ["", "4", "4.", "v4.1", "4.1.2.3", "7.5.0-ccs", "latest", "4.1.-1", "\u0664.\u0661"]
)
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


def test_operator_setting():
    """A full number is that release, two numbers are all its patches."""
    assert str(ReleaseRange.of("4.2.1")) == "4.2.1"
    assert str(ReleaseRange.of("4.2")) == "4.2.0 to 4.2.x"


def test_between_refuses_wrong_order():
    """A range that ends before it starts is a mistake in a table."""
    with pytest.raises(ValueError, match="ends before it starts"):
        ReleaseRange.between("4.2", "4.1")


@pytest.mark.parametrize(
    ("inner", "outer", "expected"),
    [
        ("3.8.0 3.9.2", ["3.8.0 3.9.x"], True),
        ("3.8.0 4.0.1", ["3.8.0 3.9.x", "4.0.0 4.0.x"], True),  # 3.9 was the last 3.x
        ("2.7.1 3.0.0", ["2.7.1 2.7.x", "2.8.0 2.8.x", "3.0.0 3.0.0"], True),
        ("2.6.1 2.8.2", ["2.6.2 2.6.x", "2.7.1 2.7.x", "2.8.0 2.8.x"], False),
        ("2.6.2 2.7.2", ["2.6.2 2.6.x", "2.7.1 2.7.x"], False),  # 2.7.0 is between them
        ("4.1.2 4.2.0", ["4.1.0 4.1.2", "4.2.0 4.2.1"], False),  # so may be 4.1.3
        ("4.1.1 4.1.2", ["4.1.1 4.1.1", "4.1.2 4.1.2"], True),
    ],
)
def test_within_several(inner, outer, expected):
    """A range lies within several others if no release between them is left out."""
    assert between_(inner).within(*map(between_, outer)) is expected


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
    """The ranges of the table follow each other without gap or overlap."""
    ranges = list(ROCKSDB_RELEASES.values())
    for before, after in itertools.pairwise(ranges):
        assert before.high is not None
        assert after.low is not None
        assert before.high.is_followed_by(after.low)


def test_rocksdb_lookup():
    """A fourth number of the library is ignored, an unknown version says nothing."""
    assert releases_with_rocksdb("6.22.1.1") == ReleaseRange.between("3.1.0", "3.1.x")
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


def test_open_ends_stay_open():
    """What neither range closes is open in the intersection; what either leaves open is open in the hull."""
    since, until = ReleaseRange.since("3.0.0"), ReleaseRange.until("3.5.0")
    assert since.intersect(ReleaseRange.since("3.2.0")) == ReleaseRange.since("3.2.0")
    assert until.intersect(ReleaseRange.until("3.2.0")) == ReleaseRange.until("3.2.0")
    assert since.intersect(until) == between_("3.0.0 3.5.0")
    assert ANY_RELEASE.intersect(ANY_RELEASE) == ANY_RELEASE
    assert since.hull(until) == ANY_RELEASE
    assert since.hull(between_("2.0.0 2.1.0")) == ReleaseRange.since("2.0.0")
    assert until.hull(between_("4.0.0 4.1.0")) == ReleaseRange.until("4.1.0")
    assert between_("2.0.0 2.1.0").hull(between_("3.0.0 3.1.0")) == between_("2.0.0 3.1.0")


def test_ends_belong_to_a_range():
    """Both ends are included, and ranges that share one release overlap."""
    line = between_("2.1.0 2.3.0")
    assert [line.contains(Release(2, 1, 0)), line.contains(Release(2, 3, 0))] == [True, True]
    assert [line.contains(Release(2, 0, 999)), line.contains(Release(2, 3, 1))] == [False, False]
    assert line.overlaps(between_("2.3.0 2.4.0"))
    assert line.overlaps(between_("2.0.0 2.1.0"))
    assert not line.overlaps(between_("2.3.1 2.4.0"))
    assert not line.is_empty
    assert not between_("2.1.0 2.1.0").is_empty
    assert line.within(line)


def test_far_future_and_past_are_in_open_ranges():
    """An open end has no hidden limit among releases that can be written."""
    assert ReleaseRange.since("3.0.0").contains(Release(999, 999, 999))
    assert ReleaseRange.until("3.0.0").contains(Release(0, 0, 0))
    assert ReleaseRange.of("999.0.1").within(ANY_RELEASE)
    assert ReleaseRange.of("0.0.0").within(ANY_RELEASE)


def test_within_three_that_follow_each_other():
    """The first, the last and the longest of several merged ranges decide as one."""
    parts = (
        between_("2.0.0 2.0.x"),
        between_("2.5.0 2.5.x"),
        between_("2.6.0 2.6.x"),
        between_("2.7.0 2.7.x"),
    )
    assert between_("2.5.0 2.7.3").within(*parts)
    assert not between_("2.0.0 2.5.0").within(*parts)
    assert not between_("2.7.0 2.8.0").within(*parts)
    assert between_("3.0.0 3.8.0").within(between_("3.0.0 3.9.0"), between_("3.1.0 3.2.0"))
    assert between_("3.0.0 3.3.0").within(between_("3.0.0 3.1.0"), between_("3.1.0 3.3.0"))
    assert not between_("3.0.0 3.3.0").within()


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (ANY_RELEASE, "any release"),
        (ReleaseRange.until("3.0.0"), "up to 3.0.0"),
        (ReleaseRange.since("3.0.0"), "3.0.0 or later"),
        (ReleaseRange.of("3.0.0"), "3.0.0"),
        (ReleaseRange.of("3.0"), "3.0.0 to 3.0.x"),
    ],
)
def test_for_people(one, text):
    """Every kind of range can be read."""
    assert str(one) == text
