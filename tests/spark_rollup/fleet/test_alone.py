"""What the fleet's findings know of agents' incidents; and what `verify` refutes, no rule says again."""

from __future__ import annotations

from typing import Any

from agent.contract.audited import FleetIncident, gather
from agent.contract.codec import rfc3339
from spark_rollup.fleet.alone import alone, settled, with_local_incidents
from spark_rollup.fleet.application import Application
from spark_rollup.fleet.rows import Said
from tests.spark_rollup.judging.test_incidents import UNEQUAL, by_agent, row

A, B, C, D = "a" * 32, "b" * 32, "c" * 32, "d" * 32


def said(finding_id: str, **given: Any) -> Said:
    """A finding of an agent."""
    default: dict[str, Any] = {
        "finding_id": finding_id, "detector": "unrestored-store", "level": "damage", "severity": "critical",
        "confidence": "confirmed", "status": "open", "task_id": "0_0", "store": "s", "pod": "pod-a", "identity": "i",
        "opened_at_us": 1, "observed_at_us": 1, "resolved_at_us": None, "upstream": [], "affected": "yes",
        "missing_facts": [], "summary": "", "evidence": [], "next_action": "", "mechanism": "offset-without-data",
        "incident_id": "i-crash",
    }  # fmt: skip
    return Said(**(default | given))


SAID = [
    said(A, detector="resurrected-checkpoint", opened_at_us=5),
    said(B, opened_at_us=3),
    said(C, incident_id=None, mechanism=None, detector="orphaned-task", opened_at_us=7, identity=None),
    said(D, incident_id="i-wipe", detector="store-shrank", opened_at_us=7, identity=None),
]
"""Two of one incident, one by an agent of an older version, one of no known incarnation."""


def fleet(*words: Said, proofs: list[dict[str, Any]] | None = None) -> Application:
    """An application of which only this is known."""
    return Application("shop", "orders", 10, 0, {}, said=list(words), proofs=proofs)


def test_rows_name_the_incidents_of_what_they_are_about():
    """Once each, with the begin of the whole incident; without an incident of its own an agent's finding is one."""
    rows = [row("f", confirms=[A, B]), by_agent(A, "i-crash"), row("e", refutes=[C], explains=[A]), row("o")]
    found = {
        x["id"][:1]: x["local_incidents"] for x in with_local_incidents(fleet(*SAID), [dict(x) for x in rows])
    }
    crash = {"incident_id": "i-crash", "mechanism": "offset-without-data", "since_us": 3}
    assert found["f"] == [crash | {"relation": "confirms"}]
    assert found["a"] == [crash | {"relation": "is"}]
    assert [(x["incident_id"], x["relation"], x["mechanism"], x["since_us"]) for x in found["e"]] == [
        (f"i-{C[:12]}", "refutes", "orphaned-task", 7),
        ("i-crash", "explains", "offset-without-data", 3),
    ]
    assert found["o"] is None


def test_a_suspicion_that_is_refuted_is_not_open_in_a_rules_words():
    """What a rule only says again is over; what it knows itself, or was confirmed, or is refuted in part is not."""
    suspected: dict[str, Any] = {"confidence": "suspected", "severity": "warning"}
    rules = [
        row("1", confirms=[A], **suspected),
        row("2", confirms=[A], mechanism=UNEQUAL, detector="diverged-replica", **suspected),
        row("3", confirms=[A]),
        row("4", confirms=[A, B], **suspected),
        row("5", **suspected),
        row("6", confirms=[A], pod="pod-b", **suspected),
        row("7", confirms=[D], **suspected),
        row("8", confirms=[D], pod="pod-b", **suspected),
    ]
    equal = row(
        "e", 9, detector="state-equal", mechanism=UNEQUAL, severity="info", status="resolved", refutes=[A],
        level="event",
    )  # fmt: skip
    app = fleet(*SAID, proofs=[dict(equal), {**equal, "id": "g", "refutes": [D]}])
    found = settled(app, [dict(x) for x in rules])
    # the same incarnation on another pod is the same; without one nothing is known of that pod
    assert {x["id"][:1] for x in found if x["status"] == "resolved"} == {"1", "6", "7"}
    (one,) = gather(with_local_incidents(app, [found[0], dict(equal)]))
    assert (one.id, one.status.value, one.ended_us) == ("i-crash", "resolved", 9)
    assert one.findings[-1][0].value == "refutation"


def test_what_is_refuted_on_one_pod_stays_open_on_another():
    """Agents made one id of what they found at their start; the incarnation alone says that it is the same."""
    for identity, left in ((None, ["pod-b"]), ("i", [])):
        pods = [said(A, pod=pod, identity=identity) for pod in ("pod-a", "pod-b")]
        refuting = row("e", refutes=[A], status="resolved", severity="info")
        assert [x["pod"] for x in alone(fleet(*pods), [dict(refuting)])] == left


def test_an_incident_that_was_repaired_ends_with_its_proof():
    """What its agent alone had is told as well; what a rule tells is told once; what opens again is open."""
    over = said(A, status="resolved", resolved_at_us=7, summary="It lacks data.")
    proof = said(
        B, detector="repaired", mechanism="repaired", level="event", severity="info", status="resolved", store=None,
        opened_at_us=9, resolved_at_us=9, summary="Repaired: verified.",
    )  # fmt: skip
    rule = row("f", status="resolved", resolved_at=rfc3339(7), confirms=[A], summary="Lacks data.")

    def told(known: Said, *rules: dict[str, Any]) -> FleetIncident:
        app, found = fleet(known, proof), [dict(x) for x in rules]
        (one,) = gather(with_local_incidents(app, [*found, *alone(app, found)]))
        return one

    one = told(over)
    assert (one.sentence, one.ended_us) == ("It lacks data. Repaired: verified.", 9)
    one = told(over, rule)
    assert (one.sentence, len(one.findings)) == ("Lacks data. Repaired: verified.", 2)
    one = told(said(A, summary="It lacks data."))
    assert (one.sentence, one.status.value) == ("It lacks data.", "open")
    assert [
        x.status.value for x in gather(with_local_incidents(fleet(over), list(alone(fleet(over), []))))
    ] == []
