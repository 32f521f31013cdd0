"""What is read of changelogs, and what they cannot say; no Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.contract.buckets import StoreKind, StoreState
from spark_rollup.sources.changelogs import Ends, Topic
from spark_rollup.verify import plan, replicas
from spark_rollup.verify.digests import Copy
from spark_rollup.verify.verdicts import Verdict, Word
from tests.spark_rollup.support.digest_files import COPY, HOUR_MS, NOW_US, PLACE

SETTINGS = {"retention.ms": 30 * HOUR_MS, "delete.retention.ms": 24 * HOUR_MS, "min.compaction.lag.ms": 0}
WINDOWS = replace(COPY, kind=StoreKind.WINDOW)
WHOLE = Ends(0, 100, 100)


def planned(copy: Copy, ends: Ends = WHOLE, settings: dict[str, int] = SETTINGS) -> plan.Judged | Verdict:
    """Plan one copy."""
    (found,) = plan.plan([copy], {COPY.topic: Topic({0: ends}, settings)}, NOW_US)
    return found


def at(*offsets: int | None, is_exact: bool = True, hours_old: float = 0) -> Copy:
    """Make a copy with a database at each offset."""
    written_us = NOW_US - int(hours_old * HOUR_MS * 1000) - 1
    found = tuple(replace(PLACE, offset=x, is_exact=is_exact, written_us=written_us) for x in offsets)
    return replace(COPY, offset=max((x for x in offsets if x is not None), default=None), databases=found)


@pytest.mark.parametrize(
    ("copy", "ends", "settings", "reason"),
    [
        (at(None), WHOLE, SETTINGS, "has no offset"),
        (at(100), WHOLE, SETTINGS, "ends at 100"),
        (at(99), Ends(0, 50, 100), SETTINGS, "transaction at offset 50"),
        (WINDOWS, WHOLE, {}, "DescribeConfigs"),
        (WINDOWS, WHOLE, {**SETTINGS, "retention.ms": -1}, "DescribeConfigs"),
        (replace(WINDOWS, databases=(replace(PLACE, segment_ms=HOUR_MS),)), WHOLE, SETTINGS, "do not fit"),
        (replace(COPY, partition=7), WHOLE, SETTINGS, "no partition 7"),
        (replace(COPY, topic="absent"), WHOLE, SETTINGS, "no topic absent"),
    ],
)
def test_what_cannot_be_judged_says_why(copy, ends, settings, reason):
    """Each has its own reason."""
    found = planned(copy, ends, settings)
    assert isinstance(found, Verdict)
    assert found.word is Word.UNDECIDABLE
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


KILLED, FOREIGN = replace(COPY, state=StoreState.KILLED), replace(COPY, topic="prices")


@pytest.mark.parametrize(
    ("copy", "doubt"),
    [(COPY, ""), (replace(COPY, state=StoreState.OPEN), ""), (KILLED, "was killed"),
     (FOREIGN, "not the store's own changelog")],
)  # fmt: skip
def test_a_difference_may_have_another_cause(copy, doubt):
    """Then it is no proof of damage, of the copy's nor of a pair's: a restored copy has the topic's bytes."""
    for found in (copy.doubt, replicas.Pair(copy, COPY, ()).doubt, replicas.Pair(COPY, copy, ()).doubt):
        assert doubt in str(found) if doubt else found is None


def test_a_store_without_anything_is_equal_to_a_changelog_without_anything():
    """Both are empty; the store says no offset then."""
    nothing = replace(COPY, offset=None, databases=(replace(PLACE, offset=None, entries=0),))
    found = planned(nothing, Ends(0, 0, 0))
    assert isinstance(found, Verdict)
    assert (found.word, found.counts["buckets"]) == (Word.EQUAL, 0)


def test_each_partition_is_read_once_for_all_copies():
    """Committed records up to the furthest offset, all records behind the least one."""
    judged = [one for one in (planned(at(40)), planned(at(70))) if isinstance(one, plan.Judged)]
    assert plan.ranges(judged) == ({COPY.part: (0, 71)}, {COPY.part: (41, 100)})


def test_copies_are_compared_where_both_are_exactly_at_one_offset():
    """Not where one went on, nor segments of different offsets; each with the first of its store."""
    at_5, at_9 = replace(PLACE, segment_ms=0, offset=5), replace(PLACE, segment_ms=60_000, offset=9)
    one = replace(COPY, databases=(at_5, at_9))
    same = replace(one, copy=2, pod="pod-1")
    partly = replace(one, copy=3, pod="pod-2", databases=(at_5, replace(at_9, offset=10)))
    moved = replace(one, copy=4, pod="pod-3", databases=(replace(at_5, is_exact=False),))
    other = replace(one, copy=5, store="totals")
    found = replicas.pairs([one, same, partly, moved, other])
    assert [(x.one.copy, x.other.copy, x.segments) for x in found] == [(1, 2, (0, 60_000)), (1, 3, (0,))]
