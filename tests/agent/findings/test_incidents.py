"""Incidents: one cause, one address, one next action."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.contract.incidents import NAMED, EvidenceRole
from agent.findings.finding import Finding
from agent.findings.incidents import about_state, gather

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


def other(**fields: Any) -> Finding:
    """A finding of another incident about the same task."""
    return replace(WIPED, id="f" * 16, incident_id="i-2", **fields)


def test_the_worst_open_finding_names_it():
    """The rest is evidence, with a role; it began with the first of them."""
    (one,) = gather([WIPED, EXPOSED])
    assert (one.id, one.lead, one.sentence, one.next_action) == (
        "i-1",
        WIPED,
        WIPED.summary,
        WIPED.next_action,
    )
    assert (one.since_us, one.ended_us, one.status) == (1_000, None, Status.OPEN)
    assert [(role, x.id) for role, x in one.findings] == [
        (EvidenceRole.CAUSE, EXPOSED.id),
        (EvidenceRole.CAUSE, WIPED.id),
    ]
    assert one.title == "A store goes on with data that was never committed"


def test_a_remark_has_no_mechanism_to_name():
    """Nothing has gone wrong: the title of the detector's mechanism would say so."""
    (one,) = gather([replace(EXPOSED, severity=Severity.INFO, status=Status.OPEN)])
    assert one.title == ""


def test_other_tasks_are_named_in_the_sentence():
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


def test_only_what_means_the_same_is_the_same():
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


def test_few_other_sentences():
    """The worst of them; a text has a bound."""
    others = [torn(f"0_{n}", "s", f"has trouble {'x' * n}.", opened_at_us=3_000 + n) for n in range(1, 9)]
    (one,) = gather([torn("0_0", "s", "is damaged."), *others])
    assert one.sentence == (
        "Task 0_0: store s is damaged. Also: Task 0_1: store s has trouble x. Also: Task 0_2: store s has trouble xx."
    )


def test_an_instruction_is_for_those_of_whom_it_was_said():
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


def test_what_comes_after_the_lead_is_its_consequence():
    """Of another detector, that is."""
    after = replace(
        WIPED, id="c" * 16, detector="data-beyond-changelog", severity=Severity.WARNING, opened_at_us=3_000
    )
    (one,) = gather([WIPED, after])
    assert one.findings[-1] == (EvidenceRole.CONSEQUENCE, after)


def test_it_is_resolved_when_nothing_of_it_is_open():
    """Then it ended with the last finding, and the damage names it."""
    (one,) = gather([replace(WIPED, status=Status.RESOLVED, resolved_at_us=9_000), EXPOSED])
    assert (one.status, one.ended_us, one.lead.detector) == (Status.RESOLVED, 9_000, "skipped-eos-wipe")


def test_the_worst_incident_comes_first_and_the_agent_last():
    """What is open before what is resolved, state before the agent itself."""
    own = other(detector="auditor-blind", level=Level.SELF, mechanism="auditor-blind")
    resolved = replace(WIPED, id="c" * 16, incident_id="i-3", status=Status.RESOLVED, resolved_at_us=9_000)
    warning = replace(WIPED, id="d" * 16, incident_id="i-4", severity=Severity.WARNING)
    assert [x.id for x in gather([own, resolved, warning, WIPED])] == ["i-1", "i-4", "i-3", "i-2"]
    assert [about_state(x) for x in gather([own, WIPED])] == [True, False]


def test_no_two_instructions_contradict():
    """Where the changelog lacks records, the copy that another incident says to remove may be the only complete one."""
    cut = other(
        detector="changelog-truncated", mechanism="short-changelog", next_action="Delete no copy yet."
    )
    first, second = sorted(gather([WIPED, cut]), key=lambda x: x.id)
    assert second.next_action == "Delete no copy yet."
    assert first.next_action.startswith("First do what incident i-2 (changelog-truncated) asks for")
    elsewhere = gather([WIPED, replace(cut, task_id="1_0")])
    assert {x.next_action for x in elsewhere} == {"Stop it cleanly.", "Delete no copy yet."}
    over = replace(cut, status=Status.RESOLVED, resolved_at_us=9_000)
    assert {x.next_action for x in gather([WIPED, over])} == {
        "Stop it cleanly.",
        "Delete no copy yet.",
    }


def test_the_application_as_a_whole_comes_before_its_tasks():
    """No repair lasts while two processes work on one directory."""
    shared = other(
        detector="shared-state-dir", mechanism="shared-state", task_id=None, next_action="Stop one."
    )
    first, second = sorted(gather([WIPED, shared]), key=lambda x: x.id)
    assert (first.next_action[:8], second.next_action) == ("First do", "Stop one.")


def test_a_finding_of_an_older_agent_is_its_own_incident():
    """It names none: the id is made as agents make it."""
    old = replace(WIPED, incident_id="", mechanism="")
    assert [x.id for x in gather([old])] == [f"i-{old.id[:12]}"]


def test_a_remark_that_is_open_hides_no_damage_that_is_over():
    """The incident is resolved, and still one of that severity."""
    over = replace(WIPED, status=Status.RESOLVED, resolved_at_us=9_000)
    remark = replace(
        WIPED, id="c" * 16, detector="unopenable-task", severity=Severity.INFO, opened_at_us=9_500
    )
    (one,) = gather([over, remark])
    assert (one.lead, one.status, one.severity) == (over, Status.RESOLVED, Severity.CRITICAL)


def test_a_remark_gives_no_instruction_that_comes_first():
    """It is not printed, and nothing hangs on it."""
    cut = other(detector="changelog-truncated", mechanism="short-changelog", severity=Severity.INFO)
    assert {x.next_action for x in gather([WIPED, cut])} == {WIPED.next_action}


RUNNING = replace(EXPOSED, status=Status.OPEN, resolved_at_us=None, lasting=True)


def test_an_exposure_by_release_can_be_accepted():
    """It stays open, is said to be accepted, and comes behind what is not; for its own application only."""
    pressing = replace(
        EXPOSED, id="c" * 16, incident_id="i-2", status=Status.OPEN, resolved_at_us=None, opened_at_us=9_000
    )
    accepted = {"orders": ["stale-eos-checkpoint"]}
    first, second = gather([RUNNING, pressing], lambda x: accepted.get(x, ()))
    assert (first.id, first.lasting, first.accepted) == ("i-2", False, False)
    assert (second.status, second.lasting, second.accepted) == (Status.OPEN, True, True)
    (other_one,) = gather([replace(RUNNING, application_id="payments")], lambda x: accepted.get(x, ()))
    assert (other_one.lasting, other_one.accepted) == (True, False)


def test_a_task_that_ended_uncleanly_is_never_accepted():
    """It names the incident before the tasks that only run on the release; damage does as well."""
    ended = replace(RUNNING, id="c" * 16, task_id="0_1", opened_at_us=5_000, lasting=False)
    for worse in (ended, WIPED):
        (one,) = gather([RUNNING, worse], lambda _: ["stale-eos-checkpoint", "skipped-eos-wipe"])
        assert (one.lead, one.lasting, one.accepted) == (worse, False, False)


def test_what_is_over_does_not_last():
    """A resolved exposure is neither lasting nor accepted."""
    over = replace(RUNNING, status=Status.RESOLVED, resolved_at_us=2_000)
    (one,) = gather([over], lambda _: [RUNNING.detector])
    assert (one.lasting, one.accepted) == (False, False)


def test_it_names_the_incident_that_comes_first():
    """So that an alert, whose text is fixed, can say the same as the incident."""
    urgent = other(detector="shared-state-dir", task_id=None)
    said = {x.id: x.first for x in gather([WIPED, urgent])}
    assert said == {"i-1": "i-2", "i-2": ""}


def test_only_damage_of_a_set_up_comes_first():
    """Two processes on one state do; a volume that does not last does not."""
    for level, first in ((Level.DAMAGE, "i-2"), (Level.EXPOSURE, "")):
        told = other(detector="setup", task_id=None, level=level)
        assert {x.id: x.first for x in gather([WIPED, told])} == {"i-1": first, "i-2": ""}


def test_it_names_the_finding_whose_instruction_it_follows():
    """Where that is not the one that names it, an alert must not say the step of the one that does."""
    cut = replace(WIPED, id="c" * 16, detector="changelog-truncated", severity=Severity.WARNING)
    (one,) = gather([WIPED, cut])
    assert (one.lead.detector, one.first) == ("skipped-eos-wipe", "changelog-truncated")
