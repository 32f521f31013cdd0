"""Where state went that should have been wiped."""

from __future__ import annotations

import pytest

from tests.spark_rollup.support.fleet import Fleet, Pod, at_us, cases, says, story

RULE, WIPE = "stale-eos-state", "skipped-eos-wipe-pod-a-0_0"
ACTIVE = {"loud": "warning suspected open", "confirms": [WIPE]}
"""An agent's information becomes a warning where the fleet shows that its copy was the active."""


def skipped_wipe(fleet: Fleet, **body: object):
    a = fleet.pod("pod-a").holds("0_0", 5).measures("0_0", 30, identity="suspect", puts=10, offset=10)
    return a.finds("skipped-eos-wipe", "0_0", 60, store="s", identity="suspect", **body)


@says(RULE, loud="critical confirmed", level="damage", pods=["pod-a"], confirms=[WIPE])
def nobody_else_has_it(fleet: Fleet) -> None:
    """No other pod has the state: severity and confidence are the agent's, and only the pod itself is named."""
    skipped_wipe(fleet)
    fleet.pod("pod-b").holds("0_1", 5)


def replaced(fleet: Fleet, offset: int) -> None:
    """Tell of a suspect store that was removed, and of how far the one in its place came."""
    over = {"status": "resolved", "resolved_at_us": at_us(200)}
    skipped_wipe(fleet).repeats(
        "skipped-eos-wipe", "0_0", 200, 60, store="s", identity="suspect", **over
    ).measures("0_0", 300, identity="new", puts=10, offset=offset)


@says(
    RULE,
    loud="critical confirmed resolved",
    evidence="the store in its place claims to be restored up to offset 12; no copy was known beyond 10",
)
def the_store_was_restored(fleet: Fleet) -> None:
    """How an incident ended is said where readings show it: the new store is where any copy was."""
    replaced(fleet, 12)


@story
def the_store_is_being_restored(fleet: Fleet) -> None:
    """The new store has not caught up."""
    replaced(fleet, 9)


def test_a_store_that_is_being_restored_ends_nothing(audited):
    """Nothing is said of the new store until a reading shows it where any copy was."""
    (row,) = audited.findings(the_store_is_being_restored, RULE)
    assert not [step for step in row["evidence"] if "restored" in step["what"]]


@says(RULE, pods=["pod-a", "pod-b"], evidence="pod-b held the task")
def the_task_moved_on(fleet: Fleet) -> None:
    """A pod that takes the task afterwards restores what the suspect wrote; one that left before does not count."""
    skipped_wipe(fleet).releases("0_0", 100)
    fleet.pod("pod-b").holds("0_0", 105)
    fleet.pod("pod-c").holds("0_0", 10).releases("0_0", 20)


@says(RULE, pods=["pod-a", "pod-b"], evidence="pod-b has the same store (identity suspect)")
def the_volume_moved(fleet: Fleet) -> None:
    """The same store identity on another pod is the same files."""
    skipped_wipe(fleet).releases("0_0", 100)
    fleet.pod("pod-b").measures("0_0", 200, held=None, identity="suspect", puts=12, offset=12)


@says(RULE)
def only_information(fleet: Fleet) -> None:
    """An agent's note below warning starts nothing."""
    skipped_wipe(fleet, severity="info", confidence="suspected")


@says(RULE, confidence="suspected")
def the_agent_was_blind_meanwhile(fleet: Fleet) -> None:
    """A blind interval across the finding takes `confirmed` away."""
    skipped_wipe(fleet).is_blind(59, 61)


@says(RULE, loud="critical confirmed")
def blind_before_it_was_said_again(fleet: Fleet) -> None:
    """A finding is of the time when it was said first: nobody was blind until then."""
    wipe = {"store": "s", "identity": "suspect"}
    skipped_wipe(fleet).is_blind(300, 310).repeats("skipped-eos-wipe", "0_0", 600, 60, **wipe)


@says(RULE, loud="warning suspected")
def a_wipe_was_interrupted(fleet: Fleet) -> None:
    """The twin detector's findings are treated alike."""
    a = fleet.pod("pod-a").holds("0_0", 5)
    a.finds("interrupted-wipe", "0_0", 60, severity="warning", confidence="suspected")


ROLE_UNKNOWN = {"severity": "info", "confidence": "suspected", "missing_facts": ["num_standby_replicas"]}


def crashed(fleet: Fleet, **settings: object):
    """Tell of a pod that held the task for ten minutes, died, and kept what it had."""
    a = fleet.pod("pod-a").configures(1, "4.1.2", processing_guarantee="exactly_once_v2", **settings)
    a.holds("0_0", 5).writes_checkpoint("0_0", 6, offset=10, puts=10)
    for at, puts in ((100, 200), (200, 500), (300, 900), (400, 1200), (500, 1500)):
        a.measures("0_0", at, identity="suspect", puts=puts, offset=10)
    a.releases("0_0", 600).holds("0_0", 605)
    return a.finds("skipped-eos-wipe", "0_0", 606, store="s", identity="suspect", **ROLE_UNKNOWN)


@says(RULE, evidence="no other pod held 0_0 before the crash: pod-a was its active", **ACTIVE)
def one_holder_at_a_time(fleet: Fleet) -> None:
    crashed(fleet, num_standby_replicas=1)
    fleet.pod("pod-b").holds("0_1", 5)


@says(RULE, evidence="no other pod held 0_0 before the crash: pod-a was its active", **ACTIVE)
def one_holder_standbys_not_known(fleet: Fleet) -> None:
    crashed(fleet)
    fleet.pod("pod-b").holds("0_1", 5)


@says(RULE, evidence="orders has no other pod: pod-a was the active of 0_0", **ACTIVE)
def the_only_pod(fleet: Fleet) -> None:
    a = fleet.pod("pod-a").configures(
        1, "4.1.2", processing_guarantee="exactly_once_v2", num_standby_replicas=1
    )
    a.holds("0_0", 590).releases("0_0", 593).holds("0_0", 600)
    a.finds("skipped-eos-wipe", "0_0", 601, store="s", identity="suspect", **ROLE_UNKNOWN)


@says(RULE, evidence="pod-b wrote checkpoints of 0_0 as a standby does, pod-a wrote none", **ACTIVE)
def the_other_was_the_standby(fleet: Fleet) -> None:
    crashed(fleet, num_standby_replicas=1)
    b = fleet.pod("pod-b").holds("0_0", 5)
    for at, offset in ((120, 11_000), (300, 22_000), (480, 33_000)):
        b.writes_checkpoint("0_0", at, offset=offset)


GROWS = ((100, 100), (300, 9_000), (500, 15_000), (560, 16_000))
"""More than 10,000 puts, and more when commits had passed since."""


@says(RULE, severity="info", status="resolved", refutes=[WIPE])
def the_other_was_the_active(fleet: Fleet) -> None:
    """Who put in more than 10,000 records without a checkpoint was the active; the suspect was its standby."""
    crashed(fleet, num_standby_replicas=1)
    b = fleet.pod("pod-b").holds("0_0", 5)
    for at, puts in GROWS:
        b.measures("0_0", at, identity="other", puts=puts, offset=50)


def other_store(fleet: Fleet, **store: object) -> Pod:
    """Tell of the same crash beside a copy whose store grows by 15,900 puts without a checkpoint."""
    crashed(fleet, num_standby_replicas=1)
    b = fleet.pod("pod-b").holds("0_0", 5)
    for at, puts in GROWS:
        b.measures("0_0", at, True, identity="other", puts=puts, offset=50, **store)
    return b


@story
def two_puts_a_record(fleet: Fleet) -> None:
    other_store(fleet, segment="s.0", unsaved_puts=20_000)


@story
def a_kind_that_nobody_knows(fleet: Fleet) -> None:
    other_store(fleet, unsaved_puts=None)


@story
def an_agent_that_does_not_say_the_kind(fleet: Fleet) -> None:
    crashed(fleet, num_standby_replicas=1)
    b = fleet.pod("pod-b", counts=False).holds("0_0", 5)
    for at, puts in GROWS:
        b.measures("0_0", at, identity="other", puts=puts, offset=50)


@story
def a_checkpoint_may_have_been_missed(fleet: Fleet) -> None:
    other_store(fleet).is_blind(520, 530)


@story
def it_stopped_before_the_next_commit(fleet: Fleet) -> None:
    crashed(fleet, num_standby_replicas=1)
    b = fleet.pod("pod-b").holds("0_0", 5)
    for at, puts in (*GROWS[:3], (560, 15_000)):
        b.measures("0_0", at, identity="other", puts=puts, offset=50)


@story
def two_stores_that_hardly_grow(fleet: Fleet) -> None:
    crashed(fleet, num_standby_replicas=1)
    b = fleet.pod("pod-b").holds("0_0", 5)
    for at in (100, 300, 500, 560):
        b.measures("0_0", at, identity="large", store="large", puts=40_000 + at, offset=50)
        b.measures("0_0", at + 1, identity="small", store="small", puts=at, offset=50)


@story
def no_checkpoint_files_any_more(fleet: Fleet) -> None:
    a = fleet.pod("pod-a").configures(
        1, "4.3.0", processing_guarantee="exactly_once_v2", num_standby_replicas=1
    )
    a.holds("0_0", 5).releases("0_0", 600).holds("0_0", 605)
    a.finds("skipped-eos-wipe", "0_0", 606, store="s", **ROLE_UNKNOWN | {"severity": "warning"})
    b = fleet.pod("pod-b").holds("0_0", 5)
    for at, puts in GROWS:
        b.measures("0_0", at, identity="other", puts=puts, offset=50)


@says(RULE)
def its_stores_do_not_grow(fleet: Fleet) -> None:
    """Two stores of the suspect, of different size: nothing was put into either beside the standby."""
    a = fleet.pod("pod-a").configures(
        1, "4.1.2", processing_guarantee="exactly_once_v2", num_standby_replicas=1
    )
    a.holds("0_0", 5)
    for at in (100, 200, 300, 400, 500):
        a.measures("0_0", at, identity="one", store="one", puts=5, offset=10)
        a.measures("0_0", at + 1, identity="two", store="two", puts=5_000, offset=10)
    a.releases("0_0", 600).holds("0_0", 605)
    a.finds("skipped-eos-wipe", "0_0", 606, store="one", identity="one", **ROLE_UNKNOWN)
    b = fleet.pod("pod-b").holds("0_0", 5)
    for at, offset in ((120, 11_000), (300, 22_000), (480, 33_000)):
        b.writes_checkpoint("0_0", at, offset=offset)


@says(RULE)
def both_wrote_checkpoints(fleet: Fleet) -> None:
    """Two standbys: the fleet does not know the role, and nothing is raised."""
    a = crashed(fleet, num_standby_replicas=1)
    b = fleet.pod("pod-b").holds("0_0", 5)
    for at, offset in ((120, 11_000), (300, 22_000), (480, 33_000)):
        b.writes_checkpoint("0_0", at, offset=offset)
        a.writes_checkpoint("0_0", at + 1, offset=offset)


@says(RULE)
def a_pod_was_not_watched(fleet: Fleet) -> None:
    """It may have held the task."""
    crashed(fleet, num_standby_replicas=1)
    fleet.pod("pod-b").holds("0_1", 5).is_blind(570, 590)


@says(RULE)
def the_former_holder_left_a_moment_ago(fleet: Fleet) -> None:
    crashed(fleet, num_standby_replicas=1)
    fleet.pod("pod-b").holds("0_0", 5).releases("0_0", 580)


@says(RULE)
def a_standby_alone_for_a_moment(fleet: Fleet) -> None:
    a = fleet.pod("pod-a").configures(
        1, "4.1.2", processing_guarantee="exactly_once_v2", num_standby_replicas=1
    )
    a.holds("0_0", 590).releases("0_0", 600).holds("0_0", 605)
    a.finds("skipped-eos-wipe", "0_0", 606, store="s", identity="suspect", **ROLE_UNKNOWN)
    fleet.pod("pod-b").holds("0_1", 5)


@says(RULE)
def a_revocation_that_is_no_wipe(fleet: Fleet) -> None:
    a = fleet.pod("pod-a").configures(
        1, "4.1.2", processing_guarantee="exactly_once_v2", num_standby_replicas=1
    )
    a.holds("0_0", 5).releases("0_0", 600)
    a.finds("interrupted-wipe", "0_0", 606, severity="info", confidence="suspected")


@pytest.mark.parametrize(
    "name",
    [
        two_puts_a_record,
        a_kind_that_nobody_knows,
        an_agent_that_does_not_say_the_kind,
        a_checkpoint_may_have_been_missed,
        it_stopped_before_the_next_commit,
        two_stores_that_hardly_grow,
        no_checkpoint_files_any_more,
    ],
)
def test_what_a_standby_may_do_refutes_nothing(audited, name):
    """Puts are no records, stores are not one, and a checkpoint may be due, or not seen, or no file."""
    assert all(found["refutes"] == [] for found in audited.findings(name, RULE))


@pytest.mark.parametrize(("name", "rule", "expected"), cases(__name__))
def test_cases(audited, name, rule, expected):
    """What each story has beside it."""
    audited.check(name, rule, expected)
