"""Incidents on the page: cards, evidence, the list of what to do."""

from __future__ import annotations

import re
from dataclasses import replace

from agent.contract.audited import gather, read
from agent.contract.events import Severity
from agent.contract.incidents import EvidenceRole
from agent.contract.markup import coded
from spark_rollup.report.page import incidents, render
from tests.spark_rollup.report.page.page_check import only_match, section, whole, words
from tests.spark_rollup.report.page.page_rows import finding, page


def card(text: str) -> str:
    return only_match(r"<article.*?</article>", text)


def test_a_card_says_what_where_since_when_how_sure_and_what_next():
    """One sentence, the full address, the time, the confidence, one instruction."""
    text = words(card(render(page())))
    for said in (
        "critical KAFKA-8187",
        "shop/orders &middot; task 0_0 &middot; store s &middot; pod pod-a",
        "since 2026-11-18 11:08:01 UTC (13 min before this audit)",
        "confirmed &middot; this release has it",
        "broken",
        "Next restart pod-a",
        "Evidence: 1 finding 1 cause",
        "11:08:00.000",
        "runbook: statewarden explain rules/resurrected-checkpoint",
    ):
        assert said in text, said


def test_evidence_is_folded_and_has_roles_dates_and_places():
    """Each finding with what it is for the incident; the first step of a chain has its date."""
    rows = [finding(), finding(id="f2", task_id="0_1", opened_at="2026-11-18T11:08:02.000000Z")]
    (incident,) = gather([rows[0]])
    both = replace(incident, findings=(*incident.findings, (EvidenceRole.REFUTATION, read(rows[1]))))
    text = card(render(page(findings=rows, incidents=[both])))
    assert (
        '<details class="evidence"><summary>Evidence: 2 findings <small>1 cause, 1 refutation</small>' in text
    )
    assert re.findall(r'<span class="role">(\w+)</span>', text) == ["cause", "refutation"]
    assert "<small>2026-11-18</small> 11:08:00.000" in text
    assert "<small>orders/0_0</small>" in text


def test_the_worst_come_first_and_what_is_over_last():
    """Open before resolved, critical before warning before remarks; the last two kinds are folded."""
    rows = [
        finding(id="a", application_id="a", severity="info"),
        finding(id="b", application_id="b", status="resolved"),
        finding(id="c", application_id="c", severity="warning"),
        finding(id="d", application_id="d"),
    ]
    text = section(render(page(findings=rows)), "incidents")
    assert re.findall(r"<summary>(\w+) &middot; 1</summary>|<bdi>shop</bdi>/<bdi>(\w)</bdi>", text) == [
        ("", "d"), ("", "c"), ("Remarks", ""), ("", "a"), ("Resolved", ""), ("", "b"),
    ]  # fmt: skip
    assert "What was to be done" in text


def test_only_remarks_are_no_open_incident():
    """What was read is said although there are remarks below."""
    text = section(render(page(findings=[finding(severity=Severity.INFO)])), "incidents")
    assert "No open incident" in text
    assert "Remarks &middot; 1" in text


def test_ids_of_agents_lead_to_the_fleets_incident():
    """An alert of an agent has the agent's id: it is an address in the card that took it in, once."""
    (incident,) = page().incidents
    other = replace(incident, id="i-other", namespace="away", absorbed=("i-local1", "i-local2"))
    text = render(page(incidents=[replace(incident, absorbed=("i-local1", incident.id)), other]))
    whole(text)
    assert text.count('id="i-local1"') == 1
    assert 'id="i-local2"' in text
    assert "agents&#x27; 1 incident in it: <code>i-local1</code>" in text
    assert "agents&#x27; 2 incidents in it: <code>i-local1</code>, <code>i-local2</code>" in text


def test_equal_ids_of_two_namespaces_have_two_addresses():
    """No second card has the address of the first."""
    (incident,) = page().incidents
    text = render(page(incidents=[incident, replace(incident, namespace="away")]))
    whole(text)
    assert text.count("<article") == 2


def test_the_list_of_what_to_do_is_in_order_and_has_addresses():
    """Worst first; equal instructions about one application are one step; resolved ones ask for nothing."""
    rows = [
        finding(id="w", application_id="a", severity="warning", next_action="later"),
        *(finding(id=f"f{n}", task_id=f"0_{n}", detector=f"rule-{n}") for n in range(9)),
        finding(id="old", application_id="b", status="resolved", next_action="forget it"),
        finding(id="note", application_id="c", severity="info", next_action="a remark"),
    ]
    text = render(page(findings=rows))
    whole(text)
    todo = section(text, "todo")
    assert todo.count("<li>") == 2
    assert todo.index("restart pod-a") < todo.index("later")
    assert "and 3 more:" in todo
    assert todo.count('href="#i-') == incidents.LINKS + 1
    assert "forget it" not in todo
    assert "a remark" not in todo


def test_more_steps_than_a_list_can_have_are_counted():
    """By severity, with where they are."""
    rows = [finding(id=f"f{n}", application_id=f"app-{n}") for n in range(incidents.INSTRUCTIONS + 3)]
    rows.append(finding(id="w", application_id="z", severity="warning"))
    assert "and what 3 critical, 1 warning incidents below ask for" in section(
        render(page(findings=rows)), "todo"
    )


def test_a_single_incident_needs_no_list():
    """Its card is right below."""
    assert 'id="todo"' not in render(page())


def test_what_would_decide_more_is_asked_for():
    """Settings that are missing are named as the command takes them."""
    text = card(render(page(findings=[finding(missing_facts=["kafka_streams_version"])])))
    assert "Settings that would decide more: <code>kafka_streams_version</code>" in text


def test_what_an_agent_says_alone_is_an_incident_too():
    """It says who reported it; two pods' agents may use one id."""
    alone = finding(reported_by="agent", detector="false-clean-store", confirms=[])
    text = render(page(findings=[alone, alone | {"pod": "pod-b", "application_id": "bills"}]))
    whole(text)
    assert "reported by the pod&#x27;s agent only" in text
    assert "<code>statewarden explain false-clean-store</code>" in text


def test_an_id_from_an_event_is_never_the_address_of_something_else():
    """A section, the filter or the age would be found under it."""
    (one,) = gather([finding()])
    odd = replace(one, id="restarts", absorbed=("age", "filter", "restarts"))
    found = whole(render(page(incidents=[odd])))
    assert found.ids.count("restarts") == found.ids.count("filter") == 1


def test_commands_in_a_step_are_code() -> None:
    """Between backticks; whatever else is there stays text."""
    assert (
        coded("run `a <b>`, then `c` & stop")
        == "run <code>a &lt;b&gt;</code>, then <code>c</code> &amp; stop"
    )
    assert coded("one ` alone") == "one ` alone"
