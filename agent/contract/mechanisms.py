"""Mechanisms: what goes wrong, whatever signals it. Findings with one mechanism can belong to one incident.

A detector or rule declares its mechanism; without one it has its own, and its findings are incidents among
themselves.
"""

from __future__ import annotations

from enum import Enum


class Mechanism(Enum):
    """What goes wrong: a slug for machines, and a title for people."""

    OFFSET_WITHOUT_DATA = (
        "offset-without-data",
        "A store goes on from an offset whose data it does not have",
    )
    UNCOMMITTED_DATA = ("uncommitted-data", "A store goes on with data that was never committed")
    LOST_SEGMENT = ("unflushed-segment", "Segments of a windowed store lose what was not flushed")
    SHORT_CHANGELOG = ("short-changelog", "A changelog ends before what its store holds")
    SHARED_STATE = ("shared-state", "Two processes believe that the same state is theirs")

    def __init__(self, slug: str, title: str) -> None:
        """Name it."""
        self.slug = slug
        self.title = title


TITLES = {mechanism.slug: mechanism.title for mechanism in Mechanism}
