"""Copies at the same offset whose numbers of live entries exclude each other."""

from __future__ import annotations

import pytest

from tests.spark_rollup.support.fleet import Fleet, Pod, story

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

RULE = "diverged-replica"


def stands(pod: Pod, at: float, offset: int, low: int, high: int, **store: str) -> None:
    """Write a checkpoint and be looked at before anything else is flushed."""
    pod.writes_checkpoint("0_0", at, offset=offset, puts=high, store="s")
    pod.measures(
        "0_0", at + 1, offset=offset, puts=high, entries_low=low, entries_high=high, held=True, **store
    )


@story
def one_copy_lacks_entries(fleet: Fleet) -> None:
    stands(fleet.pod("pod-a"), 60, 1000, 40, 50)
    stands(fleet.pod("pod-b"), 70, 1000, 900, 1000)
    fleet.pods[0].finds("resurrected-checkpoint", "0_0", 61)


@story
def bounds_overlap(fleet: Fleet) -> None:
    stands(fleet.pod("pod-a"), 60, 1000, 40, 950)
    stands(fleet.pod("pod-b"), 70, 1000, 900, 1000)


@story
def offsets_differ(fleet: Fleet) -> None:
    stands(fleet.pod("pod-a"), 60, 1001, 40, 50)
    stands(fleet.pod("pod-b"), 70, 1000, 900, 1000)


@story
def something_was_flushed_after_the_checkpoint(fleet: Fleet) -> None:
    a = fleet.pod("pod-a").writes_checkpoint("0_0", 60, offset=1000, puts=30, store="s")
    a.measures("0_0", 61, offset=1000, puts=50, entries_low=40, entries_high=50)
    stands(fleet.pod("pod-b"), 70, 1000, 900, 1000)


@story
def closed_stores_of_a_late_release(fleet: Fleet) -> None:
    for name, low in (("pod-a", 40), ("pod-b", 900)):
        fleet.pod(name).measures(
            "0_0", 60, held=False, offset=1000, puts=1000, entries_low=low, entries_high=low, status="closed"
        )


@story
def an_open_store_of_a_late_release(fleet: Fleet) -> None:
    for name, low in (("pod-a", 40), ("pod-b", 900)):
        fleet.pod(name).measures(
            "0_0", 60, offset=1000, puts=1000, entries_low=low, entries_high=low, status="open"
        )


@story
def windowed(fleet: Fleet) -> None:
    stands(fleet.pod("pod-a"), 60, 1000, 40, 50, segment="s.1")
    stands(fleet.pod("pod-b"), 70, 1000, 900, 1000, segment="s.1")


@story
def unwatched_between_the_looks(fleet: Fleet) -> None:
    stands(fleet.pod("pod-a").is_blind(64, 66), 60, 1000, 40, 50)
    stands(fleet.pod("pod-b"), 70, 1000, 900, 1000)


def test_copies_that_exclude_each_other_are_critical(audited):
    """Both stand at the same offset, one lacks hundreds of entries; the agent's finding is borne out."""
    found = audited.finding(one_copy_lacks_entries, RULE)
    assert (found["severity"], found["confidence"], found["pod"]) == ("critical", "confirmed", "pod-a")
    assert "at offset 1000 pod-a holds at most 50 live entries, pod-b at least 900" in found["summary"]
    assert found["confirms"] == ["resurrected-checkpoint-pod-a-0_0"]
    assert found["pods"] == ["pod-a", "pod-b"]


def test_closed_stores_of_later_releases_compare(audited):
    """From 4.3 on a closed store holds its own offset: no checkpoint needed."""
    assert audited.finding(closed_stores_of_a_late_release, RULE)["confidence"] == "confirmed"


@pytest.mark.parametrize(
    "name",
    [
        bounds_overlap,
        offsets_differ,
        something_was_flushed_after_the_checkpoint,
        an_open_store_of_a_late_release,
        windowed,
    ],
)
def test_what_cannot_be_compared_is_quiet(audited, name):
    """Overlapping bounds, other offsets, files beyond the offset and segments prove nothing."""
    assert audited.findings(name, RULE) == []


def test_unwatched_time_between_the_readings_lowers(audited):
    """Between the looks something unseen may have happened: suspected."""
    found = audited.finding(unwatched_between_the_looks, RULE)
    assert (found["severity"], found["confidence"]) == ("warning", "suspected")
