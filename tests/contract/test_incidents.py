"""Incidents: one cause, one address, one next action; of an agent's findings and of the same in the fleet's table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agent.contract import incidents
from agent.contract.audited import gather as gather_rows
from agent.contract.codec import rfc3339
from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.contract.finding import Finding
from agent.contract.incidents import Configured, EvidenceRole, Incident
from agent.contract.wording import NAMED

WIPED = Finding(
    id="a" * 16, detector="skipped-eos-wipe", level=Level.DAMAGE, severity=Severity.CRITICAL,
    confidence=Confidence.SUSPECTED, status=Status.OPEN, application_id="orders", task_id="0_0", store="totals",
    identity="i1", opened_at_us=2_000, resolved_at_us=None, upstream=("KAFKA-20685",), affected=Affected.YES,
    missing_facts=(), summary="Task 0_0: it holds uncommitted data.", evidence=(), next_action="Stop it cleanly.",
    mechanism="uncommitted-data", incident_id="i-1",
)  # fmt: skip
EXPOSED = replace(
    WIPED, id="b" * 16, detector="stale-eos-checkpoint", level=Level.EXPOSURE, severity=Severity.WARNING,
    opened_at_us=1_000, status=Status.RESOLVED, resolved_at_us=1_900, summary="Nothing is lost yet.",
)  # fmt: skip


Gather = Callable[[Sequence[Finding]], Sequence[Incident[Any]]]


def row(one: Finding) -> dict[str, object]:
    """The finding in the fleet's table, as an agent said it."""
    ended = None if one.resolved_at_us is None else rfc3339(one.resolved_at_us)
    own: dict[str, object] = {
        "id": one.id, "namespace": "", "pod": "", "pods": [], "reported_by": "agent", "local_incidents": None,
        "opened_at": rfc3339(one.opened_at_us), "resolved_at": ended,
    }  # fmt: skip
    return one.body() | own


@pytest.fixture(params=["agent", "fleet"])
def gather(request: pytest.FixtureRequest) -> Gather:
    """Both ways to incidents."""
    if request.param == "agent":
        return incidents.gather
    return lambda findings: gather_rows(row(x) for x in findings)


def other(**fields: Any) -> Finding:
    """A finding of another incident about the same task."""
    return replace(WIPED, id="f" * 16, incident_id="i-2", **fields)


def test_the_worst_open_finding_names_it(gather: Gather) -> None:
    """The rest is evidence, with a role; it began with the first of them."""
    (one,) = gather([WIPED, EXPOSED])
    assert (one.id, one.lead.id, one.sentence, one.next_action) == (
        "i-1",
        WIPED.id,
        WIPED.summary,
        WIPED.next_action,
    )
    assert (one.since_us, one.ended_us, one.status) == (1_000, None, Status.OPEN)
    assert [(role, x.id) for role, x in one.findings] == [
        (EvidenceRole.CAUSE, EXPOSED.id),
        (EvidenceRole.CAUSE, WIPED.id),
    ]
    assert one.title == "A store keeps data that was never committed"


def test_a_remark_has_no_mechanism_to_name(gather: Gather) -> None:
    """Nothing has gone wrong: the title of the detector's mechanism would say so."""
    (one,) = gather([replace(EXPOSED, severity=Severity.INFO, status=Status.OPEN)])
    assert one.title == ""


def test_other_tasks_are_named_in_the_sentence(gather: Gather) -> None:
    """One crash of many tasks is one incident, and long lists are counted."""
    tasks = [replace(WIPED, id=f"{n:016x}", task_id=f"0_{n}") for n in range(1, NAMED + 3)]
    (one,) = gather([WIPED, *tasks[:1]])
    assert one.sentence == "Task 0_0: it holds uncommitted data. The same in task 0_1."
    assert one.tasks == ("0_0", "0_1")
    assert one.findings[1][0] is EvidenceRole.CONFIRMATION
    (many,) = gather([WIPED, *tasks])
    assert many.sentence.endswith("0_6 and 2 more.")


def torn(task_id: str, store: str, summary: str, **fields: Any) -> Finding:
    """What one detector says of a store."""
    what = {
        "detector": "torn-store",
        "task_id": task_id,
        "store": store,
        "severity": Severity.WARNING,
        **fields,
    }
    return replace(
        WIPED,
        id=f"{task_id}{store}".ljust(16, "0"),
        summary=f"Task {task_id}: store {store} {summary}",
        **what,
    )


def test_only_what_means_the_same_is_the_same(gather: Gather) -> None:
    """Names and numbers differ from task to task; a file that was cut and a directory that is gone are two things."""
    cut, gone = "is damaged: {} of {} bytes.", "has no directory: offset {} would be trusted."
    (one,) = gather(
        [
            torn("0_0", "s", cut.format("000012.sst", 5)),
            torn("0_1", "t", cut.format("000009.sst", 7), opened_at_us=2_001),
            torn("0_2", "s", gone.format(4999), opened_at_us=2_002),
            torn("0_3", "s", gone.format(12), opened_at_us=2_003),
            torn("0_4", "s", "may be a custom store.", severity=Severity.INFO),
        ]
    )
    assert one.sentence == (
        "Task 0_0: store s is damaged: 000012.sst of 5 bytes. The same in task 0_1."
        " Also: Task 0_2: store s has no directory: offset 4999 would be trusted."
    )


def test_few_other_sentences(gather: Gather) -> None:
    """The worst of them; a text has a bound."""
    others = [torn(f"0_{n}", "s", f"has trouble {'x' * n}.", opened_at_us=3_000 + n) for n in range(1, 9)]
    (one,) = gather([torn("0_0", "s", "is damaged."), *others])
    assert one.sentence == (
        "Task 0_0: store s is damaged. Also: Task 0_1: store s has trouble x. Also: Task 0_2: store s has trouble xx."
    )


def test_an_instruction_is_for_those_of_whom_it_was_said(gather: Gather) -> None:
    """Another severity, or another step, is no `do the same`."""
    asks = {"next_action": "Remove the task directory app/0_0."}
    here = torn("0_0", "s", "is damaged.", **asks)
    same = torn(
        "0_1", "s", "is damaged.", next_action="Remove the task directory app/0_1.", opened_at_us=2_001
    )
    else_ = torn("0_2", "s", "has no IDENTITY.", next_action="Nothing.", opened_at_us=2_002)
    (one,) = gather([here, same, else_])
    assert "0_1" in one.next_action
    assert "0_2" not in one.next_action


def test_what_comes_after_the_lead_is_its_consequence(gather: Gather) -> None:
    """Of another detector, that is."""
    after = replace(
        WIPED, id="c" * 16, detector="data-beyond-changelog", severity=Severity.WARNING, opened_at_us=3_000
    )
    (one,) = gather([WIPED, after])
    assert [(role, x.id) for role, x in one.findings][-1] == (EvidenceRole.CONSEQUENCE, after.id)


def test_it_is_resolved_when_nothing_of_it_is_open(gather: Gather) -> None:
    """Then it ended with the last finding, and the damage names it."""
    (one,) = gather([OVER, EXPOSED])
    assert (one.status, one.ended_us, one.lead.detector) == (Status.RESOLVED, 9_000, "skipped-eos-wipe")


def test_the_worst_incident_comes_first(gather: Gather) -> None:
    """Open before resolved, state before the agent; but lists are cut at their end: a remark pushes no agent out."""
    own = other(detector="auditor-blind", level=Level.SELF, mechanism="auditor-blind", opened_at_us=1)
    resolved = replace(WIPED, id="c" * 16, incident_id="i-3", status=Status.RESOLVED, resolved_at_us=9_000)
    remark = replace(WIPED, id="e" * 16, incident_id="i-5", severity=Severity.INFO)
    warning = replace(WIPED, id="d" * 16, incident_id="i-4", severity=Severity.WARNING)
    found = gather([own, resolved, remark, warning, WIPED])
    assert [x.id for x in found] == ["i-1", "i-4", "i-2", "i-5", "i-3"]
    assert [x.about_state for x in found[1:3]] == [True, False]


CUT = other(
    detector="changelog-truncated",
    mechanism="short-changelog",
    next_action="Delete no copy yet.",
    opened_at_us=1,
)
SHARED = replace(
    CUT, id="d" * 16, incident_id="i-3", detector="shared-state-dir", mechanism="shared-state", opened_at_us=9
)  # fmt: skip
SET_UP = replace(SHARED, detector="setup", task_id=None)
OVER = replace(WIPED, status=Status.RESOLVED, resolved_at_us=9_000)


@pytest.mark.parametrize(
    ("findings", "first"),
    [
        ([WIPED, CUT], {"i-1": "i-2", "i-2": ""}),
        ([WIPED, replace(CUT, task_id="1_0")], {"i-1": "", "i-2": ""}),
        ([WIPED, replace(CUT, status=Status.RESOLVED, resolved_at_us=9_000)], {"i-1": "", "i-2": ""}),
        ([WIPED, replace(CUT, severity=Severity.INFO)], {"i-1": "", "i-2": ""}),
        ([WIPED, CUT, SHARED], {"i-1": "i-3", "i-2": "i-3", "i-3": ""}),
        ([OVER, SHARED], {"i-1": "", "i-3": ""}),
        ([WIPED, replace(SHARED, task_id=None)], {"i-1": "i-3", "i-3": ""}),
        ([WIPED, SET_UP], {"i-1": "i-3", "i-3": ""}),
        ([WIPED, replace(SET_UP, level=Level.EXPOSURE)], {"i-1": "", "i-3": ""}),
    ],
)
def test_no_two_instructions_contradict(
    gather: Gather, findings: Sequence[Finding], first: Mapping[str, str]
) -> None:
    """Where the changelog lacks records, the copy that another incident says to remove may be the only complete one.

    Of two that come first the one that the list has first does; nothing comes before what is over; a remark and a
    volume that does not last come before nothing, and two processes on one directory before each of its tasks.
    """
    found = gather(findings)
    assert {x.id: x.do_first for x in found} == first
    for one in found:
        waits = f"First do what incident {one.do_first} (" if one.do_first else one.lead.next_action
        assert one.next_action.startswith(waits)


def test_a_finding_of_an_older_agent_is_its_own_incident(gather: Gather) -> None:
    """It names none: the id is made as agents make it."""
    old = replace(WIPED, incident_id="", mechanism="")
    assert [x.id for x in gather([old])] == [f"i-{old.id[:12]}"]


def test_a_remark_that_is_open_hides_no_damage_that_is_over(gather: Gather) -> None:
    """The incident is resolved, and still one of that severity."""
    remark = replace(
        WIPED, id="c" * 16, detector="unopenable-task", severity=Severity.INFO, opened_at_us=9_500
    )
    (one,) = gather([OVER, remark])
    assert (one.lead.id, one.status, one.severity) == (OVER.id, Status.RESOLVED, Severity.CRITICAL)


RUNNING = replace(EXPOSED, status=Status.OPEN, resolved_at_us=None, lasting=True)


def test_an_exposure_by_release_can_be_accepted() -> None:
    """It stays open, is said to be accepted, and comes behind what is not; for its own application only."""
    pressing = replace(
        EXPOSED, id="c" * 16, incident_id="i-2", status=Status.OPEN, resolved_at_us=None, opened_at_us=9_000
    )
    accepted = {"orders": ["stale-eos-checkpoint"]}
    first, second = incidents.gather([RUNNING, pressing], lambda x: accepted.get(x, ()))
    assert (first.id, first.configured_exposure) == ("i-2", Configured.NO)
    assert (second.status, second.configured_exposure) == (Status.OPEN, Configured.ACCEPTED)
    (other_one,) = incidents.gather(
        [replace(RUNNING, application_id="payments")], lambda x: accepted.get(x, ())
    )
    assert other_one.configured_exposure is Configured.YES


def test_a_task_that_ended_uncleanly_is_never_accepted() -> None:
    """It names the incident before the tasks that only run on the release; damage does as well."""
    ended = replace(RUNNING, id="c" * 16, task_id="0_1", opened_at_us=5_000, lasting=False)
    for worse in (ended, WIPED):
        (one,) = incidents.gather([RUNNING, worse], lambda _: ["stale-eos-checkpoint", "skipped-eos-wipe"])
        assert (one.lead, one.configured_exposure) == (worse, Configured.NO)


def test_what_is_over_does_not_last() -> None:
    """A resolved exposure is neither lasting nor accepted."""
    over = replace(RUNNING, status=Status.RESOLVED, resolved_at_us=2_000)
    (one,) = incidents.gather([over], lambda _: [RUNNING.detector])
    assert one.configured_exposure is Configured.NO


def test_it_names_the_finding_whose_instruction_it_follows(gather: Gather) -> None:
    """Where that is not the one that names it, an alert must not say the step of the one that does."""
    cut = replace(WIPED, id="c" * 16, detector="changelog-truncated", severity=Severity.WARNING)
    (one,) = gather([WIPED, cut])
    assert (one.lead.detector, one.do_first) == ("skipped-eos-wipe", "changelog-truncated")


def test_what_names_another_task_is_not_the_same_on_another_pod() -> None:
    """Agents of copied volumes may give one id to a question that began with one incarnation; numbers may differ."""
    asked = replace(WIPED, detector="undecided", task_id=None, store=None, mechanism="undecided")
    said = {"pod-a": "Task 0_0: 5 writes.", "pod-b": "Task 0_2: 5 writes.", "pod-c": "Task 0_0: 7 writes."}
    rows = [{**row(replace(asked, summary=text)), "pod": pod, "pods": [pod]} for pod, text in said.items()]
    (one,) = gather_rows(rows)
    assert one.sentence == "Task 0_0: 5 writes. The same on pod pod-c. Also on pod-b: Task 0_2: 5 writes."
    assert one.pods == ("pod-a", "pod-b", "pod-c")
