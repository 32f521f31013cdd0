"""An incident keeps its alert's name while it lasts; the command that proves a suspicion is exact."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.contract.finding import Finding
from agent.contract.incidents import gather
from agent.detectors import BY_ID
from agent.findings.alerts import AlertNames, waits
from agent.findings.proof import proof_command, with_proof

WAITS = waits({id_: x.meta for id_, x in BY_ID.items()})
SUSPECTED = Finding(
    id="a" * 16, detector="skipped-eos-wipe", level=Level.DAMAGE, severity=Severity.CRITICAL,
    confidence=Confidence.SUSPECTED, status=Status.OPEN, application_id="orders", task_id="0_0", store="totals",
    identity="i1", opened_at_us=2_000, resolved_at_us=None, upstream=(), affected=Affected.YES, missing_facts=(),
    summary="", evidence=(), next_action="", mechanism="uncommitted-data", incident_id="i-1",
)  # fmt: skip
PROVED = replace(
    SUSPECTED, id="b" * 16, detector="data-beyond-changelog", confidence=Confidence.CONFIRMED, opened_at_us=3_000,
)  # fmt: skip


def named(names: AlertNames, *findings: Finding) -> str:
    """Show findings to an agent: the one incident's alert, or nothing."""
    return names.of(gather(findings), WAITS).get("i-1", "")


def ticket(detector: str, **more: object) -> Finding:
    level = BY_ID[detector].meta.level
    return replace(SUSPECTED, id=detector, detector=detector, level=level, severity=Severity.WARNING, **more)  # type: ignore[arg-type]


def test_a_surer_finding_leaves_the_alert_its_name() -> None:
    """What was suspected and paged is joined by a proof, and then only the proof is left: one page, one name."""
    names = AlertNames()
    assert named(names, SUSPECTED) == "skipped-eos-wipe"
    (incident,) = gather([SUSPECTED, PROVED])
    assert incident.lead is PROVED
    assert named(names, SUSPECTED, PROVED) == "skipped-eos-wipe"
    assert named(names, PROVED) == "skipped-eos-wipe"


def test_a_ticket_is_not_delayed_by_its_name() -> None:
    """An exposure's waits longer than that of damage; the other way round nothing is lost."""
    names = AlertNames()
    torn, shrank = ticket("torn-store"), ticket("store-shrank")
    assert named(names, torn) == "torn-store"
    assert named(names, torn, shrank) == "store-shrank"
    assert named(names, torn) == "store-shrank"


def test_a_name_without_an_alert_is_not_kept() -> None:
    """A remark of a detector that pages raises none; a remark of one that goes no further does."""
    names = AlertNames()
    remark = replace(SUSPECTED, detector="lost-segment", severity=Severity.INFO)
    event = replace(ticket("deleted-while-held"), severity=Severity.INFO, confidence=Confidence.CONFIRMED)
    assert named(names, remark) == "lost-segment"
    assert gather([remark, event])[0].lead in (remark, event)
    assert named(names, replace(event)) == "deleted-while-held"


def test_an_exposure_for_reading_gives_no_name() -> None:
    """It has no alert of its own; the ticket that follows is named by what raises it."""
    names = AlertNames()
    exposed = ticket("stale-eos-checkpoint", lasting=True)
    assert named(names, exposed) == "stale-eos-checkpoint"
    assert named(names, exposed, ticket("interrupted-wipe")) == "interrupted-wipe"


DAMAGE, EXPOSURE = BY_ID["lost-segment"].meta, BY_ID["stale-eos-checkpoint"].meta
assert (DAMAGE.level, EXPOSURE.level) == (Level.DAMAGE, Level.EXPOSURE)


def test_a_suspicion_begins_with_its_proof():
    """Nothing is stopped or removed for what the proof may refute; the command can be copied."""
    said = with_proof("Stop it.", DAMAGE, Confidence.SUSPECTED, "orders", "0_1", "counts")
    assert said == (
        "Check it first, beside the running application or on a stopped one: `statewarden verify STATE_DIR "
        "--bootstrap-servers HOST:9092 --application orders --task 0_1 --store counts`; "
        "`equal` or `behind` clears it only if the task has written nothing since. Otherwise: Stop it."
    )
    assert f"`{proof_command('orders', '0_1', 'counts')}`" in said


@pytest.mark.parametrize(
    ("meta", "confidence", "task"),
    [
        (DAMAGE, Confidence.CONFIRMED, "0_1"),
        (DAMAGE, Confidence.UNKNOWN, "0_1"),
        (EXPOSURE, Confidence.SUSPECTED, "0_1"),  # about the next start, not about what is there
        (DAMAGE, Confidence.SUSPECTED, None),
        (DAMAGE, Confidence.SUSPECTED, "global"),  # not compared
    ],
)
def test_nothing_is_added_where_content_decides_nothing(meta, confidence, task):
    assert with_proof("Keep a copy.", meta, confidence, "orders", task, None) == "Keep a copy."
