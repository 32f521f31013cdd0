"""Events of agents that leave parts out: nothing breaks, and what is not known puts more in doubt, not less."""

from __future__ import annotations

from spark_rollup.fleet import reduce
from spark_rollup.fleet.reduce import Question
from spark_rollup.fleet.rows import Entry
from spark_rollup.fleet.thin import of_pods
from tests.spark_rollup.support.fleet import HORIZON_S, Fleet, at_us
from tests.spark_rollup.support.plain import Part, events_of, tables


def test_evidence_without_a_place_is_evidence():
    """The event of a finding is read with what it has."""
    fleet = Fleet("shop")
    fleet.pod("pod-a").finds("skipped-eos-wipe", "0_0", 60)
    told = [Part({"at": "2026-11-18T00:00:00.000000Z", "what": "seen"})]
    events = [x._replace(evidence=told) if x.evidence else x for x in events_of(fleet.lines())]
    found = tables(events, at_us(HORIZON_S))
    assert {row["detector"] for row in found["findings"]} == {"stale-eos-state"}
    (where, given), *_ = of_pods(events).items()
    story = reduce.story(where, given, Question(at_us(HORIZON_S)))
    assert story is not None
    assert story.said[0].evidence == [Entry("2026-11-18T00:00:00.000000Z", "seen", "")]


def test_a_gap_without_a_begin_is_one_from_the_start():
    """All that is known of the pod up to its end is in doubt."""
    fleet = Fleet("shop")
    pod = fleet.pod("pod-a")
    pod.blind.append({"from_us": at_us(100), "to_us": at_us(200), "cause": "queue-overflow"})
    events = [
        x._replace(blind=[type(one)(vars(one) | {"from_us": None}) for one in x.blind]) if x.blind else x
        for x in events_of(fleet.lines())
    ]
    (where, given), *_ = of_pods(events).items()
    story = reduce.story(where, given, Question(at_us(HORIZON_S)))
    assert story is not None
    assert [(x.from_us, x.to_us) for x in story.pod.gaps] == [(0, at_us(200))]
    assert [x.from_us for x in story.pod.unwatched] == [0]
