"""Incidents of the fleet: by mechanism and lineage, with ids that are valid everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.contract.audited import FleetIncident, gather
from agent.contract.codec import rfc3339
from agent.contract.events import Status
from agent.contract.incidents import EvidenceRole
from agent.contract.mechanisms import Mechanism

Row = dict[str, Any]

OFFSET, SHARED, UNEQUAL = (
    Mechanism.OFFSET_WITHOUT_DATA.slug,
    Mechanism.SHARED_STATE.slug,
    Mechanism.UNEQUAL_COPIES.slug,
)


def about(incident: str, relation: str, mechanism: str = OFFSET, since_us: int = 1) -> Row:
    """An agent's incident that a row names."""
    return {"incident_id": incident, "relation": relation, "mechanism": mechanism, "since_us": since_us}


def row(id_: str, at: int = 1, **fields: Any) -> Row:
    """A row of the table `findings`: by default a rule's critical about a task on a pod."""
    pod = fields.get("pod", "pod-a")
    given_ = {
        "id": id_.ljust(32, "0"), "detector": "resurrected-checkpoint", "level": "damage", "severity": "critical",
        "confidence": "confirmed", "status": "open", "namespace": "shop", "application_id": "orders",
        "task_id": "0_0", "store": None, "pod": pod, "opened_at": rfc3339(at), "upstream": ["KAFKA-8187"],
        "affected": "yes", "missing_facts": [], "summary": f"summary of {id_}", "evidence": [],
        "next_action": f"action of {id_}", "pods": [pod] if pod else [], "confirms": [], "refutes": [], "explains": [],
        "reported_by": "fleet", "resolved_at": None, "mechanism": OFFSET, "incident_id": None, "lineage": [],
        "local_incidents": [], "identity": None, "remedy": "other", "seen_at": None,
    }  # fmt: skip
    return given_ | fields


def by_agent(id_: str, incident: str, at: int = 1, **fields: Any) -> Row:
    """An agent's own finding, of an agent's incident."""
    mechanism = fields.get("mechanism", OFFSET)
    known = [about(incident, "is", mechanism, fields.pop("since_us", at))]
    return row(
        id_, at, **({"reported_by": "agent", "incident_id": incident, "local_incidents": known} | fields)
    )


def one(rows: Iterable[Mapping[str, object]]) -> FleetIncident:
    """The only incident of these rows."""
    (found,) = gather(rows)
    return found


def roles(incident: FleetIncident) -> list[tuple[str, EvidenceRole]]:
    """Role of each finding, by the letters of its id."""
    return [(x.id.rstrip("0"), role) for role, x in incident.findings]


def test_a_rule_that_says_again_what_an_agent_said_takes_its_incident_in():
    """The agent's id is valid in the fleet; its other tasks are in the same incident."""
    said = row("f", 5, confirms=["a" * 32], local_incidents=[about("i-crash", "confirms", since_us=2)])
    other = by_agent("b", "i-crash", 3, task_id="0_1", severity="warning", confidence="suspected", since_us=2)
    found = one([said, other])
    assert (found.id, found.absorbed, found.tasks, found.since_us) == (
        "i-crash",
        ("i-crash",),
        ("0_0", "0_1"),
        2,
    )
    assert (found.lead.id, found.next_action, found.ended_us) == (said["id"], "action of f", None)
    assert roles(found) == [("b", EvidenceRole.CONFIRMATION), ("f", EvidenceRole.CAUSE)]
    assert found.title == Mechanism.OFFSET_WITHOUT_DATA.title


def test_incidents_that_one_finding_confirms_are_one():
    """A shared volume: both pods' agents speak of it. The oldest id stays, and the other one is found in it."""
    local = [about("i-b", "confirms", SHARED, 7), about("i-a", "confirms", SHARED, 3)]
    clones = row(
        "c", 3, detector="cloned-volume", mechanism=SHARED, task_id=None, pods=["pod-a", "pod-b"], local_incidents=local
    )  # fmt: skip
    shared = {"task_id": None, "mechanism": SHARED, "detector": "shared-state-dir"}
    agents = [by_agent("a", "i-a", 3, **shared), by_agent("b", "i-b", 7, **shared)]
    found = one([*agents, clones])
    assert (found.id, found.absorbed, found.pods) == ("i-a", ("i-a", "i-b"), ("pod-a", "pod-b"))
    assert len(found.members) == 3


def test_two_crashes_stay_two_incidents_though_a_finding_explains_both():
    """That no healthy copy is left follows from both; it is evidence in each, and its own row in the older one."""
    crashes = [by_agent("a", "i-a", 1), by_agent("b", "i-b", 2, pod="pod-b")]
    known = [about("i-b", "explains", since_us=2), about("i-a", "explains", since_us=1)]
    follows = row(
        "c", 9, detector="unprotected-task", mechanism="unprotected-task", level="exposure", severity="warning",
        pod=None, local_incidents=known,
    )  # fmt: skip
    first, second = sorted(gather([*crashes, follows]), key=lambda x: x.id)
    assert roles(first) == [("a", EvidenceRole.CAUSE), ("c", EvidenceRole.CONSEQUENCE)]
    assert roles(second) == [("b", EvidenceRole.CAUSE), ("c", EvidenceRole.CONSEQUENCE)]
    assert (first.next_action, second.next_action) == ("action of a", "action of b")
    assert [len(x.members) for x in (first, second)] == [1, 1]


def test_a_finding_that_settles_an_agents_incident_keeps_its_id():
    """The agent's own rows are gone from the table; what explains them is the incident."""
    follows = row("c", 9, severity="warning", local_incidents=[about("i-a", "explains", since_us=1)])
    assert (one([follows]).id, one([follows]).since_us) == ("i-a", 1)
    other = by_agent("b", "i-b", 2)
    follows["local_incidents"].append(about("i-b", "explains", since_us=2))
    found = one([follows, other])
    assert (found.id, found.absorbed) == ("i-a", ("i-a", "i-b"))


def test_a_refuted_incident_is_not_open():
    """It says what refutes it, under the id and the mechanism that the agent gave it."""
    equal = row(
        "e", 9, detector="state-equal", mechanism=UNEQUAL, level="event", severity="info", status="resolved",
        resolved_at=rfc3339(9), refutes=["a" * 32], local_incidents=[about("i-a", "refutes", since_us=1)],
        summary="the store holds what its changelog says: store-shrank is refuted",
    )  # fmt: skip
    found = one([equal])
    assert (found.id, found.status, found.ended_us, found.mechanism) == ("i-a", Status.RESOLVED, 9, OFFSET)
    assert found.sentence.endswith("store-shrank is refuted")
    assert roles(found) == [("e", EvidenceRole.REFUTATION)]
    left = by_agent("b", "i-a", 3, task_id="0_1", since_us=1)
    still = one([equal, left])
    assert (still.status, still.lead.id) == (Status.OPEN, left["id"])
    assert roles(still) == [("b", EvidenceRole.CAUSE), ("e", EvidenceRole.REFUTATION)]


def test_evidence_that_is_open_and_worse_than_its_incident_is_not_hidden():
    """A rule's remark, or what is over, confirms an agent's suspicion, and a task has no second copy because of it."""
    follows = row(
        "u", 9, detector="unprotected-task", severity="warning", pod=None,
        local_incidents=[about("i-a", "explains")],
    )  # fmt: skip
    remark = row("a", 2, severity="info", local_incidents=[about("i-a", "confirms")])
    over = remark | {"severity": "critical", "status": "resolved", "resolved_at": rfc3339(5)}
    for quieter in (remark, over):
        found = one([quieter, follows])
        assert (found.id, found.status, found.severity.value) == ("i-a", Status.OPEN, "warning")
        assert (found.lead.id, found.next_action) == (follows["id"], "action of u")
        assert len(found.members) == 2
        more = row(
            "v",
            9,
            detector="unprotected-task",
            severity="warning",
            local_incidents=[about("i-a", "explains")],
        )
        assert len(one([quieter, follows, more | {"task_id": "0_1"}]).tasks) == 2


def test_a_proof_names_the_incident():
    """What was suspected is critical and confirmed once a comparison with the changelog proves it."""
    suspected = by_agent("a", "i-a", 1, severity="warning", confidence="suspected")
    proof = row(
        "p", 9, detector="state-differs", mechanism=UNEQUAL, local_incidents=[about("i-a", "confirms", since_us=1)]
    )  # fmt: skip
    found = one([suspected, proof])
    assert (found.id, found.severity.value, found.confidence.value) == ("i-a", "critical", "confirmed")
    assert roles(found) == [("a", EvidenceRole.CAUSE), ("p", EvidenceRole.CAUSE)]


def test_what_no_agent_knows_is_grouped_by_its_lineage():
    """Tasks that churn in one application are one incident; those of another one are not."""
    churn = {"detector": "task-churn", "mechanism": "task-churn", "pod": None}
    rows = [
        row(f"{n}", n, task_id=f"0_{n}", lineage=["orders" if n < 3 else "bills"], **churn)
        for n in range(1, 4)
    ]
    first, second = sorted(
        gather(rows, {"task-churn": "A task is moved again and again"}), key=lambda x: x.tasks
    )
    assert (first.id, first.tasks, second.tasks) == (f"i-1{'0' * 11}", ("0_1", "0_2"), ("0_3",))
    assert first.sentence == "summary of 1. The same in task 0_2."
    assert first.title == "A task is moved again and again"


def test_what_was_over_before_is_another_incident():
    """The same pods share a volume twice, with a year in between."""
    pair = {"detector": "cloned-volume", "mechanism": SHARED, "lineage": ["orders/pod-a", "orders/pod-b"]}
    over = row("a", 1, status="resolved", resolved_at=rfc3339(5), **pair)
    assert [x.id[:3] for x in gather([over, row("b", 9, **pair)])] == ["i-b", "i-a"]
    assert one([over, row("b", 5, **pair)]).status is Status.OPEN


def test_what_agents_do_not_know_joins_one_incident_that_shares_its_lineage():
    """The digests of a second store show the same as those of the one that an agent suspected."""
    key = {"mechanism": UNEQUAL, "lineage": ["orders/0_0"], "detector": "state-differs"}
    proof = row("p", 5, local_incidents=[about("i-a", "confirms", since_us=1)], **key)
    found = one([proof, row("q", 6, store="totals", **key)])
    assert (found.id, len(found.members)) == ("i-a", 2)


def test_what_only_bears_out_an_incident_gives_it_no_instruction():
    """That copies differ is no step; how to repair the wrong one is."""
    damage = row("a", 1, local_incidents=[about("i-a", "confirms")])
    differ = row(
        "d", 2, detector="diverged-replica", mechanism=UNEQUAL, pod=None, local_incidents=[about("i-a", "confirms")]
    )  # fmt: skip
    assert one([damage, differ]).next_action == "action of a"


def test_some_tasks_of_an_application_are_part_of_an_incident_and_others_are_not():
    """What lacks a copy because of a bug is part of that; what lacks one for another reason is not."""
    few = {"mechanism": "too-few-copies", "detector": "missing-standby"}
    bug = row("a", 1, lineage=["orders/0_0"], local_incidents=[about("i-a", "confirms")], **few)
    alone = [
        row(f"{n + 1}", n + 2, task_id=f"0_{n}", lineage=["orders", f"orders/0_{n}"], **few) for n in range(3)
    ]
    found = sorted(gather([bug, *alone]), key=lambda x: x.since_us)
    assert [(x.id[:3], x.tasks) for x in found] == [("i-a", ("0_0",)), ("i-2", ("0_1", "0_2"))]
    other = alone[0] | {
        "detector": "unprotected-task",
        "opened_at": rfc3339(0),
        "pod": None,
        "pods": ["pod-b"],
    }
    part = one([bug, other])
    assert (roles(part)[0], part.pods, part.since_us) == (("1", EvidenceRole.CONSEQUENCE), ("pod-a",), 1)


def test_an_instruction_that_names_its_task_names_the_others_too():
    """With the pod where that is another one; a second store of the task is nothing new."""
    said = {"local_incidents": [about("i-a", "confirms")], "next_action": "Remove 0_0 on pod-a."}
    places = [("0_0", "pod-a"), ("0_0", "pod-a"), ("0_1", "pod-a"), ("0_2", "pod-b")]
    rows = [row(f"{n}", n, task_id=task, pod=pod, **said) for n, (task, pod) in enumerate(places, 1)]
    asked = "This is for tasks 0_0, 0_1. Remove 0_0 on pod-a. Then the same for 0_2 on pod-b."
    assert one(rows).next_action == asked
    start = [x | {"next_action": "Stop, remove this task directory, start again."} for x in rows[:3]]
    assert "remove all, and only then start. For each task: Stop, remove this" in one(start).next_action
    milder = [start[0], start[2] | {"severity": "warning"}]
    assert one(milder).next_action == "Stop, remove this task directory, start again."


def test_pods_are_named_where_no_task_is():
    """Silent agents are one incident with one next step, not one for each pod."""
    silent = {
        "detector": "unaudited", "mechanism": "unaudited", "level": "self", "application_id": None, "task_id": None,
        "lineage": ["Check the agent."], "severity": "warning",
    }  # fmt: skip
    found = one(
        row(x, n, pod=f"pod-{x}", **(silent | {"summary": f"pod-{x}: silent."})) for n, x in enumerate("abc")
    )
    assert found.sentence == "pod-a: silent. The same on pods pod-b, pod-c."
    assert (found.pods, found.about_state) == (("pod-a", "pod-b", "pod-c"), False)


def test_no_two_instructions_about_one_task_contradict():
    """A rule's instruction comes before an agent's, and an agent's before a rule's, by one list."""
    remove = row("a", 1, local_incidents=[about("i-a", "confirms")])
    cloned = row("c", 2, detector="cloned-process", mechanism=SHARED, task_id=None, pods=["pod-a", "pod-b"])
    compare = by_agent("d", "i-d", 3, detector="store-shrank", mechanism="store-shrank", pod="pod-b")
    steps = {x.id: x.next_action for x in gather([remove, cloned, compare])}
    asked = f"i-c{'0' * 11} (cloned-process)"
    assert steps[f"i-c{'0' * 11}"] == "action of c"
    assert asked in steps["i-a"]
    assert asked in steps["i-d"]
    # without the clones the comparison comes first, on whichever pod
    steps = {x.id: x.next_action for x in gather([remove, compare])}
    assert "i-d (store-shrank)" in steps["i-a"]
    assert steps["i-d"] == "action of d"


def test_an_instruction_about_some_pods_is_none_for_others():
    """Two pods share a volume; a repair on a third one does not wait for them."""
    cloned = row("c", 2, detector="cloned-process", mechanism=SHARED, task_id=None, pods=["pod-a", "pod-b"])
    elsewhere = by_agent("d", "i-d", 3, pod="pod-c")
    assert {x.next_action for x in gather([cloned, elsewhere])} == {"action of c", "action of d"}
    namesake = by_agent("e", "i-e", 3, namespace="test")
    assert {x.next_action for x in gather([cloned, namesake])} == {"action of c", "action of e"}


def test_the_same_id_in_two_clusters_is_two_incidents():
    """The cluster is before the namespace, as in all tables."""
    rows = [by_agent("a", "i-a", namespace=place) for place in ("eu-1/shop", "us-1/shop")]
    assert [(x.id, x.cluster, x.namespace) for x in gather(rows)] == [
        ("i-a", "eu-1", "eu-1/shop"),
        ("i-a", "us-1", "us-1/shop"),
    ]


def test_a_time_that_cannot_be_ends_no_audit():
    """An agent's clock may be broken; Spark writes the year 30488 as it is."""
    assert one([row("a", opened_at="+30488-12-01T00:00:00.000000Z")]).since_us == 0


LOCALS = st.lists(
    st.builds(
        about,
        st.sampled_from(["i-a", "i-b", "i-c"]),
        st.sampled_from(["confirms", "refutes", "explains"]),
        st.sampled_from([OFFSET, SHARED]),
    ),
    max_size=3,
)


@st.composite
def tables(draw: st.DrawFn) -> Sequence[Row]:
    """Rows of agents and of rules, each with its own id; an incident has one mechanism and one begin."""
    rows = []
    for number in range(draw(st.integers(1, 5))):
        at, state = draw(st.integers(1, 9)), draw(st.sampled_from(["open", "resolved"]))
        common = {
            "task_id": draw(st.sampled_from([None, "0_0", "0_1"])), "status": state,
            "resolved_at": rfc3339(at + 2) if state == "resolved" else None,
            "severity": draw(st.sampled_from(["info", "warning", "critical"])),
            "mechanism": draw(st.sampled_from([OFFSET, SHARED])),
        }  # fmt: skip
        if draw(st.booleans()):
            rows.append(by_agent(f"{number + 1}", draw(st.sampled_from(["i-a", "i-b", "i-c"])), at, **common))
        else:
            lineage = draw(st.lists(st.sampled_from(["x", "y"]), max_size=2, unique=True))
            detector = draw(st.sampled_from(["cloned-process", "task-churn"]))
            known = draw(LOCALS)
            rows.append(
                row(f"{number + 1}", at, lineage=lineage, detector=detector, local_incidents=known, **common)
            )
    for each in rows:
        for local in each["local_incidents"]:
            local["since_us"] = ord(local["incident_id"][-1])
            local["mechanism"] = OFFSET if local["incident_id"] < "i-c" else SHARED
    return rows


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_order_of_rows_gives_the_same_incidents(data: st.DataObject):
    """Spark promises none."""
    rows = data.draw(tables())
    assert gather(data.draw(st.permutations(rows))) == gather(rows)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_finding_and_every_id_of_an_agent_has_its_place(data: st.DataObject):
    """A row is a member of at most one incident and evidence of at least one; no id is lost or in two incidents."""
    rows = data.draw(tables())
    incidents = gather(rows)
    members = [x.id for found in incidents for x in found.members]
    assert len(members) == len(set(members))
    assert {x.id for found in incidents for _, x in found.findings} == {x["id"] for x in rows}
    absorbed = [name for found in incidents for name in found.absorbed]
    assert sorted(absorbed) == sorted({x["incident_id"] for each in rows for x in each["local_incidents"]})
    assert len({found.id for found in incidents}) == len(incidents)


@settings(max_examples=60, deadline=None)
@given(tables())
def test_incidents_say_what_is_open_as_findings_do(rows: Sequence[Row]):
    """The exit code is by findings, the page by incidents: one must not be calm beside the other."""
    said = {x["severity"] for x in rows if x["status"] == "open"} - {"info"}
    shown = {x.severity.value for x in gather(rows) if x.status is Status.OPEN} - {"info"}
    assert ("critical" in said, bool(said)) == ("critical" in shown, bool(shown))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_agents_ids_stay_when_more_is_found(data: st.DataObject):
    """An id that an incident had from an agent leads to one incident in every later run."""
    rows = data.draw(tables())
    before = gather(rows[: data.draw(st.integers(0, len(rows)))])
    after = gather(rows)
    for found in before:
        if found.absorbed:
            assert found.id in found.absorbed
            assert sum(found.id in x.absorbed for x in after) == 1
