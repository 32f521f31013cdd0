"""The first lines of the page: verdict, age, what was read and what was not."""

from __future__ import annotations

import pytest

from spark_rollup.report.page import render
from spark_rollup.report.since_last import Change, Last, SinceLast
from tests.spark_rollup.report.page.page_check import headline, section, whole, words
from tests.spark_rollup.report.page.page_rows import START_US, finding, lane, page

WHOLE = {**page().coverage[0], "unknown_seconds": 0.0}


POD, SEEN = page().pods[0], page().coverage[0]
ONE = "1 critical incident: shop/orders 0_0 on pod-a"
CLEAR = "Nothing wrong found in what was watched"


def pods(*states: str) -> dict[str, object]:
    """Make pods in these states, beside the usual one."""
    return {"pods": [POD, *({**POD, "pod": f"pod-{n}", "agent_state": x} for n, x in enumerate(states))]}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, ONE),
        # incidents are counted, not findings, and applications named
        (
            {"findings": [
                finding(),
                finding(id="b", application_id="bills", severity="warning"),
                finding(id="c", application_id="bills", task_id="0_1", severity="warning", detector="missing-standby"),
                finding(id="d", application_id="users", severity="info"),
            ]},
            "1 critical and 2 warning incidents in bills, orders",
        ),
        # a question is none of the warnings
        (
            {"findings": [finding(), finding(id="b", detector="undecided", severity="warning", confirms=[])]},
            "1 critical and 1 undecided incidents in orders",
        ),
        # an all-clear says what it is about: what was not watched is named beside it
        ({"findings": [], "coverage": [WHOLE]}, CLEAR),
        (
            {"findings": [], "pods": [{**POD, "agent_state": "silent"}], "quarantine": {"not-json": 2},
             "coverage": [SEEN, {**SEEN, "pod": "pod-b"}]},
            f"{CLEAR} (not seen: pod-a, 1 pod with gaps, 2 lines or files not used)",
        ),
        (
            {"findings": [], "pods": [{**POD, "agent_state": "stopped"}], "coverage": [WHOLE]},
            f"{CLEAR} (1 pod without an agent by now)",
        ),
        ({"findings": [], "pods": [], "coverage": [], "timelines": []}, "Nothing was read: no pod has reported"),
        ({"findings": [finding(severity="info")], "coverage": [WHOLE]}, f"{CLEAR} but 1 remark"),
        # a pod that is silent may have more
        (pods("silent"), f"{ONE}; not seen: pod-0"),
        (pods(*["silent"] * 9), f"{ONE}; not seen: 9 pods"),
        (
            {"findings": [], "coverage": [WHOLE],
             "timelines": [lane("unknown", 800, 900, task_id=None, application_id=None, detail="watch-limit")]},
            f"{CLEAR} (not seen: pod-a)",
        ),
    ],
)  # fmt: skip
def test_the_first_line(given, said):
    """How things are, in one sentence; what was not seen is never part of an all-clear."""
    text = render(page(**given))
    whole(text)
    assert headline(text) == said


def test_what_agents_count_and_is_not_there_is_no_all_clear():
    """The first line says so whatever else was found, and so does the box of what was not seen."""
    lost = {**WHOLE, "missed_criticals": 1, "missed_warnings": 2}
    words_of_it = "agents count 1 critical and 2 warnings that are not in the input (pod-a)"
    text = render(page(findings=[], coverage=[lost]))
    assert headline(text) == f"Unknown: {words_of_it}"
    assert f"<b>Not in the input:</b> {words_of_it}" in text
    whole(text)
    beside = headline(render(page(coverage=[{**lost, "missed_warnings": 0}])))
    assert beside.endswith("on pod-a; agents count 1 critical that is not in the input (pod-a)")


def test_no_all_clear_without_the_settings_that_decide():
    """What agents were not given is part of the verdict, and named by application."""
    rows = [
        {"namespace": "shop", "application_id": name, "release": "4.1.2", "not_given": keys}
        for name, keys in (("orders", ["processing_guarantee"]), ("bills", []))
    ]
    text = render(page(findings=[], coverage=[WHOLE], releases=rows))
    assert headline(text) == "Nothing wrong found in what was watched (settings of 1 application not given)"
    assert "Settings that no agent was given: shop/orders processing_guarantee" in words(
        section(text, "unseen")
    )


def test_no_pod_seen_is_not_good():
    """Where all agents have ended, the tile with the pods that are seen is not green."""
    (pod,) = page().pods
    text = render(page(findings=[], pods=[{**pod, "agent_state": "stopped"}], coverage=[WHOLE]))
    assert '<div class="tile none"><b>0 of 1</b><span>pods seen now</span></div>' in text


def test_the_age_is_said():
    """The audit's time with its date, how old the newest event was, how long the run took."""
    text = render(page(written_us=START_US + 1_020_000_000, took_s=41.4))
    assert "as of 2026-11-18 11:21:40 UTC, newest event 2 min old, run took 41 s" in words(text)
    ahead = words(render(page(written_us=START_US + 800_000_000)))
    assert "newest event 100 s ahead of this clock" in ahead
    assert "newest event" not in words(render(page()))


def test_what_was_read_is_said_where_nothing_was_found():
    """Pods, applications, tasks and time stand in the place of incidents; silence is no promise."""
    text = words(section(render(page(findings=[], coverage=[WHOLE])), "incidents"))
    assert (
        "No open incident in what was read: read 1 pod · 1 application: orders · 1 task held now"
        in text.replace("&middot;", "·")
    )
    assert "No finding does not mean no damage" in text


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("silent", "Silent now: pod-a last heard 2026-11-18 11:21:40 UTC"),
        ("stopped", "Agent has ended: pod-a last heard 2026-11-18 11:21:40 UTC"),
    ],
)
def test_pods_that_were_not_seen_are_named(state, said):
    """By what was the matter, with the time of the last word."""
    (pod,) = page().pods
    assert said in words(section(render(page(pods=[{**pod, "agent_state": state}])), "unseen"))


def test_blind_pods_and_gaps_are_named_with_their_share():
    """A pod that is blind right now is another matter than one that was blind for a while."""
    text = words(section(render(page()), "unseen"))
    assert "Not watched for a while: pod-a 45 s of 15 min missing, 95.0 % watched" in text
    blind = lane("unknown", 850, 900, task_id=None, application_id=None, detail="queue-overflow")
    text = words(section(render(page(timelines=[blind])), "unseen"))
    assert "Blind now: pod-a since 2026-11-18 11:20:50 UTC: queue-overflow" in text
    assert "Not watched for a while" not in text


def test_very_many_unseen_pods_are_folded_and_counted():
    """The first are named at once, the others behind one line; no name is lost without a count."""
    (pod,) = page().pods
    pods = [{**pod, "pod": f"pod-{n:04}", "agent_state": "silent"} for n in range(1500)]
    text = section(render(page(pods=pods)), "unseen")
    assert "and 1488 more" in text
    assert "pod-0999" in text
    assert "pod-1000" not in text
    assert "500 pods more in the table" in text


def test_unused_lines_and_disabled_detectors_are_part_of_what_was_not_seen():
    """Both qualify the all-clear; the table says why a detector is disabled, and where."""
    row = {
        "namespace": "shop", "application_id": "orders", "pod": "pod-a", "detector": "torn-store", "reason": "<old>",
    }  # fmt: skip
    rows = [row, row | {"pod": "pod-b"}]
    text = render(page(findings=[], coverage=[WHOLE], disabled=rows, quarantine={"not-json": 3}))
    assert headline(text).endswith("(3 lines or files not used, 1 detector disabled)")
    assert "disabled by settings of agents: torn-store on pod-a, pod-b: &lt;old&gt;" in words(
        section(text, "unseen")
    )
    assert "Not used: 3 not-json" in words(section(text, "unseen"))
    assert "disabled" not in section(render(page()), "unseen")


def test_tiles_count_incidents_and_pods():
    """Incidents by severity, resolved ones, and how many pods are seen right now."""
    (pod,) = page().pods
    rows = [finding(), finding(id="b", task_id="0_1", status="resolved", application_id="bills")]
    text = render(page(findings=rows, pods=[pod, {**pod, "pod": "pod-q", "agent_state": "silent"}]))
    assert '<div class="tile critical"><b>1</b><span>critical, open</span></div>' in text
    assert "<b>1</b><span>resolved</span>" in text
    assert "undecided, open" not in text
    asked = render(
        page(findings=[*rows, finding(id="c", detector="undecided", severity="warning", confirms=[])])
    )
    assert '<div class="tile undecided"><b>1</b><span>undecided, open</span></div>' in asked
    assert '<div class="tile none"><b>0</b><span>warning, open</span></div>' in asked
    assert '<span class="chip warning">undecided</span>' in section(asked, "incidents")
    assert '<div class="tile warning"><b>1 of 2</b><span>pods seen now</span></div>' in text


def test_what_changed_since_the_last_audit_is_said_before_all_else():
    """With the way to what is new; what is gone is folded, what is not heard of any more is among what was not seen."""
    row = {
        "id": "i-<old>", "namespace": "shop", "application_id": "orders", "detector": "torn-store", "tasks": ["0_7"],
        "pods": ["pod-a"],
    }  # fmt: skip
    last = Last(START_US, "0.0.1")
    lost = {**row, "tasks": ["0_8"], "why": "pod-a: not heard since 12:00"}
    (one,) = page().incidents
    data = page(since_last=SinceLast(last, {("shop", one.id): Change.NEW}, [row], [lost]))
    text = render(data)
    whole(text)
    head = words(text[text.index("</h1>") : text.index("</header>")])
    assert head.startswith(
        "Since the audit of 2026-11-18 11:06:40 UTC (by version 0.0.1): 1 new, 1 gone, 1 not heard of any more; "
        "new: shop/orders 0_0 on pod-aWhat is gonetorn-store shop/orders/0_7 on pod-a (i-&lt;old&gt;)as of "
    )
    assert f'new: <a href="#{one.id}">' in text
    assert (
        "Incidents not heard of any more: torn-store shop/orders/0_8 on pod-a (i-&lt;old&gt;); "
        "pod-a: not heard since 12:00; see since_last.json"
    ) in words(section(text, "unseen"))
    assert "ince the audit" not in render(page())
