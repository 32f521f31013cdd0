"""May a pod be restarted of which something is not in the input: a finding, its beginning, its tasks; or not sure."""

from __future__ import annotations

import pytest

from agent.contract.events import Kind
from agent.contract.exit_codes import Exit
from tests.spark_rollup.report.test_restarts import answer, asked, two_copies
from tests.spark_rollup.support.fleet import Fleet, story


@story
def a_finding_was_lost(fleet: Fleet) -> None:
    a, _ = two_copies(fleet)
    a.finds("resurrected-checkpoint", "0_0", 100, store="s").loses_findings(100)


@story
def a_finding_was_lost_and_said_again(fleet: Fleet) -> None:
    a, _ = two_copies(fleet)
    a.finds("false-clean-store", "0_0", 100, store="s").loses_findings(100)
    a.repeats("false-clean-store", "0_0", 500, 100, store="s")


@story
def no_task_was_named(fleet: Fleet) -> None:
    two_copies(fleet)
    fleet.pod("pod-c").tells(Kind.SUMMARY, 3, task_id="0_7", stores=[]).loses(2)


@story
def the_beginning_is_not_there(fleet: Fleet) -> None:
    two_copies(fleet)[0].loses(1, 2, 3)


@story
def the_beginning_of_an_older_agent_is_not_there(fleet: Fleet) -> None:
    a, _ = two_copies(fleet)
    a.counts = False
    a.loses(1, 2, 3)


TORN = {"level": "exposure", "severity": "warning", "remedy": "restore"}  # as agents report it


@story
def a_copy_is_suspected(fleet: Fleet) -> None:
    two_copies(fleet)[1].finds("torn-store", "0_0", 100, **TORN, store="s", identity="i")


@story
def a_copy_is_suspected_by_an_older_agent(fleet: Fleet) -> None:
    """Which names no remedy."""
    two_copies(fleet)[1].finds("torn-store", "0_0", 100, **{**TORN, "remedy": None})


@story
def a_copy_at_rest_is_suspected(fleet: Fleet) -> None:
    _, b = two_copies(fleet)
    b.releases("0_0", 400).finds("torn-store", "0_0", 500, **TORN)


@story
def the_end_of_the_other_copy_was_lost(fleet: Fleet) -> None:
    b = two_copies(fleet)[1]
    b.records = [record for record in b.records if "stores" not in record.body]
    b.releases("0_0", 700).deletes_task("0_0", 701)
    b.tells(Kind.HEARTBEAT, 899, tasks=0, open_criticals=0, open_warnings=0)
    b.loses(
        *(
            number
            for number, line in enumerate(b.lines(), 1)
            if "task-released" in line or "task-deleted" in line
        )
    )


@pytest.mark.parametrize(
    ("name", "pod", "why"),
    [
        (a_finding_was_lost, "pod-a", "its agent counts 1 open finding that is not in the input"),
        (no_task_was_named, "pod-c", "tasks that its agent watches and that are not in the input: 1"),
        (
            the_beginning_of_an_older_agent_is_not_there,
            "pod-a",
            "events of its agent are lost, and it does not say again what is open",
        ),
    ],
)
def test_what_is_not_there_makes_a_pod_unknown(audited, name, pod, why):
    """The agent counts more than is known, or what is lost is not said again."""
    lines, safe = asked(audited, name, pod)
    assert safe is Exit.UNREAD
    assert lines[1].startswith(f"{pod}: unknown: {why}")


def test_a_stream_that_begins_later_is_whole(audited):
    """What is open was counted since."""
    assert asked(audited, the_beginning_is_not_there)[1] is Exit.CLEAR


def test_a_copy_with_an_unknown_finding_is_no_replica(audited):
    """What is wrong with it is not known: the other pod may not rest on it."""
    row = answer(audited, a_finding_was_lost, "pod-b")
    assert (row["answer"], row["healthy_elsewhere"]) == ("unknown", [])


def test_what_is_said_again_is_known(audited):
    """The repetition is as good as the word that was lost."""
    assert answer(audited, a_finding_was_lost_and_said_again)["answer"] == "damaged"
    lines, _ = asked(audited, a_finding_was_lost_and_said_again)
    assert lines[1].startswith("pod-a: damaged: follow false-clean-store first")
    assert "unknown" not in lines[1]


@pytest.mark.parametrize(
    "name", [a_copy_is_suspected, a_copy_is_suspected_by_an_older_agent, a_copy_at_rest_is_suspected]
)
def test_a_copy_that_may_be_damaged_is_unknown(audited, name):
    """And none to rely on: nothing is safe beside a suspicion."""
    row = answer(audited, name, "pod-b")
    assert (row["answer"], row["doubt"]) == ("unknown", "open: torn-store")
    lines, code = asked(audited, name, "pod-b")
    assert ("      doubt: open: torn-store" in lines, code) == (True, Exit.UNREAD)
    assert answer(audited, name)["healthy_elsewhere"] == []


def test_a_copy_that_its_agent_no_longer_counts_is_none_to_rely_on(audited):
    """What says that it went is lost, and no summary tells of a directory that is gone."""
    (found,) = audited.findings(the_end_of_the_other_copy_was_lost, "unprotected-task")
    assert (found["severity"], found["confidence"]) == ("info", "unknown")
    assert "pod-b (may be gone)" in str(found["evidence"])
    row = answer(audited, the_end_of_the_other_copy_was_lost)
    assert row["ill_elsewhere"] == ["pod-b (its agent reports fewer tasks than its events show)"]
