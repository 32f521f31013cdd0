"""Kafka Streams releases: an ordered value, ranges of it, and which release ships which RocksDB."""

from __future__ import annotations

import re
from typing import NamedTuple

ANY_PATCH = 999
"""Patch number that represents "whatever the last patch of this line is"; written as `x`."""

_RELEASE = re.compile(r"(\d{1,3})\.(\d{1,3})(?:\.(\d{1,3}|x))?(?:-(?:SNAPSHOT|rc\d+))?", re.ASCII)
_LAST_MINOR = {0: 11, 1: 1, 2: 8, 3: 9}  # the line that the next major followed


class Release(NamedTuple):
    """A release; ordered, `2.8.x` above every patch of 2.8."""

    major: int
    minor: int
    patch: int = 0

    @classmethod
    def parse(cls, text: str) -> Release:
        """Read `3.9.2`, `4.2` (= 4.2.0) or `2.8.x`; `-SNAPSHOT` and `-rcN` are dropped. Else ValueError."""
        match = _RELEASE.fullmatch(text.strip())
        if match is None:
            raise ValueError(
                f"{text!r} is not an Apache Kafka release; expected for example 3.9.2"
                " (vendors number their builds differently: give the Apache release it is built on)"
            )
        major, minor, patch = match.groups()
        return cls(int(major), int(minor), ANY_PATCH if patch == "x" else int(patch or 0))

    def __str__(self) -> str:
        """Write it as it is parsed."""
        return f"{self.major}.{self.minor}.{'x' if self.patch == ANY_PATCH else self.patch}"

    def is_followed_by(self, other: Release) -> bool:
        """Return whether no release can lie between this one and a later one."""
        if (self.major, self.minor) == (other.major, other.minor):
            return other.patch == self.patch + 1
        if self.patch != ANY_PATCH or other.patch != 0:
            return False
        if self.major == other.major:
            return other.minor == self.minor + 1
        is_last = _LAST_MINOR.get(self.major) == self.minor
        return is_last and other.major == self.major + 1 and other.minor == 0


_LOWEST = Release(0, 0, 0)
_HIGHEST = Release(1000, 0, 0)


class ReleaseRange(NamedTuple):
    """An inclusive range; None = open on that side. Both None = any release."""

    low: Release | None = None
    high: Release | None = None

    @classmethod
    def of(cls, text: str) -> ReleaseRange:
        """Read what an operator says: `4.2.1` is that release, `4.2` any patch of it; else ValueError."""
        low = Release.parse(text)
        is_line = text.strip().count(".") == 1
        return cls(low, low._replace(patch=ANY_PATCH) if is_line else low)

    @classmethod
    def between(cls, low: str, high: str) -> ReleaseRange:
        """Make the range from `low` to `high`, both included; ValueError if they are in the wrong order."""
        made = cls(Release.parse(low), Release.parse(high))
        if made.is_empty:
            raise ValueError(f"range of releases ends before it starts: {low} to {high}")
        return made

    @classmethod
    def since(cls, low: str) -> ReleaseRange:
        """Make the range of `low` and everything later."""
        return cls(Release.parse(low), None)

    @classmethod
    def until(cls, high: str) -> ReleaseRange:
        """Make the range of `high` and everything earlier."""
        return cls(None, Release.parse(high))

    def __str__(self) -> str:
        """Write it for people."""
        if self.low is None:
            return "any release" if self.high is None else f"up to {self.high}"
        if self.high is None:
            return f"{self.low} or later"
        return str(self.low) if self.low == self.high else f"{self.low} to {self.high}"

    @property
    def is_empty(self) -> bool:
        """Whether it contains no release."""
        return self.bounds[0] > self.bounds[1]

    @property
    def bounds(self) -> tuple[Release, Release]:
        """Both ends, with stand-ins for the open ones."""
        return self.low or _LOWEST, self.high or _HIGHEST

    def contains(self, release: Release) -> bool:
        """Return whether the release is in the range."""
        low, high = self.bounds
        return low <= release <= high

    def overlaps(self, other: ReleaseRange) -> bool:
        """Return whether some release is in both."""
        return max(self.bounds[0], other.bounds[0]) <= min(self.bounds[1], other.bounds[1])

    def within(self, *others: ReleaseRange) -> bool:
        """Return whether every release of this range is in one of the others."""
        low, high = self.bounds
        return any(start <= low and high <= end for start, end in _merge(others))

    def intersect(self, other: ReleaseRange) -> ReleaseRange | None:
        """Compute what both allow; None if they exclude each other."""
        if not self.overlaps(other):
            return None
        low, high = max(self.bounds[0], other.bounds[0]), min(self.bounds[1], other.bounds[1])
        return ReleaseRange(None if low == _LOWEST else low, None if high == _HIGHEST else high)

    def hull(self, other: ReleaseRange) -> ReleaseRange:
        """Compute the smallest range that contains both."""
        low, high = min(self.bounds[0], other.bounds[0]), max(self.bounds[1], other.bounds[1])
        return ReleaseRange(None if low == _LOWEST else low, None if high == _HIGHEST else high)


ANY_RELEASE = ReleaseRange()


def _merge(ranges: tuple[ReleaseRange, ...]) -> list[tuple[Release, Release]]:
    merged: list[tuple[Release, Release]] = []
    for low, high in sorted(one.bounds for one in ranges):
        if merged and (low <= merged[-1][1] or merged[-1][1].is_followed_by(low)):
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged


ROCKSDB_RELEASES: dict[str, ReleaseRange] = {
    "5.7.3": ReleaseRange.until("2.0.x"),
    "5.14.2": ReleaseRange.between("2.1.0", "2.1.x"),
    "5.15.10": ReleaseRange.between("2.2.0", "2.2.x"),
    "5.18.3": ReleaseRange.between("2.3.0", "2.5.x"),
    "5.18.4": ReleaseRange.between("2.6.0", "2.8.x"),
    "6.19.3": ReleaseRange.between("3.0.0", "3.0.x"),
    "6.22.1": ReleaseRange.between("3.1.0", "3.1.x"),
    "6.29.4": ReleaseRange.between("3.2.0", "3.2.x"),
    "7.1.2": ReleaseRange.between("3.3.0", "3.4.x"),
    "7.9.2": ReleaseRange.between("3.5.0", "3.9.x"),
    "9.7.3": ReleaseRange.between("4.0.0", "4.1.x"),
    "10.1.3": ReleaseRange.between("4.2.0", "4.4.x"),
}
"""`rocksdb_version` as `OPTIONS-*` spells it (three numbers) -> Kafka Streams releases that ship it.

Source: the dependency lists of the published `kafka-streams` artefacts. Users may override the library."""


LATEST = Release(4, 4, 0)
"""The last release that was run and read: what is later is not known to the tables."""


LAST_PATCHES: dict[tuple[int, int], int] = {
    (2, 0): 1, (2, 1): 1, (2, 2): 2, (2, 3): 1, (2, 4): 1, (2, 5): 1, (2, 6): 3, (2, 7): 2, (2, 8): 2,
    (3, 0): 2, (3, 1): 2, (3, 2): 3, (3, 3): 2, (3, 4): 1, (3, 5): 2, (3, 6): 2, (3, 7): 2, (3, 8): 1, (3, 9): 2,
    (4, 0): 2, (4, 1): 2, (4, 2): 2, (4, 3): 1, (4, 4): 0,
}  # fmt: skip
"""The last patch of each line that was released by the time of `LATEST`."""


def possible_releases(within: ReleaseRange) -> list[Release]:
    """List the releases of a range, in order: those of the table, and the next patch of each line, which may be out."""
    each = (Release(*line, patch) for line, last in LAST_PATCHES.items() for patch in range(last + 2))
    return [x for x in each if within.contains(x)]


def is_later_than_known(known: ReleaseRange) -> bool:
    """Return whether every release of a range is later than the last one that the tables know."""
    return known.bounds[0] > LATEST


def remark_on(text: str) -> str | None:
    """Say what a release that an operator gave does not decide; None = nothing. ValueError: not a release."""
    given = ReleaseRange.of(text)
    if is_later_than_known(given):
        return (
            f"Kafka Streams {text} is later than {LATEST}, the last release that this version of statewarden knows:"
            " no verdict is sure that it is affected"
        )
    if given.low != given.high:
        return (
            f"Kafka Streams {text} is every patch, {given}: bugs begin and end between patches. Give all three"
            " numbers, as the name of the kafka-streams jar has them"
        )
    return None


def releases_with_rocksdb(version: str) -> ReleaseRange | None:
    """Look up which releases ship a RocksDB version; None = none is known (the user replaced it)."""
    return ROCKSDB_RELEASES.get(".".join(version.split(".")[:3]))
