"""However much is found: the page stays small, and what it leaves out is counted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest

from agent.contract.audited import FleetIncident, read
from spark_rollup.report.page import PageData, incidents, render
from spark_rollup.report.page.text import fitting, paged
from tests.spark_rollup.report.page.page_check import only_match, section, words
from tests.spark_rollup.report.page.page_rows import answer, finding, lane, page

LIMIT_BYTES = 15 << 20
MANY = (6_000, pytest.param(100_000, marks=pytest.mark.heavy))
"""Each is far beyond every limit of the page; what is left out only makes a number larger."""
SEVERITIES = ("critical", "warning", "info")


def made(number: int) -> list[Mapping[str, object]]:
    """Make so many findings."""
    evidence = [
        {"at": "2026-11-18T11:08:00.000000Z", "what": f"step {n} " + "x" * 80, "where": "y" * 60}
        for n in range(6)
    ]
    return [
        finding(
            id=f"{n:08x}", task_id=f"0_{n % 400}", pod=f"pod-{n % 5000}", application_id=f"app-{n % 40}",
            severity=SEVERITIES[n % 3], summary="s" * 300, next_action="n" * 300, evidence=evidence,
        )
        for n in range(number)
    ]  # fmt: skip


def spaced(number: int) -> str:
    """Write a number as the page does."""
    return f"{number:,}".replace(",", " ")


def many(rows: Sequence[Mapping[str, object]], groups: int) -> PageData:
    """Make a fleet of 5,000 pods with findings in so many incidents."""
    (template,) = page().incidents
    ((role, _),) = template.findings
    made: list[FleetIncident] = []
    for group in range(groups):
        own = rows[group::groups]
        made.append(
            replace(
                template, id=f"i-{group:012x}", sentence="s" * 300,
                tasks=tuple(sorted({str(row["task_id"]) for row in own})),
                lead=replace(read(own[0]), application_id=f"app-{group % 40}"),
                pods=tuple(sorted({str(row["pod"]) for row in own})), findings=tuple((role, read(row)) for row in own),
                absorbed=tuple(f"i-a{group:05x}{n:05x}" for n in range(min(len(own), 30))), next_action="n" * 300,
            )
        )  # fmt: skip
    (pod,), (seen,) = page().pods, page().coverage
    pods = [{**pod, "pod": f"pod-{n}", "agent_state": ("watching", "silent")[n % 2]} for n in range(5000)]
    lanes = [
        lane(
            kind, at, at + 5, f"pod-{n}", task_id=f"0_{n}", application_id=f"app-{n % 40}", offset=at, puts=at
        )
        for n in range(200)
        for at in range(0, 800, 8)
        for kind in ("holder", "size", "checkpoint", "deleted")
    ]
    return page(
        findings=rows, incidents=made, pods=pods, timelines=lanes,
        coverage=[{**seen, "pod": f"pod-{n}"} for n in range(5000)],
        restarts=[answer(pod=f"pod-{n % 5000}", task_id=f"0_{n % 400}") for n in range(20_000)],
    )  # fmt: skip


@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", MANY)
@pytest.mark.parametrize("groups", [None, 50], ids=["each", "50"])
def test_very_many_findings_fit(number, groups):
    """Below 15 MiB, whether each is an incident or all are a few; nothing is left out without its number."""
    rows, groups = made(number), groups or number
    data = many(rows, groups)
    text = render(data)
    assert len(text.encode()) < LIMIT_BYTES
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in re.findall(r' href="([^"]+)"', text)} <= set(ids)
    cards = text.count("<article")
    assert cards == min(groups, incidents.INCIDENTS)
    if groups > cards:
        rest = words(only_match(r'<p class="lead rest">.*?</p>', section(text, "incidents")))
        critical, warning, info = (len(rows[first::3]) for first in range(3))
        assert rest == (
            f"Not on this page: {spaced(number - cards)} incidents more ({critical - cards} critical, "
            f"{warning} warning, {spaced(info)} remarks), none worse. All are in incidents.jsonl, their findings in "
            "findings.jsonl."
        )
    for name in ("restarts", "pods", "timelines"):
        part = section(text, name)
        if 'class="lead rest"' in part:
            assert re.search(rf"Not on this page: [\d\u202f]+ \w+ more.*{name}", part), name
    assert 'class="lead rest"' in section(text, "restarts")


def test_every_finding_of_an_incident_is_shown_or_counted():
    """The rest is counted by severity, with where it is."""
    rows = [
        finding(id=f"f{n}", task_id=f"0_{n}", severity="critical" if n % 2 else "warning")
        for n in range(incidents.FINDINGS_OF_ONE + 10)
    ]
    (incident,) = page(findings=rows[:1]).incidents
    ((role, _),) = incident.findings
    text = render(
        page(findings=rows, incidents=[replace(incident, findings=tuple((role, read(row)) for row in rows))])
    )
    assert text.count('<details class="finding"') == incidents.FINDINGS_OF_ONE
    assert "Further findings, not on this page: 5 critical, 5 warning; all in findings.jsonl" in words(text)


def test_long_addresses_have_all_names_behind_a_fold():
    """The line names the first; the others are one click away, and beyond that counted."""
    (incident,) = page().incidents
    tasks = tuple(f"0_{n}" for n in range(700))
    text = render(page(incidents=[replace(incident, tasks=tasks)]))
    assert "<bdi>0_11</bdi> and 688 more" in text
    assert "<bdi>0_199</bdi> and 500 more, in <code>incidents.jsonl</code>" in text


@pytest.mark.timeout(180)
@pytest.mark.parametrize("number", MANY)
def test_an_incident_of_very_many_pods_hides_no_other(number):
    """Its card names some of its pods and counts the others, and all other incidents keep their cards."""
    (template,), (pod,) = page().incidents, page().pods
    names = tuple(f"orders-{n:06d}" for n in range(number))
    huge = replace(template, id="i-huge", pods=names, absorbed=tuple(f"i-{name}" for name in names))
    others = [replace(template, id=f"i-other-{n}") for n in range(20)]
    known = [{**pod, "pod": name} for name in names]
    text = render(page(incidents=[huge, *others], pods=known))
    assert len(text.encode()) < LIMIT_BYTES
    assert re.findall(r'<article class="card incident [^>]*id="([^"]+)"', text) == [
        "i-huge", *(one.id for one in others),
    ]  # fmt: skip
    (card,) = re.findall(r'<article class="card incident [^>]*id="i-huge".*?</article>', text, re.DOTALL)
    assert len(card.encode()) < 100_000
    assert card.count(f"and {number - 12} more") == 2  # pods, and incidents of agents
    assert f"and {number - 200} more, in <code>incidents.jsonl</code>" in card
    # the filter for a pod that is not named must not hide it
    assert [" data-more " in x for x in re.findall(r"<article [^>]*>", text)] == [True] + [False] * 20


def test_no_block_is_made_beyond_the_limit():
    """Blocks are taken from the front while they fit; what is behind is not even made."""
    made = []

    def blocks() -> Iterator[str]:
        for n in range(100):
            made.append(n)
            yield "ab\u202f"

    assert len(fitting(blocks(), 26)) == 5
    assert made == [0, 1, 2, 3, 4, 5]


def test_pages_hold_everything():
    """The first page is open, the others are folded and say what they hold."""
    shown = paged([f"{n}," for n in range(60)], "things", around="({})")
    assert shown.startswith(f"({''.join(f'{n},' for n in range(25))})<details")
    assert shown.endswith("58,59,)</details>")
    assert re.findall("<summary>(.*?)</summary>", shown) == ["things 26 to 50 of 60", "things 51 to 60 of 60"]
