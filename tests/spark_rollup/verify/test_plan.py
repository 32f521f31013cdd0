"""What is read of changelogs, and what they cannot say; no Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.contract.buckets import StoreKind, StoreState
from spark_rollup.sources.changelogs import Ends, Topic
from spark_rollup.verify import plan, replicas
from spark_rollup.verify.digests import Copy, Place

NOW_US = 1_800_000_000_000_000
HOUR_MS = 3_600_000
SETTINGS = {"retention.ms": 30 * HOUR_MS, "delete.retention.ms": 24 * HOUR_MS, "min.compaction.lag.ms": 0}
COPY = Copy(
    1, "shop", "pod-0", "orders", "0_0", "counts", StoreKind.KEY_VALUE, StoreState.CLOSED,
    ("orders-counts-changelog", 0), 99, NOW_US, 4096, (Place(0, 99, True, NOW_US - 1, 5),),
)  # fmt: skip
WINDOWS = replace(COPY, kind=StoreKind.WINDOW, places=(Place(0, 99, True, NOW_US - 1, 5),))
WHOLE = Ends(0, 100, 100)


def planned(copy: Copy, ends: Ends = WHOLE, settings: dict[str, int] = SETTINGS) -> plan.Planned:
    """Plan one copy."""
    (found,) = plan.plan([copy], {COPY.part[0]: Topic({0: ends}, settings)}, NOW_US)
    return found


def at(*offsets: int | None, is_exact: bool = True, hours_old: float = 0) -> Copy:
    """Make a copy with a database at each offset."""
    written_us = NOW_US - int(hours_old * HOUR_MS * 1000) - 1
    places = tuple(Place(0, offset, is_exact, written_us, 5) for offset in offsets)
    return replace(COPY, offset=max((x for x in offsets if x is not None), default=None), places=places)


@pytest.mark.parametrize(
    ("copy", "ends", "settings", "reason"),
    [
        (at(None), WHOLE, SETTINGS, "has no offset"),
        (at(100), WHOLE, SETTINGS, "ends at 100"),
        (at(99), Ends(0, 50, 100), SETTINGS, "transaction at offset 50"),
        (WINDOWS, WHOLE, {}, "DescribeConfigs"),
        (WINDOWS, WHOLE, {**SETTINGS, "retention.ms": -1}, "DescribeConfigs"),
        (replace(WINDOWS, places=(Place(HOUR_MS, 99, True, 0, 5),)), WHOLE, SETTINGS, "do not fit"),
        (replace(COPY, part=(COPY.part[0], 7)), WHOLE, SETTINGS, "no partition 7"),
        (replace(COPY, part=("absent", 0)), WHOLE, SETTINGS, "no topic absent"),
    ],
)
def test_what_cannot_be_judged_says_why(copy, ends, settings, reason):
    """Each has its own reason."""
    found = planned(copy, ends, settings)
    assert isinstance(found, plan.Undecidable)
    assert reason in found.reason


@pytest.mark.parametrize(
    ("copy", "ends", "may_have_gone"),
    [
        (at(99), WHOLE, False),
        (at(99), Ends(1, 100, 100), True),  # the beginning is cut off
        (at(50), WHOLE, False),  # written within delete.retention.ms
        (at(50, hours_old=25), WHOLE, True),
        (at(98, hours_old=25), WHOLE, False),  # nothing but a marker came later
        (at(99, is_exact=False), WHOLE, True),
    ],
)
def test_what_is_extra_counts_only_where_nothing_can_have_gone(copy, ends, may_have_gone):
    """Compaction takes tombstones, the broker the beginning; a copy that went on may hold what is not committed."""
    found = planned(copy, ends)
    assert isinstance(found, plan.Judged)
    assert found.may_have_gone is may_have_gone


@pytest.mark.parametrize(
    ("copy", "doubt"),
    [
        (COPY, None),
        (replace(COPY, state=StoreState.OPEN), None),
        (replace(COPY, state=StoreState.KILLED), "was killed"),
        (replace(COPY, store="totals"), "not the store's own changelog"),
    ],
)
def test_a_difference_may_have_another_cause(copy, doubt):
    """Then it is no proof of damage."""
    found = planned(copy)
    assert isinstance(found, plan.Judged)
    assert (found.doubt is None) if doubt is None else doubt in str(found.doubt)


def test_a_store_without_anything_is_equal_to_a_changelog_without_anything():
    """Both are empty; the store says no offset then."""
    nothing = replace(COPY, offset=None, places=(Place(0, None, False, 0, 0),))
    assert isinstance(planned(nothing, Ends(0, 0, 0)), plan.Empty)


def test_each_partition_is_read_once_for_all_copies():
    """Committed records up to the furthest offset, all records behind the least one."""
    judged = [one for one in (planned(at(40)), planned(at(70))) if isinstance(one, plan.Judged)]
    assert plan.ranges(judged) == ({COPY.part: (0, 71)}, {COPY.part: (41, 100)})


def test_copies_are_compared_where_both_are_exactly_at_one_offset():
    """Not where one went on, nor segments of different offsets; each with the first of its store."""
    places = (Place(0, 5, True, 0, 1), Place(60_000, 9, True, 0, 1))
    one = replace(COPY, copy=1, places=places)
    same = replace(COPY, copy=2, pod="pod-1", places=places)
    partly = replace(COPY, copy=3, pod="pod-2", places=(places[0], Place(60_000, 10, True, 0, 1)))
    moved = replace(COPY, copy=4, pod="pod-3", places=(Place(0, 5, False, 0, 1),))
    other = replace(COPY, copy=5, store="totals", places=places)
    found = replicas.pairs([one, same, partly, moved, other])
    assert [(x.one.copy, x.other.copy, x.segments) for x in found] == [(1, 2, (0, 60_000)), (1, 3, (0,))]


@pytest.mark.parametrize(
    ("one", "other", "doubt"),
    [
        (COPY, COPY, None),
        (replace(COPY, state=StoreState.KILLED), COPY, "killed"),
        (COPY, replace(COPY, state=StoreState.KILLED), "killed"),
        # the owner's bytes are its serializer's, those of a restored copy the topic's
        (
            replace(COPY, part=("prices", 0)),
            replace(COPY, part=("prices", 0)),
            "not the store's own changelog",
        ),
    ],
)
def test_two_copies_may_differ_for_another_reason(one, other, doubt):
    """The same reasons for which one of them may differ from its changelog."""
    found = replicas.Difference(replicas.Pair(one, replace(other, copy=2), (0,)), {}).doubt
    assert (found is None) if doubt is None else doubt in str(found)
