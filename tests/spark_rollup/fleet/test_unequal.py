"""Of two copies that differ either may be the wrong one: both are named, and nobody relies on either."""

from __future__ import annotations

from agent.contract.audited import gather
from agent.contract.mechanisms import Mechanism
from tests.spark_rollup.correlate.test_diverged_replica import closes
from tests.spark_rollup.support.fleet import HORIZON_S, Fleet, at_us
from tests.spark_rollup.support.plain import events_of, tables


def test_neither_of_two_copies_that_differ_is_one_to_rely_on() -> None:
    """The rule's finding is of the poorer copy; the fuller one may have what was never committed."""
    fleet = Fleet("shop")
    poor, full, _ = (fleet.pod(f"pod-{x}") for x in "abc")
    full.configures(1, "3.9.2", num_standby_replicas=2, processing_guarantee="at_least_once")
    closes(poor, 60, 40, 50)
    closes(full, 70, 900, 1000)
    for pod in fleet.pods:
        pod.holds("0_0", 300).measures("0_0", 800, puts=1000)
    found = tables(events_of(fleet.lines()), at_us(HORIZON_S))
    told = {x["pod"]: (x["answer"], x["doubt"]) for x in found["restarts"]}
    assert told == {
        "pod-a": ("unknown", "open: diverged-replica"),
        "pod-b": ("unknown", "open: diverged-replica"),
        "pod-c": ("unknown", None),
    }
    (incident,) = (x for x in gather(found["findings"]) if x.lead.detector == "diverged-replica")
    assert incident.pods == ("pod-a", "pod-b")


def test_a_mechanism_is_what_rows_say() -> None:
    """Compared with a row, value and slug are the same word."""
    assert {x.value for x in Mechanism} == {x.slug for x in Mechanism}
