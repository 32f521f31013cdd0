"""What the demo shows of the agents' logs, and that a bug which is not one incident fails it; nothing is replayed."""

from __future__ import annotations

import io

import pytest

from deploy.demo.news import News
from deploy.demo.run_demo import Demo
from deploy.demo.screen import Screen, show_verdict


def line(task: str = "0_0", **more: object) -> dict[str, object]:
    """One line of an agent's log about a finding."""
    return {
        "detector": "torn-store", "change": "opened", "severity": "critical", "task_id": task, "message": "Broken.",
        "incident_id": "i-1", "level": "critical",
    } | more  # fmt: skip


def test_of_one_incident_each_thing_is_shown_once():
    """The second task of the same crash is counted; another detector, a higher severity and another pod are news."""
    news = News()
    assert news.take("a", line(severity="warning"))
    assert not news.take("a", line("0_1", severity="warning"))
    assert news.take("a", line())
    assert news.take("a", line(detector="unrestored-store"))
    assert news.take("b", line())
    assert not news.take("a", line(change="resolved"))
    assert not news.take("a", line(severity="info", incident_id="i-2"))
    assert str(news) == "incidents: 2 (log lines: 6), remarks: 1"


def test_what_all_agents_say_of_the_machine_is_shown_once():
    """Seven agents on one machine; what a log says at level info is no news."""
    news = News()
    clock = {"level": "warning", "message": "preflight: clock"}
    assert [news.take(pod, clock) for pod in "abc"] == [True, False, False]
    assert not news.take("a", {"level": "info", "message": "started"})


def incident(application_id: str, **more: object) -> dict[str, object]:
    """One line of `incidents.jsonl`."""
    return {
        "id": "i-1", "status": "open", "severity": "critical", "application_id": application_id, "tasks": ["0_0"],
        "pods": ["pod-a"], "upstream": ["KAFKA-1"], "detector": "torn-store", "confidence": "confirmed",
        "sentence": "Broken.", "next_action": "Restore.", "findings": [{}],
    } | more  # fmt: skip


@pytest.mark.parametrize(
    ("second", "count"),
    [({}, 2), ({"status": "resolved"}, 1), ({"severity": "info"}, 1), ({"application_id": "other"}, 1)],
)
def test_a_bug_is_one_incident(repository, tmp_path, second, count):
    """A second open incident of its application is a second page; a remark, or what is over, is none."""
    demo = Demo(tmp_path, repository / "tests" / "data" / "traces", Screen(io.StringIO()))
    every = [incident(scenario.application_id) for scenario in demo.scenarios]
    assert demo.missed([], every) == []
    first = demo.scenarios[0]
    problems = demo.missed([], [*every, incident(first.application_id) | second])
    assert problems == ([f"{first.issue} must be one incident, and is {count}"] if count != 1 else [])
    assert demo.missed([], every[1:]) == [f"{first.issue} must be one incident, and is 0"]


def test_the_verdict_counts_in_english():
    """One finding is no plural."""
    shown = io.StringIO()
    show_verdict(Screen(shown), [incident("orders")])
    assert "i-1, 1 finding of the audit\n" in shown.getvalue()
