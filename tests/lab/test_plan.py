"""Releases are listed once; which of them, with which settings, a scenario must find out."""

from __future__ import annotations

import pytest

from tests.lab.plan import (
    ALOS,
    CHAIN,
    EOS,
    NEWEST,
    RELEASES,
    TRANSACTIONAL,
    configured,
    downgrade_of,
    numbers,
)
from tests.lab.scenarios import SCENARIOS

GIVEN = {
    "processing.guarantee": "x",
    "state.cleanup.delay.ms": 1,
    "num.standby.replicas": 0,
    "commit.interval.ms": 1,
}


def test_chains_are_taken_from_the_list_and_end_with_its_newest():
    assert list(RELEASES) == sorted(RELEASES, key=numbers)
    assert set(CHAIN) <= set(RELEASES)
    assert CHAIN[-1] == NEWEST


@pytest.mark.parametrize(
    ("release", "older"),
    [
        ("4.4.0", "4.3.1"),
        ("4.3.0", None),
        ("4.2.2", "4.2.1"),
        ("3.7.2", None),
        ("2.0.1", None),
        ("9.9.9", None),
    ],
)
def test_a_downgrade_is_to_the_release_before_that_can_open_the_stores(release, older):
    """4.2 does not know the column family of 4.3; older pairs were not tried."""
    assert downgrade_of(release) == older


@pytest.mark.parametrize(
    ("name", "release", "guarantee", "is_affected"),
    [
        ("lost-segment", "4.4.0", ALOS, True),
        ("lost-segment-txn", "4.4.0", ALOS, True),
        ("lost-segment-wiped", "4.4.0", EOS, False),
        ("lost-segment-wiped-txn", "4.4.0", EOS, True),
        ("dirty-close", "4.4.0", EOS, True),
        ("dirty-close-txn", "4.4.0", EOS, False),
        ("corrupt-kill", "4.3.1", EOS, True),
        ("corrupt-kill", "4.4.0", EOS, False),
        ("corrupt-kill-txn", "4.4.0", EOS, True),
        ("upgraded-crash", "4.4.0", EOS, False),
        ("upgraded-crash-txn", "4.4.0", EOS, True),
        ("enabled-crash", "4.4.0", EOS, False),
        ("enabled-crash-txn", "4.4.0", EOS, True),
        ("k20685-upgraded", "4.4.0", EOS, True),
        ("k20685", "4.4.0", EOS, False),
        ("k20805", "4.3.1", ALOS, True),
        ("k20805", "4.4.0", ALOS, False),
        ("d13", "4.3.1", EOS, True),
        ("d13", "4.4.0", EOS, False),
        ("torn-cleanup", "4.2.2", ALOS, True),
        ("torn-cleanup", "4.4.0", ALOS, False),
    ],
)
def test_what_a_scenario_must_find_depends_on_release_and_transactional_stores(
    name, release, guarantee, is_affected
):
    """docs/affected.md, and what docs/found shows."""
    scenario = SCENARIOS[name]
    plan = scenario.planned(release, guarantee)
    assert scenario.affected(plan) is is_affected
    assert bool(scenario.must(plan)) is is_affected


def test_a_plan_has_what_its_scenario_gives():
    assert SCENARIOS["threads"].planned("4.4.0", ALOS).partitions == 4


def test_a_setting_of_the_command_line_counts():
    scenario = SCENARIOS["lost-segment-wiped"]
    assert scenario.must(scenario.planned("4.4.0", EOS, {TRANSACTIONAL: "true"}))
    assert not scenario.must(scenario.planned("4.3.1", EOS, {TRANSACTIONAL: "true"}))


def test_an_agent_is_configured_for_transactional_stores_where_the_release_has_them(monkeypatch):
    monkeypatch.setattr("tests.lab.plan.KEYS_BY_NAME", dict.fromkeys(["enable_transactional_statestores"]))
    name = "enable_transactional_statestores"
    assert configured(GIVEN, "4.4.0") == {name: "false"}
    assert configured(GIVEN | {TRANSACTIONAL: "true"}, "4.4.0") == {name: "true"}
    assert configured(GIVEN | {TRANSACTIONAL: "true"}, "4.3.1") == {}
