"""The page as a whole: self-contained, safe, complete."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rollup.report.page import render, sections, text
from tests.spark_rollup.report.page.page_rows import START_US, finding, lane, page

HOSTILE = '"><script>alert(1)</script>\u202e\x1b[31m\udcff&amp;'


class Balance(HTMLParser):
    """Checks that every element is closed, and collects what could reach outside."""

    VOID = frozenset({"meta", "br", "hr", "img", "input", "link"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in {"href", "src", "action"}]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def only_match(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found is not None, pattern
    return found.group()


def test_the_page_is_well_formed_and_self_contained():
    """Every element is closed, ids are unique, and nothing points outside the page."""
    found = Balance(render(page()))
    assert found.open == []
    assert all(link.startswith("#") for link in found.links)
    assert {link[1:] for link in found.links} <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))
    assert not {"script", "img", "link", "iframe", "object"} & set(found.tags)


@pytest.mark.parametrize(
    "field",
    ["task_id", "pod", "application_id", "store", "summary", "next_action", "id", "detector"],
)
def test_hostile_names_stay_text(field):
    """Markup, escape sequences, direction overrides and broken characters in any name are shown, not obeyed."""
    row = finding(**{field: HOSTILE}, pods=[HOSTILE], upstream=[HOSTILE], missing_facts=[HOSTILE])
    lanes = [lane("holder", 1, 2, detail=HOSTILE), lane("checkpoint", 3, detail=HOSTILE)]
    if field in lanes[0]:
        lanes = [row_ | {field: HOSTILE} for row_ in lanes]
    text = render(page(findings=[row], timelines=lanes, quarantine={HOSTILE: 1}))
    text.encode("utf-8")
    assert "<script" not in text
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert Balance(text).open == []


def test_the_headline_names_what_is_wrong():
    """The first line counts the tasks that cannot be trusted and names the pod."""
    assert "1 task with state that cannot be trusted on <bdi>pod-a</bdi>" in render(page())
    assert "2 things to check, 1 of them critical" in render(
        page(findings=[finding(task_id=None), finding(id="b", severity="warning")])
    )


def test_an_all_clear_says_what_it_is_about():
    """Nothing wrong means nothing wrong in what was seen: how much that is stands beside it."""
    (pod,), (seen,) = page().pods, page().coverage
    whole = [{**seen, "unknown_seconds": 0.0}]
    assert "<h1>Nothing wrong found in what was watched</h1>" in render(page(findings=[], coverage=whole))
    partly = render(page(findings=[], pods=[{**pod, "agent_state": "silent"}], quarantine={"not-json": 2}))
    assert (
        "<h1>Nothing wrong found in what was watched (1 pod silent, 95.0\u202f% of pod time watched, "
        "2 lines or files not used)</h1>"
    ) in partly
    assert "<h1>Nothing wrong found: no pod was watched</h1>" in render(
        page(findings=[], pods=[], coverage=[])
    )
    warned = render(page(findings=[finding(severity="warning")], coverage=whole))
    assert "<h1>No damage found in what was watched; 1 thing to check</h1>" in warned


def test_disabled_detectors_qualify_the_all_clear_and_have_a_table():
    """The first line counts detectors, not pods; the table says why, and on which pods."""
    (seen,) = page().coverage
    row = {
        "namespace": "shop",
        "application_id": "orders",
        "pod": "pod-a",
        "detector": "torn-store",
        "reason": "<old>",
    }
    rows = [row, row | {"pod": "pod-b"}]
    text = render(page(findings=[], coverage=[{**seen, "unknown_seconds": 0.0}], disabled=rows))
    assert "<h1>Nothing wrong found in what was watched (1 detector disabled)</h1>" in text
    assert (
        '<tr><td class="k">torn-store</td><td>&lt;old&gt;</td><td><bdi>pod-a</bdi>, <bdi>pod-b</bdi></td></tr>'
    ) in text
    assert "Disabled detectors" not in render(page())


def test_what_an_agent_says_alone_counts_everywhere():
    """Headline, tile, first step, pod table and drawing count it, and say who told it; its address is its own."""
    alone = finding(reported_by="agent", detector="false-clean-store", confirms=[])
    text = render(page(findings=[alone, alone | {"pod": "pod-b"}]))
    assert "1 task with state that cannot be trusted on <bdi>pod-a</bdi>, <bdi>pod-b</bdi>" in text
    assert '<div class="tile critical"><b>2</b><span>critical, open</span></div>' in text
    assert '<span class="who"><bdi>0_0</bdi> / <bdi>s</bdi> on <bdi>pod-a</bdi>:</span> restart pod-a' in text
    assert "1 critical</span>" in only_match(r'id="pods".*', text)
    assert only_match(r"<figure.*?</figure>", text)
    assert "reported by the pod&#x27;s agent; no rule" in text.replace("pod's", "pod&#x27;s")
    assert "&middot; reported by agents" in text
    found = Balance(text)
    assert len(found.ids) == len(set(found.ids))
    assert {link[1:] for link in found.links} <= set(found.ids)


def test_namespaces_are_named_where_there_are_several():
    """A group, and a step that removes something, carry the whole address."""
    rows = [finding(), finding(id="f2", namespace="staging")]
    text = render(page(findings=rows))
    assert "<bdi>shop</bdi> &middot; <bdi>orders</bdi>" in text
    steps = only_match(r"Do this first.*?</section>", text)
    assert "<bdi>shop</bdi>/<bdi>orders</bdi>:" in steps
    assert "<bdi>staging</bdi>/<bdi>orders</bdi>:" in steps
    assert "<bdi>shop</bdi> &middot;" not in render(page())
    assert "on <bdi>shop/pod-a</bdi>, <bdi>staging/pod-a</bdi></h1>" in text
    assert "<h3><bdi>shop/orders</bdi></h3>" in text
    (pod,) = page().pods
    two = render(page(pods=[pod, {**pod, "pod": "pod-z", "applications": ["bills"]}]))
    assert '<span class="who"><bdi>shop</bdi>/<bdi>orders</bdi>:</span> restart pod-a' in two


def test_very_many_findings_are_cut_off():
    """The worst are on the page, the rest is counted; no link is dead."""
    rows = [finding(id=f"f{n}", task_id=f"0_{n}") for n in range(sections.MAX_FINDINGS + 7)]
    rows.append(finding(id="last", detector="stale-eos-state", next_action="B"))
    text = render(
        page(findings=rows, timelines=[lane("holder", 1, 9, task_id=f"0_{sections.MAX_FINDINGS + 1}")])
    )
    assert text.count('<details class="finding"') == sections.MAX_FINDINGS
    assert "8 findings more, none worse, in the table" in text
    assert f"{len(rows)}</b><span>critical, open" in text
    found = Balance(text)
    assert {link[1:] for link in found.links} <= set(found.ids)


def test_the_first_thing_to_do_is_said_once():
    """Findings of one rule and pod share one step; resolved ones ask for nothing."""
    rows = [finding(id=f"f{n}", task_id=f"0_{n}") for n in range(3)]
    text = render(page(findings=[*rows, finding(id="old", status="resolved", next_action="forget it")]))
    steps = only_match(r"Do this first.*?</section>", text)
    assert steps.count("<li>") == 1
    assert "The same for <bdi>0_1</bdi>, <bdi>0_2</bdi>" in steps
    assert "forget it" not in steps


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
    text = render(page())
    assert "11:20:00" not in only_match(r"<figure.*?</figure>", text)


def test_evidence_is_in_two_clicks():
    """The first critical finding is unfolded; its step, and the drawing of its task, link into it, and it back."""
    text = render(page())
    assert '<details class="finding" open>' in text
    assert '<div class="body" id="f-f1">' in text
    figure = only_match(r"<figure.*?</figure>", text)
    assert 'href="#f-f1"' in only_match(r"Do this first.*?</section>", text)
    assert 'href="#f-f1"' in figure
    assert f'href="#{only_match(r"t-[0-9a-f]{16}", figure)}"' in text


def test_a_task_without_a_drawing_is_not_linked_to():
    """A finding about a task of which nothing can be drawn has no dead link."""
    text = render(page(timelines=[lane("unknown", 72, 78)], findings=[finding(opened_at="no time")]))
    assert "timeline of" not in text
    assert "none is drawn" in text


def test_agents_words_are_marked_when_explained():
    """A local finding that a fleet finding explains says so, others are called local."""
    local = {
        "finding_id": "local-1", "detector": "resurrected-checkpoint", "severity": "critical",
        "confidence": "confirmed", "status": "open", "namespace": "shop", "application_id": "orders",
        "task_id": "0_0", "store": None, "pod": "pod-a",
        "opened_at_us": START_US, "summary": "x",
    }  # fmt: skip
    text = render(page(local=[local, local | {"finding_id": "local-2"}]))
    assert text.count(">confirmed</td>") == 1
    assert text.count(">local only</td>") == 1


def test_the_quarantine_is_mentioned():
    """Lines that were not used are counted at the foot of the page."""
    assert "Not used, see the table <code>quarantine</code>: 3 not-json." in render(
        page(quarantine={"not-json": 3})
    )


def test_many_findings_are_paged():
    """The first page is open to the eye, the rest is folded in pages that say what they hold."""
    text = render(page(findings=[finding(id=f"f{number}", task_id=f"0_{number}") for number in range(60)]))
    assert Balance(text).open == []
    assert re.findall(r"<summary>(findings [^<]+)</summary>", text) == [
        "findings 26 to 50 of 60",
        "findings 51 to 60 of 60",
    ]


def test_releases_are_compared():
    """One line per release: applications, tasks that are hit, open findings; unknown ones last."""
    releases = [
        {"namespace": "shop", "application_id": name, "release": release}
        for name, release in (("orders", "3.9.2"), ("other", "3.10.0"), ("old", "unknown"))
    ]
    text = render(page(releases=releases))
    table = text[text.index('id="releases"') : text.index('id="findings"')]
    assert re.findall(r'<td class="k">([^<]+)</td>', table) == ["3.9.2", "3.10.0", "unknown"]
    line = only_match(r'<td class="k">3.9.2</td>.*?</tr>', table)
    assert re.findall(r'<td class="n"[^>]*>([^<]*)</td>', line) == ["1", "1", "1", "", ""]


def test_the_trend_shows_when_findings_began():
    """One bar at the time of the opening, all releases on one scale; nothing found is said in words."""
    releases = [
        {"namespace": "shop", "application_id": name, "release": release}
        for name, release in (("orders", "3.9.2"), ("other", "3.10.0"))
    ]
    early = finding(id="f2", opened_at="2026-11-18T11:06:45.000000Z", status="resolved")
    table = only_match(
        r'id="releases".*?id="findings"', render(page(releases=releases, findings=[finding(), early]))
    )
    bars = re.findall(r'<svg class="bars".*?</svg>', table)
    assert 'aria-label="began: 2 critical"' in bars[0]
    assert bars[0].count("<title>") == 2
    assert "<title>from 11:06:40: 1 critical</title>" in bars[0]
    assert 'aria-label="began: nothing"' in bars[1]


def test_long_tables_are_paged_and_begin_with_what_needs_a_check():
    """Of many pods the silent and the suspicious come first, and the rest is folded."""
    (pod,) = page().pods
    pods = [{**pod, "pod": f"pod-{number:03d}"} for number in range(120)]
    pods[110] = {**pods[110], "agent_state": "silent"}
    text = render(page(pods=pods, findings=[finding(pod="pod-115", pods=["pod-115"])], timelines=[]))
    assert Balance(text).open == []
    listing = only_match(r'id="pods".*', text)
    assert re.findall(r"pod-\d{3}", listing)[:3] == ["pod-110", "pod-115", "pod-000"]
    assert re.findall(r"<summary>(pods [^<]+)</summary>", listing) == [
        "pods 51 to 100 of 120",
        "pods 101 to 120 of 120",
    ]


def test_many_tasks_are_drawn_in_pages():
    """The drawings of an application are paged, too, and a link to a folded one has its target."""
    findings = [finding(id=f"f{n}", task_id=f"0_{n}") for n in range(30)]
    timelines = [lane("holder", 10, 60, task_id=f"0_{n}") for n in range(30)]
    text = render(page(findings=findings, timelines=timelines))
    found = Balance(text)
    assert "<summary>tasks 26 to 30 of 30</summary>" in text
    assert {link[1:] for link in found.links} <= set(found.ids)
    assert sum(x.startswith("t-") for x in found.ids) == 30


def test_what_to_do_names_every_task_once():
    """Two findings of one task are one task."""
    rows = [finding(id="a", store="s"), finding(id="b", store="t"), finding(id="c", task_id="0_1")]
    steps = only_match(r"Do this first.*?</section>", render(page(findings=rows)))
    assert "The same for <bdi>0_1</bdi>." in steps


def test_many_groups_are_one_line_each():
    """Behind a hundred findings every further group is one line that opens, so that the page stays short."""
    rows = [
        finding(id=f"f{app}-{n}", application_id=f"app-{app}", task_id=f"0_{n}")
        for app in range(8)
        for n in range(25)
    ]
    text = render(page(findings=rows, timelines=[]))
    assert Balance(text).open == []
    assert text.count('<p class="group">') == 4
    assert text.count('<details class="page group"><summary><code>resurrected-checkpoint</code>') == 4


def test_what_to_do_first_has_something_of_every_rule():
    """Two hundred findings of one rule do not crowd out the others."""
    many = [
        finding(id=f"f{n}", pod=f"pod-{n}", detector="diverged-replica", next_action="A") for n in range(20)
    ]
    text = render(page(findings=[*many, finding(id="other", detector="stale-eos-state", next_action="B")]))
    steps = re.findall(r"<li>(.) <a", only_match(r"Do this first.*?</section>", text))
    assert steps == ["A", "B", *"A" * 10]


def test_drawings_of_many_applications_are_folded():
    """Behind the first page of drawings every further application is one line."""
    findings = [finding(id=f"f{n}", application_id=f"app-{n}") for n in range(40)]
    text = render(
        page(
            findings=findings, timelines=[lane("holder", 1, 9, application_id=f"app-{n}") for n in range(40)]
        )
    )
    assert text.count("<h3>") == 25
    assert text.count("&middot; 1 task</summary>") == 15
    assert Balance(text).open == []


@given(at_us=st.integers(-(2**63), 2**63 - 1))
def test_any_time_can_be_written(at_us):
    """A wild clock must not end a page."""
    assert len(text.clock(at_us)) == len("12:00:00")
    assert len(text.day(at_us)) == len("2026-11-18")


def test_a_severity_of_a_newer_version_is_listed_with_warnings():
    """Not before what is critical, not behind notes, and no page ends over it."""
    rows = [
        {"finding_id": level, "severity": level, "detector": "d", "task_id": "0_0", "application_id": "a", "pod": "p",
         "store": None, "namespace": "n", "status": "open", "summary": f"said-{level}", "confidence": "confirmed",
         "opened_at_us": START_US}
        for level in ("info", "error", "critical")
    ]  # fmt: skip
    said = render(page(local=rows))
    assert said.index("said-critical") < said.index("said-error") < said.index("said-info")
