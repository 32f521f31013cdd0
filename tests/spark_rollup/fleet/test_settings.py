"""Effective settings: reports, overrides, defaults."""

from __future__ import annotations

from typing import Any

import pytest

from agent.contract.events import Kind
from agent.contract.reporting import DISABLED_PREFIX
from spark_rollup.config import Override
from spark_rollup.fleet.events import Event
from spark_rollup.fleet.rows import Settings
from spark_rollup.fleet.settings import effective
from tests.spark_rollup.support.fleet import Fleet, story
from tests.spark_rollup.support.plain import event_of


@story
def an_old_release(fleet: Fleet) -> None:
    fleet.pod("pod-a").configures(1, "2.2.1", num_standby_replicas=1)


@story
def a_new_release(fleet: Fleet) -> None:
    fleet.pod("pod-a").configures(1, "3.9.2").configures(50, "3.9.2", session_timeout_ms=6000)


@story
def a_rolling_upgrade(fleet: Fleet) -> None:
    for pod, low, high in (("pod-a", "2.0.1", "2.2.2"), ("pod-b", "2.10.0", "2.10.1")):
        fleet.pod(pod).tells(Kind.CONFIGURATION, 1, release_low=low, release_high=high, settings=[])


@story
def a_rolling_upgrade_of_which_agents_are_told(fleet: Fleet) -> None:
    for pod, at, release in (("pod-a", 1, "4.2.2"), ("pod-b", 5, "4.1.2"), ("pod-c", 50, "4.2.2")):
        fleet.pod(pod).configures(at, release)
    fleet.pod("pod-gone").configures(-50_000, "3.9.2")


@story
def disabled_detectors(fleet: Fleet) -> None:
    rows = [
        {"key": f"{DISABLED_PREFIX}{name}", "value": "by design", "origin": "file"}
        for name in ("zombie-state", "torn-store")
    ]
    first = fleet.pod("pod-a").tells(Kind.CONFIGURATION, 1, settings=rows)
    first.tells(Kind.CONFIGURATION, 50, settings=rows[:1])
    fleet.pod("pod-b").tells(Kind.CONFIGURATION, 1, settings=rows[:1])
    fleet.pod("pod-c").configures(1, num_standby_replicas=0)


@story
def nothing_known(fleet: Fleet) -> None:
    fleet.pod("pod-a").holds("0_0", 5)


def only(audited: Any, name: str) -> Any:
    (row,) = audited.rows("settings", name)
    return row


def test_old_releases_have_short_timeouts(audited):
    """Up to 2.8 the session timeout is 10 s, up to 2.5 there is no probing rebalance."""
    row = only(audited, an_old_release)
    assert (row["num_standby_replicas"], row["session_ms"], row["probing_ms"]) == (1, 10_000, 0)
    assert row["release_low"] == row["release_high"] == [2, 2, 1]


def test_the_newest_report_counts(audited):
    """A later report adds to and replaces the earlier; defaults fill the rest."""
    row = only(audited, a_new_release)
    assert (row["session_ms"], row["probing_ms"]) == (6000, 600_000)


def test_pods_of_two_releases_widen_the_range(audited):
    """Releases are compared number by number, not as text."""
    row = only(audited, a_rolling_upgrade)
    assert (row["release_low"], row["release_high"]) == ([2, 0, 1], [2, 10, 1])


def test_a_told_release_is_that_of_its_pod(audited):
    """Not of all, because it was told last; that of a pod which has reported nothing for half a day is over."""
    row = only(audited, a_rolling_upgrade_of_which_agents_are_told)
    assert (row["release_low"], row["release_high"]) == ([4, 1, 2], [4, 2, 2])


def test_disabled_detectors_by_each_pods_newest_report(audited):
    """What a pod enabled again is not listed; what others report takes nothing away."""
    row = only(audited, disabled_detectors)
    assert row["disabled"] == [
        ("pod-a", "zombie-state", "by design"),
        ("pod-b", "zombie-state", "by design"),
    ]
    assert row["num_standby_replicas"] == 0


def test_nothing_known_is_null(audited):
    """Unknown stays unknown; only waiting times get their defaults."""
    row = only(audited, nothing_known)
    assert (row["num_standby_replicas"], row["release_low"]) == (None, None)
    assert (row["session_ms"], row["probing_ms"]) == (45_000, 600_000)


def report(*settings: tuple[str, str]) -> Event:
    """A report of one application's settings."""
    rows = [{"key": key, "value": value, "origin": "flag"} for key, value in settings]
    origin = {"namespace": "n", "pod": "p", "application_id": "one", "observed_at_us": 1, "sequence": 1}
    return event_of("1", {"kind": "configuration", "settings": rows, **origin})


def test_an_override_for_one_application_wins():
    """`--set ID:KEY` wins over `--set KEY`, which wins over the agents' report."""
    told = [report(("num_standby_replicas", "1"))]
    overrides = [Override("one", "num_standby_replicas", "3"), Override(None, "num_standby_replicas", "2")]
    assert {name: effective(name, told, overrides).num_standby_replicas for name in ("one", "two")} == {
        "one": 3,
        "two": 2,
    }


def test_what_agents_were_not_given_stays_so():
    """`--set` gives a guarantee to the rules, not to the agents' detectors: these stayed silent without it."""
    overrides = [Override(None, "processing_guarantee", "exactly_once_v2")]
    found = effective("one", [report(("kafka_streams_version", "4.1.2"))], overrides)
    assert (found.release, found.not_given) == ("4.1.2", ["processing_guarantee"])


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (None, None, "unknown"),
        ([3, 9], None, "3.9 or later"),
        (None, [4, 0], "up to 4.0"),
        ([3, 1], [3, 2], "3.1 to 3.2"),
    ],
)
def test_a_range_of_releases_has_words(low, high, text):
    """As exact as it is known."""
    assert Settings(None, None, None, low, high, 1, 1).release == text
