"""The index of tasks, and what the filter of the page can ask for."""

from __future__ import annotations

import re

from spark_rollup.report.page import render
from tests.spark_rollup.report.page.page_check import only_match, section, whole, words
from tests.spark_rollup.report.page.page_rows import answer, finding, page


def test_tasks_with_incidents_come_first_and_lead_everywhere():
    """Each line leads to incidents, pods and the timeline; tasks are ordered as people count."""
    rows = [answer(task_id="0_10"), answer(task_id="0_2"), answer()]
    text = section(render(page(restarts=rows)), "tasks")
    assert re.findall(r"<bdi>(0_\d+)</bdi>", text) == ["0_0", "0_2", "0_10"]
    (incident,) = page().incidents
    line = only_match(r"<li.*?</li>", text)
    assert f'<span class="word critical">critical</span> <a href="#{incident.id}">' in line
    assert 'on <a href="#r-' in line
    assert '">timeline</a>' in line


def test_resolved_incidents_are_no_reason_to_be_first():
    """They are named as what they are."""
    rows = [
        finding(status="resolved"),
        finding(id="b", task_id="0_1", severity="warning", detector="split-owner"),
    ]
    said = words(section(render(page(findings=rows)), "tasks"))
    assert said.index("orders/0_1 warning") < said.index("orders/0_0 resolved")


def test_many_tasks_are_paged():
    """Behind the first page each is one line that opens."""
    text = section(render(page(restarts=[answer(task_id=f"0_{n}") for n in range(130)])), "tasks")
    assert re.findall(r"<summary>(tasks [^<]+)</summary>", text) == [
        "tasks 61 to 120 of 130",
        "tasks 121 to 130 of 130",
    ]
    assert text.count('<ul class="index">') == 3


def test_the_filter_offers_what_is_there_and_is_hidden_without_the_script():
    """Applications, pods and severities; the namespace only where there is a choice."""
    text = render(page(findings=[finding(), finding(id="b", application_id="bills", severity="info")]))
    form = only_match(r"<form.*?</form>", text)
    assert form.startswith(
        '<form id="filter" class="filter" role="search" aria-label="Filter this page" hidden>'
    )
    assert re.findall(r"<option>([^<]+)</option>", form) == ["bills", "orders"]
    assert '<option value="info">remark</option>' in form
    assert "Namespace" not in form
    two = render(page(findings=[finding(), finding(id="b", namespace="staging")]))
    assert "<option>shop</option><option>staging</option>" in only_match(r"<form.*?</form>", two)


def test_every_block_knows_what_it_is_about():
    """Cards, answers, index, drawings and agents have what the filter asks for."""
    text = render(page(restarts=[answer()]))
    whole(text)
    marks = 'data-n="shop" data-a="orders" data-p="pod-a'
    for kind in ("article", "details", "li", "figure", "tr"):
        assert re.search(rf"<{kind}[^>]*{marks}", text), kind
    assert only_match(r"<article[^>]*>", text).endswith('data-s="critical">')


def test_names_of_a_list_cannot_pass_for_several():
    """A line end inside a name stays inside it."""
    (pod,) = page().pods
    text = section(render(page(pods=[{**pod, "applications": ["a\nb", "c"]}])), "restarts")
    assert 'data-a="a\\u000ab\nc"' in text


def test_without_a_namespace_everything_finds_its_place():
    """Agents outside Kubernetes have none; null and empty are the same."""
    (pod,), (seen,), base = page().pods, page().coverage, page().timelines
    text = render(
        page(
            findings=[finding(namespace=None)], pods=[{**pod, "namespace": None}],
            coverage=[{**seen, "namespace": None}],
            timelines=[{**row, "namespace": None} for row in base], restarts=[answer(namespace=None)],
            releases=[{"namespace": None, "application_id": "orders", "release": "3.9.1"}],
        )
    )  # fmt: skip
    whole(text)
    assert "None" not in words(only_match(r"<body>.*</main>", text))
    assert only_match(r"<li[^>]*>.*?</li>", section(text, "tasks")).count("<a href") == 3
    assert "tasks hit" in section(text, "releases")
    assert 'class="chip critical">1 critical' in section(text, "pods")
