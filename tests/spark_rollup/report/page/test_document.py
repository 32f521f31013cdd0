"""The page as a whole: self-contained, safe, complete; its filter, timelines and tables."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.audited import read
from agent.contract.markup import escape
from spark_rollup.report.page import render, text
from spark_rollup.report.page.filters import SCRIPT, digest
from spark_rollup.report.page.style import CSS
from tests.spark_rollup.report.page.page_check import HOSTILE, Balance, only_match, section, whole, words
from tests.spark_rollup.report.page.page_rows import answer, finding, lane, page


def test_the_page_is_well_formed_and_self_contained():
    """Every element is closed, ids are unique, nothing points outside, and one script is all that may run."""
    text = render(page(restarts=[answer()]))
    found = whole(text)
    policy = only_match(r'Content-Security-Policy" content="[^"]*"', text)
    assert "default-src 'none'" in policy
    assert f"style-src {digest(CSS)}; script-src {digest(SCRIPT)};" in policy
    assert f"<script>{SCRIPT}</script>" in text
    assert not {name for name in found.attributes if name.startswith("on") or name == "style"}


def test_an_empty_fleet_has_a_page():
    """No event at all: every section says that there is nothing."""
    text = render(page(findings=[], coverage=[], pods=[], timelines=[]))
    whole(text)
    for said in ("No pod has reported", "none is drawn"):
        assert said in text


@pytest.mark.parametrize(
    "field",
    [
        "task_id",
        "pod",
        "application_id",
        "store",
        "summary",
        "next_action",
        "id",
        "detector",
        "namespace",
        "opened_at",
    ],
)
def test_hostile_names_stay_text(field):
    """Markup, escape sequences, direction overrides and broken characters in any name are shown, not obeyed."""
    row = finding(**{field: HOSTILE}, missing_facts=[HOSTILE])
    (incident,) = page().incidents
    shared: dict[str, dict[str, Any]] = {
        "task_id": {"tasks": (HOSTILE,)}, "pod": {"pods": (HOSTILE,)}, "store": {"stores": (HOSTILE,)},
        "summary": {"sentence": HOSTILE}, "detector": {"title": HOSTILE},
    }  # fmt: skip
    same = {field: HOSTILE} if field in ("id", "namespace", "next_action") else shared.get(field, {})
    lead = replace(read(row), upstream=(HOSTILE,))
    hurt = replace(
        incident, lead=lead, findings=((incident.findings[0][0], lead),), absorbed=(HOSTILE,), **same
    )
    lanes = [lane("holder", 1, 2, detail=HOSTILE), lane("checkpoint", 3, detail=HOSTILE)]
    if field in lanes[0]:
        lanes = [row_ | {field: HOSTILE} for row_ in lanes]
    asked = answer(
        kinds=[HOSTILE], follow=[HOSTILE], first_action=HOSTILE, doubt=HOSTILE, healthy_elsewhere=[HOSTILE]
    )
    asked |= {field: HOSTILE} if field in asked else {}
    pod = dict(page().pods[0]) | {
        "applications": [HOSTILE],
        "node": HOSTILE,
        "agent_state": HOSTILE,
        "agent_version": HOSTILE,
    }
    text = render(
        page(
            findings=[row], incidents=[hurt], timelines=lanes, quarantine={HOSTILE: 1}, restarts=[asked], pods=[pod],
            releases=[{"namespace": HOSTILE, "application_id": HOSTILE, "not_given": [HOSTILE]}],
            disabled=[{"namespace": "", "application_id": "", "pod": HOSTILE, "detector": HOSTILE, "reason": HOSTILE}],
        )
    )  # fmt: skip
    text.encode("utf-8")
    assert text.count("<script") == 1
    assert not {"\u202e", "\x1b", "\x00"} & set(text)
    whole(text)


def test_endless_texts_are_cut_and_counted():
    """What an agent may write at any length takes no more than its place."""
    row = finding(
        summary="x" * 100_000, next_action="y" * 50_000, pods=["p" * 9_000], pod="p" * 9_000,
        evidence=[{"at": "z" * 5_000, "what": "w" * 9_000, "where": "v" * 9_000}] * 500,
    )  # fmt: skip
    text = render(page(findings=[row], timelines=[]))
    whole(text)
    assert len(text) < 400_000
    assert "(98000 characters more)" in text
    assert "460 earlier steps in" in text


def test_a_timeline_shows_every_mark():
    """Holder bars, deletion, creation, checkpoint, curves, unwatched time and the finding's flag are drawn."""
    text = render(page())
    figure = only_match(r"<figure.*?</figure>", text)
    for style in ("hold", "gone", "made", "tick", "offset", "puts", "unwatched", "flag critical"):
        assert f'class="{style}"' in figure, style
    assert "held from 11:06:45 to the last reading" in figure
    assert "50 puts at 2\u202f050" in figure


def test_a_quiet_end_does_not_squash_the_story():
    """The axis ends after the last thing that happened, not at the end of the input."""
    assert "11:20:00" not in only_match(r"<figure.*?</figure>", render(page()))


def test_timelines_and_incidents_lead_to_each_other():
    """The card links to the drawing of its task, the drawing to the card."""
    text = render(page())
    (incident,) = page().incidents
    figure = only_match(r"<figure.*?</figure>", text)
    assert f'href="#{incident.id}"' in figure
    assert f'href="#{only_match(r"t-[0-9a-f]{16}", figure)}"' in only_match(r"<article.*?</article>", text)


def test_a_task_without_a_drawing_is_not_linked_to():
    """A finding about a task of which nothing can be drawn has no dead link."""
    text = render(page(timelines=[lane("unknown", 72, 78)], findings=[finding(task_id="9_9")]))
    whole(text)
    assert "timeline of" not in text


def test_many_tasks_are_drawn_in_pages():
    """The drawings of an application are paged, and a link to a folded one has its target."""
    findings = [finding(id=f"f{n}", task_id=f"0_{n}") for n in range(30)]
    timelines = [lane("holder", 10, 60, task_id=f"0_{n}") for n in range(30)]
    text = render(page(findings=findings, timelines=timelines))
    found = whole(text)
    assert "<summary>tasks 26 to 30 of 30</summary>" in text
    assert sum(x.startswith("t-") for x in found.ids) == 30


def test_long_tables_are_paged_and_begin_with_what_needs_a_check():
    """Of many pods the silent and the suspicious come first, and the rest is folded."""
    (pod,) = page().pods
    pods = [{**pod, "pod": f"pod-{number:03d}"} for number in range(120)]
    pods[110] = {**pods[110], "agent_state": "silent"}
    text = render(page(pods=pods, findings=[finding(pod="pod-115", pods=["pod-115"])], timelines=[]))
    listing = section(text, "pods")
    assert re.findall(r"<bdi>(pod-\d{3})", listing)[:3] == ["pod-110", "pod-115", "pod-000"]
    assert re.findall(r"<summary>(pods [^<]+)</summary>", listing) == [
        "pods 51 to 100 of 120",
        "pods 101 to 120 of 120",
    ]


def test_namespaces_are_named_where_there_are_several():
    """Pods, services and tasks carry their namespace, and only then."""
    rows = [finding(), finding(id="f2", namespace="staging")]
    text = render(page(findings=rows, restarts=[answer(), answer(namespace="staging")]))
    whole(text)
    assert "<bdi>shop/pod-a</bdi>" in section(text, "restarts")
    assert "<bdi>shop/orders/0_0</bdi>" in section(text, "timelines")
    assert "<bdi>shop/pod-a</bdi>" not in render(page(restarts=[answer()]))


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
    for kind in ("article", "details", "figure", "tr"):
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
            releases=[{"namespace": None, "application_id": "orders", "not_given": ["guarantee"]}],
        )
    )  # fmt: skip
    whole(text)
    assert "None" not in words(only_match(r"<body>.*</main>", text))
    assert 'class="chip critical">1 critical' in section(text, "pods")


@given(at_us=st.integers(-(2**63), 2**63 - 1))
def test_any_time_can_be_written(at_us):
    """A wild clock must not end a page."""
    assert len(text.clock(at_us)) == len("12:00:00")
    assert len(text.day(at_us)) == len("2026-11-18")
    assert Balance(text.moment(at_us)).open == []


@given(value=st.text())
def test_any_text_is_safe(value):
    """In an element and in a quoted attribute, however it is cut."""
    for written in (escape(value), text.clip(value, 3), text.name(value)):
        assert not {'"', "\x00", "\n"} & set(written)
        assert Balance(f'<p title="{escape(value)}">{written}</p>').tags[0] == "p"
