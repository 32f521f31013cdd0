"""Releases: neighbours across majors, open ends, and ranges that touch."""

from __future__ import annotations

import pytest

from agent.layout.releases import ANY_RELEASE, Release, ReleaseRange


def between(text: str) -> ReleaseRange:
    """`2.0.0 2.1.x`."""
    return ReleaseRange.between(*text.split())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("2.8.0", "2.8.1"),
        ("2.7.x", "2.8.0"),
        ("0.11.x", "1.0.0"),
        ("1.1.x", "2.0.0"),
        ("2.8.x", "3.0.0"),
        ("3.9.x", "4.0.0"),
    ],
)
def test_neighbours(before, after):
    """Patches, lines and majors follow each other."""
    assert Release.parse(before).is_followed_by(Release.parse(after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("2.8.0", "2.8.2"),
        ("2.8.1", "2.8.1"),
        ("2.7.2", "2.8.0"),
        ("2.7.x", "2.8.1"),
        ("2.6.x", "2.8.0"),
        ("2.7.x", "3.0.0"),
        ("2.8.x", "3.1.0"),
        ("2.8.x", "4.0.0"),
        ("4.3.x", "5.0.0"),
        ("3.9.x", "3.8.0"),
    ],
)
def test_no_neighbours(before, after):
    """Something lies between, may lie between, or they stand the wrong way round."""
    assert not Release.parse(before).is_followed_by(Release.parse(after))


def test_open_ends_stay_open():
    """What neither range closes is open in the intersection; what either leaves open is open in the hull."""
    since, until = ReleaseRange.since("3.0.0"), ReleaseRange.until("3.5.0")
    assert since.intersect(ReleaseRange.since("3.2.0")) == ReleaseRange.since("3.2.0")
    assert until.intersect(ReleaseRange.until("3.2.0")) == ReleaseRange.until("3.2.0")
    assert since.intersect(until) == between("3.0.0 3.5.0")
    assert ANY_RELEASE.intersect(ANY_RELEASE) == ANY_RELEASE
    assert since.hull(until) == ANY_RELEASE
    assert since.hull(between("2.0.0 2.1.0")) == ReleaseRange.since("2.0.0")
    assert until.hull(between("4.0.0 4.1.0")) == ReleaseRange.until("4.1.0")
    assert between("2.0.0 2.1.0").hull(between("3.0.0 3.1.0")) == between("2.0.0 3.1.0")


def test_ends_belong_to_a_range():
    """Both ends are included, and ranges that share one release overlap."""
    line = between("2.1.0 2.3.0")
    assert [line.contains(Release(2, 1, 0)), line.contains(Release(2, 3, 0))] == [True, True]
    assert [line.contains(Release(2, 0, 999)), line.contains(Release(2, 3, 1))] == [False, False]
    assert line.overlaps(between("2.3.0 2.4.0"))
    assert line.overlaps(between("2.0.0 2.1.0"))
    assert not line.overlaps(between("2.3.1 2.4.0"))
    assert not line.is_empty
    assert not between("2.1.0 2.1.0").is_empty
    assert line.within(line)


def test_far_future_and_past_are_in_open_ranges():
    """An open end has no hidden limit among releases that can be written."""
    assert ReleaseRange.since("3.0.0").contains(Release(999, 999, 999))
    assert ReleaseRange.until("3.0.0").contains(Release(0, 0, 0))
    assert ReleaseRange.of("999.0.1").within(ANY_RELEASE)
    assert ReleaseRange.of("0.0.0").within(ANY_RELEASE)


def test_within_three_that_follow_each_other():
    """The first, the last and the longest of several merged ranges decide as one."""
    parts = (between("2.0.0 2.0.x"), between("2.5.0 2.5.x"), between("2.6.0 2.6.x"), between("2.7.0 2.7.x"))
    assert between("2.5.0 2.7.3").within(*parts)
    assert not between("2.0.0 2.5.0").within(*parts)
    assert not between("2.7.0 2.8.0").within(*parts)
    assert between("3.0.0 3.8.0").within(between("3.0.0 3.9.0"), between("3.1.0 3.2.0"))
    assert between("3.0.0 3.3.0").within(between("3.0.0 3.1.0"), between("3.1.0 3.3.0"))
    assert not between("3.0.0 3.3.0").within()


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
