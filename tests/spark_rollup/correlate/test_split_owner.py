"""A zombie beside the new owner, and the pairs of holders that are none."""

from __future__ import annotations

import pytest

from tests.spark_rollup.support.fleet import Fleet, Pod, cases, says, story

RULE = "split-owner"


def settings(fleet: Fleet, **others: object) -> tuple[Pod, Pod]:
    """Two pods of an application without standbys and with a session timeout of 45 s."""
    a, b = fleet.pod("pod-a"), fleet.pod("pod-b")
    a.configures(1, "3.9.2", **({"num_standby_replicas": 0} | others))
    return a, b


def works(pod: Pod, offset: int, since: float = 110, until: float = 400) -> Pod:
    """Flush and write checkpoints every ten seconds, up to an offset."""
    rounds = range(round(since), round(until), 10)
    for index, at in enumerate(rounds, 1):
        reached = offset * index // len(rounds)
        pod.changes("store-flushed", "0_0", at, store="s", puts=reached)
        pod.writes_checkpoint("0_0", at + 1, offset=reached, puts=reached)
    return pod


def zombie(fleet: Fleet, **others: object) -> tuple[Pod, Pod]:
    """pod-a freezes at offset 5000, pod-b takes the task at 100 s and goes on to 30000."""
    a, b = settings(fleet, **others)
    a.holds("0_0", 5).writes_checkpoint("0_0", 50, offset=5000, puts=5000)
    works(b.holds("0_0", 100), 30_000)
    return a, b


@story
def frozen_to_the_end(fleet: Fleet) -> None:
    zombie(fleet, processing_guarantee="at_least_once")


@story
def frozen_under_exactly_once(fleet: Fleet) -> None:
    zombie(fleet, processing_guarantee="exactly_once_v2")


@story
def frozen_under_an_unknown_guarantee(fleet: Fleet) -> None:
    zombie(fleet)


@says(RULE, severity="info", status="resolved")
def fenced_at_last(fleet: Fleet) -> None:
    """Under exactly-once, and once it let go, nothing is left to do."""
    a, _ = zombie(fleet, processing_guarantee="exactly_once_v2")
    a.releases("0_0", 300)


@story
def let_go_on_an_old_release(fleet: Fleet) -> None:
    a, b = fleet.pod("pod-a"), fleet.pod("pod-b")
    a.configures(1, "2.5.1", num_standby_replicas=0, processing_guarantee="at_least_once")
    a.holds("0_0", 5).writes_checkpoint("0_0", 50, offset=5000, puts=5000).releases("0_0", 300)
    works(b.holds("0_0", 100), 30_000)


@story
def let_go(fleet: Fleet) -> None:
    a, _ = zombie(fleet, processing_guarantee="at_least_once")
    a.releases("0_0", 300)


@says(RULE, confidence="unknown")
def one_agent_was_blind(fleet: Fleet) -> None:
    """Files that nobody watched may have moved."""
    a, _ = zombie(fleet)
    a.is_blind(150, 160)


@says(RULE, confidence="suspected", missing_facts=["num_standby_replicas", "processing_guarantee"])
def standbys_unknown(fleet: Fleet) -> None:
    """The frozen one may be a standby that is stuck: the setting is asked for."""
    a, b = fleet.pod("pod-a"), fleet.pod("pod-b")
    a.holds("0_0", 5).writes_checkpoint("0_0", 50, offset=5000, puts=5000)
    works(b.holds("0_0", 100), 30_000)


@says(RULE)
def a_warm_up(fleet: Fleet) -> None:
    a, b = settings(fleet)
    a.holds("0_0", 5).writes_checkpoint("0_0", 50, offset=25_000, puts=25_000)
    works(b.holds("0_0", 100), 30_000)


@says(RULE)
def a_standby(fleet: Fleet) -> None:
    zombie(fleet, num_standby_replicas=1)


@says(RULE)
def both_move(fleet: Fleet) -> None:
    a, b = settings(fleet)
    works(a.holds("0_0", 5), 5000)
    works(b.holds("0_0", 100), 30_000)


@says(RULE, loud="warning suspected resolved")
def an_overlap_hardly_longer_than_the_timeout(fleet: Fleet) -> None:
    """Fifty seconds where 45 are ordinary: the clocks of two pods may differ by that."""
    a, b = settings(fleet, processing_guarantee="at_least_once")
    a.holds("0_0", 5).writes_checkpoint("0_0", 50, offset=5000, puts=5000).releases("0_0", 150)
    works(b.holds("0_0", 100), 120_000)


def by_puts(fleet: Fleet, **store: object) -> None:
    """Copies of exactly-once, without offsets: the frozen one at 5,000 puts, the other one grows by 20,000."""
    a, b = settings(fleet, processing_guarantee="exactly_once_v2")
    a.holds("0_0", 5).measures("0_0", 50, True, puts=5_000, **store)
    b.holds("0_0", 100)
    for at in range(110, 400, 10):
        b.measures("0_0", at, True, puts=100 + (at - 110) * 20_000 // 280, **store)


@says(RULE, pod="pod-a")
def beyond_by_puts(fleet: Fleet) -> None:
    """One put a record: 20,000 more are more than the 5,000 of the frozen one and 10,000 unsaved ones."""
    by_puts(fleet)


@says(RULE)
def beyond_by_two_puts_a_record(fleet: Fleet) -> None:
    by_puts(fleet, segment="s.0", unsaved_puts=20_000)


@says(RULE)
def beyond_by_puts_of_an_unknown_kind(fleet: Fleet) -> None:
    by_puts(fleet, unsaved_puts=None)


@says(RULE)
def a_warm_up_with_two_stores(fleet: Fleet) -> None:
    a, b = settings(fleet, processing_guarantee="exactly_once_v2")
    a.holds("0_0", 5).measures("0_0", 50, store="small", puts=500).measures(
        "0_0", 51, store="large", puts=60_000
    )
    b.holds("0_0", 100)
    for at in range(110, 400, 10):
        b.measures("0_0", at, store="small", puts=at)
        b.measures("0_0", at + 1, store="large", puts=80_000 + at)


@says(RULE)
def a_short_overlap(fleet: Fleet) -> None:
    a, _ = zombie(fleet)
    a.releases("0_0", 130)


def test_a_frozen_holder_beside_a_working_one_is_reported(audited):
    """The zombie is named, with how far each is."""
    found = audited.finding(frozen_to_the_end, RULE)
    assert (found["severity"], found["confidence"], found["status"]) == ("warning", "confirmed", "open")
    assert (found["pod"], found["pods"]) == ("pod-a", ["pod-a", "pod-b"])
    assert "it is at offset 5000" in str(found["evidence"])


def test_under_exactly_once_a_warm_up_looks_the_same(audited):
    """An active saves nothing while it works: whoever follows it gets beyond its files."""
    found = audited.finding(frozen_under_exactly_once, RULE)
    assert (found["severity"], found["confidence"], found["status"]) == ("warning", "suspected", "open")
    assert str(found["next_action"]).startswith("Nothing, if pod-b warms up")
    unknown = audited.finding(frozen_under_an_unknown_guarantee, RULE)
    assert (unknown["confidence"], unknown["missing_facts"]) == ("suspected", ["processing_guarantee"])


def test_up_to_2_5_a_zombie_that_let_go_is_restored_in_full(audited):
    """Its checkpoint may cover what the other one wrote: docs/found/overtaken-owner.md."""
    old = audited.finding(let_go_on_an_old_release, RULE)
    assert "Up to 2.5 its checkpoint may also cover what pod-b wrote" in old["next_action"]
    assert "keep a copy of its directory of 0_0" in old["next_action"]
    assert "Up to 2.5" not in audited.finding(let_go, RULE)["next_action"]
    assert "Up to 2.5" not in audited.finding(fenced_at_last, RULE)["next_action"]
    assert "Up to 2.5" not in audited.finding(frozen_to_the_end, RULE)["next_action"]


@pytest.mark.parametrize(("name", "rule", "expected"), cases(__name__))
def test_cases(audited, name, rule, expected):
    """What each story has beside it."""
    audited.check(name, rule, expected)
