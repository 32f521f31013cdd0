"""What agents say and no rule settles counts like a rule's finding; what a rule settles counts once."""

from __future__ import annotations

import pytest

from tests.spark_rollup.support.fleet import Fleet, story


@story
def nobody_else_speaks_of_it(fleet: Fleet) -> None:
    a = fleet.pod("pod-a").holds("0_0", 5)
    a.finds("false-clean-store", "0_0", 60, store="s", identity="i", next_action="remove the directory")
    a.finds("torn-store", "0_1", 61, severity="warning")
    a.finds("setup", "0_2", 62, severity="info")
    a.finds("orphaned-task", "0_3", 63, status="resolved")


@story
def a_rule_confirms_it(fleet: Fleet) -> None:
    a = fleet.pod("pod-a").holds("0_0", 5)
    a.finds("skipped-eos-wipe", "0_0", 60, store="s", identity="suspect")


@story
def a_rule_refutes_it(fleet: Fleet) -> None:
    a, b = fleet.pod("pod-a"), fleet.pod("pod-b")
    a.configures(1, "3.9.2", num_standby_replicas=1, processing_guarantee="exactly_once_v2")
    a.holds("0_0", 5).releases("0_0", 600).holds("0_0", 605)
    b.holds("0_0", 5)
    for at, puts in ((100, 100), (300, 9_000), (500, 15_000)):
        b.measures("0_0", at, identity="other", puts=puts, offset=50)
    a.finds("skipped-eos-wipe", "0_0", 606, identity="suspect", severity="warning", confidence="suspected")


@story
def a_quieter_rule_mentions_it(fleet: Fleet) -> None:
    a, b = fleet.pod("pod-a"), fleet.pod("pod-b")
    a.configures(
        1, "3.9.2", num_standby_replicas=1, session_timeout_ms=6000, probing_rebalance_interval_ms=1000
    )
    for pod in (a, b):
        pod.holds("0_0", 5).measures("0_0", 800, offset=100, puts=100)
    b.finds("torn-store", "0_0", 60)


@story
def a_namesake_elsewhere(fleet: Fleet) -> None:
    a = fleet.pod("pod-a").holds("0_0", 5)
    # the id of a finding that a rule confirms in another namespace
    a.finds("zombie-state", "0_0", 60, finding_id="skipped-eos-wipe-pod-a-0_0")


def told(audited, name: str) -> list[tuple[object, ...]]:
    return sorted((row["detector"], row["task_id"], row["severity"]) for row in audited.rows("alone", name))


def test_an_agents_open_damage_counts(audited):
    """Critical and warning, open: with its address, evidence and next action, told by the agent."""
    assert told(audited, nobody_else_speaks_of_it) == [
        ("false-clean-store", "0_0", "critical"),
        ("torn-store", "0_1", "warning"),
    ]
    row = next(row for row in audited.rows("alone", nobody_else_speaks_of_it) if row["task_id"] == "0_0")
    assert (row["reported_by"], row["pod"], row["pods"], row["status"]) == (
        "agent",
        "pod-a",
        ["pod-a"],
        "open",
    )
    assert (row["next_action"], row["id"]) == ("remove the directory", "false-clean-store-pod-a-0_0")
    assert row["opened_at"] == "2026-11-18T11:07:40.000000Z"
    assert len(row["evidence"]) == 1


@pytest.mark.parametrize("name", [a_rule_confirms_it, a_rule_refutes_it])
def test_what_a_rule_settles_counts_once(audited, name):
    """The rule's own finding stands for it; what is refuted stands for nothing."""
    assert len(audited.findings(name, "stale-eos-state")) == 1
    assert told(audited, name) == []


def test_a_quieter_finding_settles_nothing(audited):
    """That a second copy is missing is a warning; the damage that makes it missing is critical all the same."""
    assert audited.finding(a_quieter_rule_mentions_it, "unprotected-task")["explains"] == [
        "torn-store-pod-b-0_0"
    ]
    assert told(audited, a_quieter_rule_mentions_it) == [("torn-store", "0_0", "critical")]


def test_another_namespace_settles_nothing(audited):
    """Ids are made of names and times: the same id in another namespace is another finding."""
    assert told(audited, a_namesake_elsewhere) == [("zombie-state", "0_0", "critical")]
