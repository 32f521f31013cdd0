"""May I restart? One line per pod, the dangerous ones first."""

from __future__ import annotations

import re
from typing import Any

from spark_rollup.report.page import pods, render
from spark_rollup.report.restart_answer import ANSWERS
from tests.spark_rollup.report.page.page_check import section, whole, words
from tests.spark_rollup.report.page.page_rows import answer, finding, page


def shown(**given: Any) -> str:
    names = dict.fromkeys(str(row["pod"]) for row in (*given.get("pods", ()), *given.get("restarts", ())))
    known = [{"namespace": "shop", "pod": pod, "doubt": None, "gone": False} for pod in names or ["pod-a"]]
    given = {"known_pods": known} | given
    text = render(page(**given))
    whole(text)
    return section(text, "restarts")


def order(text: str) -> list[str]:
    return re.findall(r'<span class="where"><bdi>([^<]+)', text)


def test_the_dangerous_come_first():
    """Damaged before unknown before safe; every kind of answer is in the line, with the number of its tasks."""
    rows = [
        answer(pod="pod-s", answer="safe", kinds=["safe"]),
        answer(
            pod="pod-d",
            answer="damaged",
            kinds=["damaged", "restore"],
            follow=["torn-store"],
            first_action="wait",
        ),
        answer(pod="pod-d", task_id="0_1", answer="restore", kinds=["restore"]),
        answer(pod="pod-u", answer="unknown", kinds=["unknown"], doubt="not watched at 11:00"),
    ]
    text = shown(restarts=rows, pods=[])
    assert order(text) == ["pod-d", "pod-u", "pod-s"]
    said = words(text)
    assert "pod-d damaged 1 restore 2 follow torn-store first" in said
    assert "First: wait" in said
    assert "Doubt: not watched at 11:00" in said
    assert f"pod-s safe 1 {ANSWERS['safe']}" in said


def test_each_task_has_its_reasons():
    """Who has a good copy, who a bad one, what restoring costs, what a kill does."""
    row = answer(
        healthy_elsewhere=["pod-b"], ill_elsewhere=["pod-c (9 records behind)"], restore_bytes=3_400_000_000
    )
    said = words(shown(restarts=[row]))
    assert "Elsewhere: pod-b; not healthy: pod-c (9 records behind); restoring costs 3 GiB" in said
    assert "If killed: the store is wiped" in said


def test_a_damaged_task_leads_to_its_incident():
    """The answer says that something comes first, and where that is."""
    row = answer(answer="damaged", kinds=["damaged"], follow=["resurrected-checkpoint"])
    (incident,) = page().incidents
    assert f'<b>Incident:</b> <a href="#{incident.id}">' in shown(restarts=[row])


def test_a_silent_pod_is_unknown_whatever_it_held():
    """Its last known tasks are shown, but the answer is that nothing is known, in the words of the audit."""
    known = [{"namespace": "shop", "pod": "pod-a", "doubt": "not heard since 11:20:00", "gone": False}]
    said = words(shown(known_pods=known, restarts=[answer(answer="safe", kinds=["safe"])]))
    assert "pod-a unknown safe 1 not heard since 11:20:00; its current tasks are unknown" in said
    assert "pod-a unknown not heard since 11:20:00" in words(shown(known_pods=known))


def test_a_pod_without_tasks_is_safe():
    """Nothing is held there that can be seen."""
    assert "pod-a safe it holds no task that can be seen" in words(shown())


def test_an_ended_pod_comes_last_unless_it_left_damage():
    """One that is gone for good must not hide the others."""
    known = [
        {"namespace": "shop", "pod": pod, "doubt": doubt, "gone": doubt is not None}
        for pod, doubt in (("pod-gone", "its agent ended at 11:20:00"), ("pod-a", None))
    ]
    assert order(shown(known_pods=known)) == ["pod-a", "pod-gone"]
    left = answer(pod="pod-gone", answer="damaged", kinds=["damaged"], follow=["x"])
    assert order(shown(known_pods=known, restarts=[left])) == ["pod-gone", "pod-a"]


def test_an_answer_of_a_newer_version_is_listed_first():
    """A word that is not known is not harmless."""
    rows = [
        answer(answer="damaged", kinds=["damaged"]),
        answer(pod="pod-n", answer="cursed", kinds=["cursed"]),
    ]
    assert order(shown(restarts=rows, pods=[])) == ["pod-n", "pod-a"]


def test_a_row_without_a_task_is_about_the_application():
    """It says what to do first, and nothing about copies."""
    row = answer(
        task_id=None, answer="damaged", kinds=["damaged"], follow=["x"], first_action="stop one of both"
    )
    said = words(shown(restarts=[row], findings=[finding(task_id=None)]))
    assert "orders damaged" in said
    assert "First: stop one of both" in said
    assert "Elsewhere" not in said


def test_the_words_are_explained():
    """Only those that are used, the dangerous ones first."""
    text = shown(
        restarts=[answer(answer="restore", kinds=["restore"]), answer(pod="p", answer="safe", kinds=["safe"])]
    )
    assert re.findall(r"<dt><span[^>]*>([^<]+)", text) == ["restore", "safe"]


def test_very_many_tasks_of_a_pod_are_counted():
    """The list of one pod ends, with a number."""
    rows = [answer(task_id=f"0_{n}") for n in range(pods.TASKS_OF_ONE + 7)]
    assert "7 more in the table" in shown(restarts=rows)
