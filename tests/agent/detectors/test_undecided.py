"""Something is wrong under one setting and not under another: one question, and what it becomes."""

from __future__ import annotations

from agent.contract.events import Confidence, Severity
from agent.judging.decision import GUARANTEE, STANDBYS
from tests.support.scenario import Scenario
from tests.support.scenario_script import play

ID = "undecided"


def killed(*hidden: str) -> Scenario:
    """A crash with uncommitted data under 4.1.2; `hidden` settings are not told."""
    run = Scenario("4.1.2", "exactly_once_v2", hidden=list(hidden))
    return play(run, "start, opens, commits 100, puts 500, flushes, 5 s, crash, 130 s")


def test_the_agent_asks_and_settles():
    """One warning that names the guarantee first; when disk decides (the checkpoint is gone) it is over."""
    run = killed(GUARANTEE, STANDBYS)
    finding = run.only(ID)
    assert (finding.severity, finding.confidence, finding.status.value) == (
        Severity.WARNING,
        Confidence.UNKNOWN,
        "open",
    )
    assert finding.missing_facts[0] == GUARANTEE
    assert finding.summary.startswith("If it runs exactly-once")
    assert "--set app:processing_guarantee=VALUE" in finding.next_action
    run.world.play("unlink", f"{run.task('0_0').path}/.checkpoint")
    run.wait(130)
    assert run.only(ID).status.value == "resolved"


def test_pods_with_different_tasks_have_different_ids():
    """Both begin at one moment, as those of copied volumes may; one's id stays when more of its tasks are damaged."""
    crash = "5 s, crash, 130 s"
    here = killed(GUARANTEE, STANDBYS)
    there = play(
        Scenario("4.1.2", "exactly_once_v2", hidden=[GUARANTEE, STANDBYS]),
        f"start, opens 0_2, commits 0_2 100, puts 0_2 500, flushes 0_2, {crash}",
    )
    one, other = here.only(ID), there.only(ID)
    assert one.opened_at_us == other.opened_at_us
    assert one.id != other.id
    play(there, f"start, opens 0_1, commits 0_1 100, puts 0_1 500, flushes 0_1, {crash}")
    now = there.only(ID)
    assert len(now.evidence) > len(other.evidence)
    assert (now.id, now.incident_id) == (other.id, other.incident_id)


def test_nothing_is_asked_where_everything_is_told():
    """The finding itself is there instead."""
    run = killed()
    assert run.findings(ID) == []
    assert run.loud()
