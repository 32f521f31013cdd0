"""What is said of any exposed application is excused, and nothing else; no broker, no Java."""

from __future__ import annotations

import dataclasses

import pytest

from agent.judging.upstream import KAFKA_20685
from agent.layout.releases import Release
from tests.lab.plan import RELEASES, is_exposed
from tests.lab.said import Said, is_exposure, rank

ORDERLY = [(10, "a starts 4.2.1"), (20, "a closes"), (30, "a closed"), (40, "a starts 4.2.1")]


def said(detector: str, severity: str = "warning", at_us: int = 45) -> Said:
    """One finding of the told agent."""
    return Said("a-told", detector, "0_0", "-", severity, "suspected", "yes", "summary", "mark", at_us)


def test_an_orderly_restart_excuses_no_skipped_wipe():
    """Found live with 4.2.1: it was said ten seconds after an orderly restart, and passed for right."""
    assert not is_exposure(said("skipped-eos-wipe"), ORDERLY)
    assert is_exposure(said("stale-eos-checkpoint"), ORDERLY)


@pytest.mark.parametrize(
    "mark", ["a is killed", "b is frozen", "a commit has timed out", "the broker goes on"]
)
def test_a_crash_before_it_does(mark):
    """After anything unclean a warning is due; what comes later does not count, and a critical word never."""
    assert is_exposure(said("skipped-eos-wipe"), [*ORDERLY, (45, mark)])
    assert not is_exposure(said("skipped-eos-wipe"), [*ORDERLY, (46, mark)])
    assert not is_exposure(said("skipped-eos-wipe", "critical"), [*ORDERLY, (45, mark)])
    assert not is_exposure(said("interrupted-wipe"), [*ORDERLY, (45, mark)])


def test_of_two_words_as_loud_as_each_other_the_surer_counts():
    """A loss that is suspected before a start and confirmed after it is a confirmed one."""
    suspected = said("lost-segment", "critical")
    confirmed = dataclasses.replace(suspected, confidence="confirmed")
    warning = dataclasses.replace(confirmed, severity="warning")
    assert rank(warning) < rank(suspected) < rank(confirmed)


def test_a_release_is_exposed_where_the_list_of_upstream_issues_says_so():
    """4.2.2 has the fix, and 4.3 keeps offsets in the store."""
    exposed = [release for release in RELEASES if is_exposed(release)]
    assert exposed == ["3.8.1", "3.9.0", "3.9.2", "4.0.0", "4.1.0", "4.2.0", "4.2.1"]
    assert exposed == [
        release
        for release in RELEASES
        if any(affected.contains(Release.parse(release)) for affected in KAFKA_20685.releases)
    ]
