"""Incidents as pages are made of them: by tasks, bounded; exposures by application and release."""

from __future__ import annotations

from dataclasses import replace

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.contract.finding import Finding
from agent.contract.incidents import STEP_CHARACTERS, SUMMARY_CHARACTERS, Configured, gather
from agent.contract.units import Remedy
from agent.publish.rows import INCIDENTS_LISTED, counts, exposures, incident_rows

EXPOSED = Finding(
    id="a" * 16, detector="stale-eos-checkpoint", level=Level.EXPOSURE, severity=Severity.WARNING,
    confidence=Confidence.CONFIRMED, status=Status.OPEN, application_id="orders", task_id="0_0", store=None,
    identity="i1", opened_at_us=1_000, resolved_at_us=None, upstream=(), affected=Affected.YES, missing_facts=(),
    summary="Exposed.", evidence=(), next_action="Stop it cleanly.", mechanism="uncommitted-data",
    incident_id="i-1", lasting=True,
)  # fmt: skip
DAMAGED = replace(
    EXPOSED, id="b" * 16, detector="skipped-eos-wipe", level=Level.DAMAGE, severity=Severity.CRITICAL, task_id="0_2",
    lasting=False,
)  # fmt: skip
ACCEPTED = {"orders": ["stale-eos-checkpoint"]}


def accepts(application: str) -> list[str]:
    return ACCEPTED.get(application, [])


def test_a_page_names_the_damaged_tasks_only() -> None:
    """Of an incident whose other tasks are merely exposed the alert must not send an operator to those."""
    others = [replace(EXPOSED, id=f"{n:016x}", task_id=f"0_{n}") for n in (1, 3)]
    (row,), left = incident_rows(gather([EXPOSED, *others, DAMAGED], accepts))
    assert (row.incident_id, row.tasks, row.detector, row.configured_exposure, left) == (
        "i-1", "0_2", "skipped-eos-wipe", Configured.NO, 0,
    )  # fmt: skip
    (row,), _ = incident_rows(gather([EXPOSED, *others], accepts))
    assert (row.tasks, row.configured_exposure) == ("0_0, 0_1, 0_3", Configured.ACCEPTED)


def test_an_alert_that_keeps_its_name_says_what_names_the_incident() -> None:
    """Severity, confidence and tasks are those of the finding that names it by now."""
    (row,), _ = incident_rows(gather([EXPOSED, DAMAGED], accepts), {"i-1": "false-clean-store"})
    assert (row.detector, row.named_by, row.tasks) == ("false-clean-store", "skipped-eos-wipe", "0_2")
    (row,), _ = incident_rows(gather([EXPOSED, DAMAGED], accepts), {"i-1": "skipped-eos-wipe"})
    assert (row.detector, row.named_by) == ("skipped-eos-wipe", "")


def test_the_text_of_a_page_names_the_tasks_and_whose_step_comes_first() -> None:
    """One line for a chat; the step is that of all tasks, in the right order, or of the incident that comes first."""
    step = "BEFORE the next start: keep a copy of the task directory, remove that directory only, then start."
    told = replace(DAMAGED, summary="Task 0_2: bad.", next_action=step)
    other = replace(told, id="c" * 16, task_id="0_3", summary="Task 0_3: bad.")
    (row,), _ = incident_rows(gather([told, other], accepts))
    assert row.summary == (
        "orders 0_2, 0_3 (skipped-eos-wipe, confirmed): Task 0_2: bad. The same in task 0_3."
    )
    order = "copy all directories, remove all, and only then start. For each task:"
    assert row.next_step == f"Do this for tasks 0_2, 0_3 in one stop: {order} {step}"
    heads = {
        Remedy.RESTORE: f"Do this for tasks 0_2, 0_3 in one stop: {order}",
        Remedy.CHECK_FIRST: f"Check tasks 0_2, 0_3, each as said below. If more than one must be removed: {order}",
        Remedy.KEEP: "This is for tasks 0_2, 0_3.",
    }
    for remedy, head in heads.items():
        (row,), _ = incident_rows(gather([replace(x, remedy=remedy) for x in (told, other)], accepts))
        assert row.next_step == f"{head} {step}"
    shared = replace(told, id="d" * 16, detector="setup", mechanism="shared-state", incident_id="i-2")
    rows, _ = incident_rows(gather([told, shared], accepts))
    assert {x.next_step for x in rows} == {
        step, "First do what incident i-2 (setup) asks for; remove nothing before.",
    }  # fmt: skip


def test_a_step_is_whole_or_where_to_read_it() -> None:
    """A sentence is cut between words; of a step that is too long nothing is left that could be followed."""
    long = replace(
        DAMAGED, summary="bad " * 200, next_action="Remove it. " * 100 + "But never before a copy."
    )
    (row,), _ = incident_rows(gather([long], accepts))
    assert len(row.summary) <= SUMMARY_CHARACTERS
    assert row.summary.endswith("bad ...")
    assert "Remove it" not in row.next_step
    assert "`statewarden explain i-1 --events SOURCE`" in row.next_step
    whole = replace(DAMAGED, next_action="x" * STEP_CHARACTERS)
    assert incident_rows(gather([whole], accepts))[0][0].next_step == "x" * STEP_CHARACTERS


def test_incidents_are_bounded_and_the_worst_stay() -> None:
    """However many there are, the list ends, and the rest is counted."""
    many = [replace(EXPOSED, id=f"{n:016x}", incident_id=f"i-{n}") for n in range(INCIDENTS_LISTED + 4)]
    worst = replace(DAMAGED, incident_id="i-worst")
    rows, left = incident_rows(gather([*many, worst], lambda _: ()))
    assert (len(rows), rows[0].incident_id, left) == (INCIDENTS_LISTED, "i-worst", 5)


def test_what_raises_no_alert_keeps_nothing_out_that_does() -> None:
    """Exposures by release and remarks are many; suspected damage, a moment, and a blind agent raise tickets."""
    lasting = [replace(EXPOSED, id=f"{n:016x}", incident_id=f"i-{n}") for n in range(INCIDENTS_LISTED)]
    remarks = [
        replace(EXPOSED, id=f"a{n:015x}", incident_id=f"i-a{n}", severity=Severity.INFO, lasting=False)
        for n in range(INCIDENTS_LISTED)
    ]
    suspected = replace(
        DAMAGED, id="c" * 16, incident_id="i-suspected", severity=Severity.WARNING, confidence=Confidence.SUSPECTED,
        opened_at_us=9_000,
    )  # fmt: skip
    moment = replace(suspected, incident_id="i-moment", status=Status.RESOLVED, resolved_at_us=9_000)
    blind = replace(suspected, incident_id="i-blind", level=Level.SELF, application_id="", task_id=None)
    rows, left = incident_rows(gather([*lasting, *remarks, suspected, moment, blind], lambda _: ()))
    assert [x.incident_id for x in rows[:3]] == ["i-suspected", "i-blind", "i-moment"]
    assert left == INCIDENTS_LISTED + 3


def test_open_incidents_are_counted_with_accepted_ones_apart() -> None:
    """What is over is not counted."""
    payments = replace(EXPOSED, id="c" * 16, application_id="payments", incident_id="i-2")
    over = replace(DAMAGED, incident_id="i-3", status=Status.RESOLVED, resolved_at_us=2_000)
    counted = counts(gather([EXPOSED, payments, over], accepts))
    assert counted == {("orders", "warning", True): 1, ("payments", "warning", False): 1}


def test_exposed_tasks_are_counted_by_application_and_detector() -> None:
    """A task twice is one; what is about the application concerns all its tasks; the rest is none."""
    twice = replace(EXPOSED, id="d" * 16, store="totals")
    whole = replace(EXPOSED, id="e" * 16, detector="setup", task_id=None)
    found = exposures(
        [EXPOSED, twice, whole, DAMAGED], {"orders": 5, "payments": 3}, accepts, lambda x: f"of {x}"
    )
    assert found == {
        ("orders", "setup", "of orders", "false"): 5,
        ("orders", "stale-eos-checkpoint", "of orders", "true"): 1,
    }
