"""Mechanisms: what goes wrong, whatever signals it. Findings with one mechanism can belong to one incident.

Beside them the order of instructions: what must come first wherever two incidents are about the same task.

A detector or rule declares its mechanism, and a verdict may have another one than its detector; without one a
detector has its own, and its findings are incidents among themselves.
"""

from __future__ import annotations

from enum import Enum


class Mechanism(Enum):
    """What goes wrong: a slug for machines, and a title for people."""

    OFFSET_WITHOUT_DATA = (
        "offset-without-data",
        "A store resumed from an offset but lacks data before it",
    )
    DAMAGED_FILES = ("damaged-files", "Files of a store are damaged or missing")
    UNCOMMITTED_DATA = ("uncommitted-data", "A store keeps data that was never committed")
    LOST_SEGMENT = ("unflushed-segment", "Segments of a windowed store lose unflushed records")
    REFUSED_TASK = ("refused-task", "A task is refused at every start")
    SHORT_CHANGELOG = ("short-changelog", "A changelog ends before what its store holds")
    SHARED_STATE = ("shared-state", "Two processes use the same state")
    OTHER_RELEASE = ("other-release", "The disk was written by another release than is configured or runs")
    SHORT_LIVED = ("short-lived", "State is on a volume that does not outlive the pod")
    TOO_FEW_COPIES = ("too-few-copies", "A task has fewer good copies than it should")
    UNEQUAL_COPIES = ("unequal-copies", "A copy differs from another copy or from the changelog")

    slug: str
    title: str

    def __new__(cls, slug: str, title: str) -> Mechanism:
        """Make the slug the value, as rows and events have it: who compares with `value` compares with that."""
        one = object.__new__(cls)
        one._value_ = one.slug = slug
        one.title = title
        return one


TITLES = {mechanism.slug: mechanism.title for mechanism in Mechanism}

INSTRUCTIONS_FIRST = (
    # with two processes on one state no repair lasts
    "setup",
    "shared-state-dir",  # of agents that have no `setup`
    "cloned-process",
    "cloned-volume",
    "split-owner",
    # a copy that others say to remove may be the only complete one
    "changelog-truncated",
    # compare before anything is removed
    "store-shrank",
    "diverged-replica",
    "replicas-differ",
)
"""Detectors and rules whose instruction comes before any other about the same task, in this order.

One list, because detectors and rules do not know each other; agents of every version are judged by it.
"""

ONLY_OF_DAMAGE = frozenset({"setup"})
"""What these report beside damage, such as a volume that does not last, comes before nothing."""


def comes_first(detector: str) -> int:
    """Return the place of an instruction before all others, from 1; 0 = it has none."""
    return INSTRUCTIONS_FIRST.index(detector) + 1 if detector in INSTRUCTIONS_FIRST else 0
