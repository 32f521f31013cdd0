"""The report in a real browser: it fits phone and paper, obeys the keyboard, loads nothing, copes with thousands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from spark_rollup.report.page import PageData, render
from spark_rollup.report.since_last import Change, Last, SinceLast
from tests.spark_rollup.report.page.page_rows import START_US, answer, finding, lane, page
from tests.support.axe import violations
from tests.support.chromium import Browser

pytestmark = [pytest.mark.packages, pytest.mark.e2e]
TAB, ENTER = ("Tab", 9), ("Enter", 13)
MANY = 1000
NO_TABLE_IS_CUT = (
    "[...document.querySelectorAll('table')].every(x => x.scrollWidth <= x.parentElement.clientWidth)"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give one browser to all tests of the module."""
    with Browser() as running:
        yield running


def usual() -> PageData:
    """Make a page with a bit of everything."""
    rows = [
        finding(),
        finding(id="f2", task_id="0_1", severity="warning", missing_facts=["kafka_streams_version"], pod="pod-b",
                detector="missing-standby", application_id="bills"),
        finding(id="f3", severity="info", detector="task-churn"),
        finding(id="f4", status="resolved", detector="split-owner"),
    ]  # fmt: skip
    (pod,) = page().pods
    over = {
        "id": "i-old", "namespace": "shop", "application_id": "orders", "detector": "torn-store",
        "tasks": ["0_7"], "pods": ["a-pod-with-a-name-of-no-common-length-0123456789"],
    }  # fmt: skip
    return page(
        findings=rows,
        quarantine={"not-json": 3},
        releases=[{"namespace": "shop", "application_id": "orders", "not_given": ["processing_guarantee"]}],
        restarts=[
            answer(answer="damaged", kinds=["damaged"], follow=["resurrected-checkpoint"]),
            answer(pod="pod-b"),
        ],
        pods=[pod, {**pod, "pod": "pod-b", "agent_state": "silent", "applications": ["bills"]}],
        written_us=START_US + 1_020_000_000,
        took_s=41.0,
        since_last=SinceLast(
            Last(START_US, "1"), {("shop", "i-f1"): Change.NEW}, [over], [over | {"why": "silent"}]
        ),
    )


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """Write it to a file, as the rollup does."""
    return written(usual(), tmp_path)


def written(data: PageData, folder: Path) -> Path:
    """Render and write a page."""
    target = folder / "report.html"
    target.write_text(render(data), encoding="utf-8")
    return target


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (1024, True), (390, False), (390, True)])
def test_it_fits_and_is_legible(browser: Browser, report: Path, width: int, dark: bool) -> None:
    """At no width does anything stick out sideways, and text stands off its background in light and dark."""
    browser.open(report.as_uri(), width, 800, dark=dark)
    assert browser.ask("document.documentElement.scrollWidth") <= width
    assert browser.ask("document.querySelector('h1').innerText").startswith(
        "1 critical and 1 warning incidents in bills, orders"
    )
    assert browser.ask("getComputedStyle(document.body).backgroundColor") == (
        "rgb(20, 23, 27)" if dark else "rgb(247, 246, 243)"
    )
    assert browser.lowest_contrast() >= 4.5
    assert browser.ask(NO_TABLE_IS_CUT)


@pytest.mark.parametrize("width", [1400, 1024, 800, 390])
def test_long_names_fit(browser: Browser, tmp_path: Path, width: int) -> None:
    """Names as operators generate them push no column off the page, and no link lands below the filter."""
    long = "kafka-streams-order-enrichment-production-eu-central-1"
    (pod,) = page().pods
    row = {
        "application_id": long,
        "pod": f"{long}-17",
        "store": f"{long}-store",
        "detector": "resurrected-checkpoint",
    }
    pods = [
        {**pod, "pod": f"{long}-{n}", "node": "ip-10-0-113-24.internal", "applications": [long]}
        for n in range(9)
    ]
    data = page(findings=[finding(**row, pods=[row["pod"]])], pods=pods, restarts=[answer(pod=row["pod"])],
                timelines=[lane("holder", 10, 60, pod=row["pod"], application_id=long)])  # fmt: skip
    browser.open(written(data, tmp_path).as_uri(), width, 800)
    assert browser.ask("document.documentElement.scrollWidth") <= width
    assert browser.ask(NO_TABLE_IS_CUT)
    follow(browser, "#pods")
    below = "document.querySelector('#pods').getBoundingClientRect().top"
    bar = "Math.max(0, document.getElementById('filter').getBoundingClientRect().bottom)"
    assert browser.ask(f"{below} >= {bar}")


def test_it_loads_nothing_else(browser: Browser, report: Path) -> None:
    """One request, the page itself."""
    browser.open(report.as_uri())
    assert browser.requests == [report.as_uri()]


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (1400, True), (800, False), (400, True)])
def test_a_screen_reader_finds_its_way(browser: Browser, report: Path, width: int, dark: bool) -> None:
    """axe-core has nothing to object to, with everything folded and with everything open."""
    browser.open(report.as_uri(), width, 900, dark=dark)
    assert violations(browser) == []
    browser.ask("document.querySelectorAll('details').forEach(x => { x.open = true })")
    assert violations(browser) == []


def test_an_empty_page_is_accessible(browser: Browser, tmp_path: Path) -> None:
    """Nothing found, nothing read: axe-core has nothing to object to either."""
    empty = page(findings=[], coverage=[], pods=[], timelines=[])
    browser.open(written(empty, tmp_path).as_uri())
    assert violations(browser) == []


def test_everything_is_reached_by_keyboard(browser: Browser, report: Path) -> None:
    """Tab goes from the skip link to the first incident, through all between; Enter opens its evidence."""
    browser.open(report.as_uri())
    reached: list[str] = []
    for _ in range(40):
        browser.press(*TAB)
        reached.append(str(browser.ask("document.activeElement.innerText")).split("\n")[0])
        if reached[-1].startswith("Evidence"):
            break
    sections = ["Incidents", "May I restart?", "Timelines", "Agents"]
    assert reached[:7] == ["Skip to the incidents", "shop/orders 0_0 on pod-a", "What is gone", *sections]
    assert "Clear" in reached
    assert browser.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert not browser.ask("document.activeElement.parentElement.open")
    browser.press(*ENTER)
    assert browser.ask("document.activeElement.parentElement.open")


def fleet(number: int) -> PageData:
    """Make so many incidents, each of another task and application."""
    rows = [
        finding(id=f"{n:012x}", application_id=f"app-{n // 100}", task_id=f"0_{n % 100}", pod=f"pod-{n % 250}",
                severity="warning" if n % 2 else "critical", summary=f"summary number {n}")
        for n in range(number)
    ]  # fmt: skip
    last = rows[-1]
    timelines = [lane("holder", 10, 60, application_id=last["application_id"], task_id=last["task_id"])]
    return page(findings=rows, timelines=timelines)


def settle(browser: Browser) -> None:
    """Wait until two frames are drawn."""
    browser.ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def follow(browser: Browser, link: str) -> None:
    """Follow a link in the page, and wait until what it brings into view is drawn."""
    browser.ask(f"""new Promise(done => {{
        let frames = 5;
        const drawn = () => frames-- ? requestAnimationFrame(drawn) : done();
        addEventListener('hashchange', drawn, {{ once: true }});
        location.hash = '{link}';
    }})""")


def test_a_link_to_an_incident_opens_it(browser: Browser, tmp_path: Path) -> None:
    """Deep in folded pages: it is shown with its evidence, at the top, marked, and the page stays short."""
    report = written(fleet(MANY), tmp_path)
    browser.open(report.as_uri(), 1024, 800)
    assert browser.ask("document.documentElement.scrollHeight") < 20_000
    assert browser.ask("document.querySelectorAll('article').length") == MANY
    last = f"i-{MANY - 1:012x}"
    card = f"document.getElementById('{last}')"
    assert not browser.ask(f"{card}.checkVisibility()")
    follow(browser, f"#{last}")
    assert browser.ask(f"{card}.querySelector('.chain').checkVisibility()")
    assert browser.ask(f"document.activeElement === {card}")
    assert 0 <= browser.ask(f"{card}.getBoundingClientRect().top") < 400
    assert browser.ask(f"getComputedStyle({card}).outlineStyle") == "solid"


def test_a_link_to_an_incident_that_is_not_here_says_where_it_is(browser: Browser, report: Path) -> None:
    """Whatever follows the number sign is text."""
    browser.open(report.as_uri())
    follow(browser, "#i-%3Cb%3Ex")
    said = browser.ask("document.getElementById('found').textContent")
    assert said == "i-<b>x is not on this page: all incidents are in incidents.jsonl"


def test_the_id_of_an_agents_incident_leads_to_the_fleets(browser: Browser, tmp_path: Path) -> None:
    """An alert of an agent names the agent's incident: its address opens the card that took it in."""
    data = page()
    (incident,) = data.incidents
    report = written(replace(data, incidents=[replace(incident, absorbed=("i-ofagent",))]), tmp_path)
    browser.open(f"{report.as_uri()}#i-ofagent")
    settle(browser)
    card = f"document.getElementById('{incident.id}')"
    assert browser.ask(f"{card}.querySelector('details').open")
    assert browser.ask(f"getComputedStyle({card}).outlineStyle") == "solid"


def ask_for(browser: Browser, **values: str) -> str:
    """Fill in the filter and give what it says."""
    for name, value in values.items():
        browser.ask(f"document.getElementById('filter').elements['{name}'].value = {json.dumps(value)}")
    browser.ask("document.getElementById('filter').dispatchEvent(new Event('input'))")
    return str(
        browser.ask(
            "new Promise(done => setTimeout(() => done(document.getElementById('found').textContent), 400))"
        )
    )


def visible(browser: Browser, kind: str) -> list[str]:
    """List the applications of blocks of a kind that are shown."""
    return list(
        browser.ask(f"[...document.querySelectorAll('{kind}')].filter(x => !x.hidden).map(x => x.dataset.a)")
    )


def test_the_filter_narrows_the_whole_page(browser: Browser, report: Path) -> None:
    """Application, pod, severity and words, one after the other; the address keeps it; Clear brings all back."""
    browser.open(report.as_uri())
    assert ask_for(browser, a="bills") == "1 of 4 incidents on this page match"
    for kind in (".incident", ".restart", "figure"):
        assert all("bills" in applications.split("\n") for applications in visible(browser, kind)), kind
    assert browser.ask("location.hash") == "#?a=bills"
    assert ask_for(browser, a="", p="POD-A") == "3 of 4 incidents on this page match"
    assert ask_for(browser, p="", s="warning") == "1 of 4 incidents on this page match"
    assert (
        ask_for(browser, s="", t="KAFKA-8187 kafka_streams_version") == "1 of 4 incidents on this page match"
    )
    assert ask_for(browser, t="no such word") == "0 of 4 incidents on this page match"
    browser.ask("document.querySelector('#filter button').click()")
    settle(browser)
    browser.ask("new Promise(done => setTimeout(done, 50))")
    assert len(visible(browser, ".incident")) == 4
    assert browser.ask("location.hash") == ""


def test_a_filter_can_be_passed_on_and_a_link_inside_wins_over_it(browser: Browser, report: Path) -> None:
    """The address brings the filter back; a link to what it hides clears it."""
    browser.open(f"{report.as_uri()}#?a=bills")
    settle(browser)
    assert visible(browser, ".incident") == ["bills"]
    follow(browser, browser.ask("document.querySelector('.incident.critical').id"))
    assert browser.ask("document.querySelector('.incident.critical').checkVisibility()")


def test_the_filter_unfolds_pages_with_matches_and_folds_the_others(browser: Browser, tmp_path: Path) -> None:
    """Of thousands one is asked for: its page opens, and says how many are inside."""
    browser.open(written(fleet(MANY), tmp_path).as_uri(), 1024, 800)
    assert ask_for(browser, t=f"number {MANY - 2}") == f"1 of {MANY} incidents on this page match"
    card = f"document.getElementById('i-{MANY - 2:012x}')"
    assert browser.ask(f"{card}.checkVisibility()")
    assert browser.ask(f"{card}.closest('details.page').firstElementChild.dataset.hits") == ": 1 match"
    assert browser.ask("document.documentElement.scrollHeight") < 6_000


def test_the_filter_hides_no_incident_from_a_pod_that_it_only_counts(
    browser: Browser, tmp_path: Path
) -> None:
    """Of very many pods a card names some: it may be about the one that is asked for."""
    data = fleet(2)
    huge, other = data.incidents
    pods = tuple(f"many-{n}" for n in range(600))
    report = written(replace(data, incidents=[replace(huge, pods=pods), other]), tmp_path)
    browser.open(report.as_uri(), 1024, 800)
    assert ask_for(browser, p="many-599") == "1 of 2 incidents on this page match"
    assert visible(browser, ".incident") == [huge.application_id]


def test_an_old_page_says_so(browser: Browser, report: Path, tmp_path: Path) -> None:
    """A page that was left open gets older; a fresh one says nothing."""
    browser.open(report.as_uri())
    now_ms = int(browser.ask("Date.now()"))
    assert "old" in browser.ask("document.getElementById('age').textContent")
    browser.open(written(replace(usual(), written_us=now_ms * 1000), tmp_path).as_uri())
    assert browser.ask("document.getElementById('age').textContent") == ""


def test_without_scripts_it_is_the_plain_page(browser: Browser, report: Path) -> None:
    """No filter, everything else: a link still unfolds what it leads to."""
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(f"{report.as_uri()}#i-f3")
        assert not browser.ask("document.getElementById('filter').checkVisibility()")
        assert browser.ask("document.querySelectorAll('article').length") == 4
        assert browser.ask("document.getElementById('i-f3').checkVisibility()")
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_no_other_script_may_run(browser: Browser, tmp_path: Path) -> None:
    """Even if a name got through unescaped, the browser would not run it."""
    target = tmp_path / "report.html"
    text = render(usual()).replace("</main>", "<script>window.hurt = 1</script><p onclick='x'></p></main>")
    target.write_text(text, encoding="utf-8")
    browser.open(target.as_uri())
    assert browser.ask("window.hurt === undefined")
    assert not browser.ask("document.getElementById('filter').hidden")


def test_paper_has_the_evidence(browser: Browser, report: Path) -> None:
    """On paper every shown finding is unfolded, and nothing is cut off at the right."""
    browser.open(report.as_uri(), 700, 900)
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.ask(
            "[...document.querySelectorAll('.incident.critical:not(.done) ol.chain')].every(x => x.checkVisibility())"
        )
        assert browser.ask("document.documentElement.scrollWidth") <= 700
        assert not browser.ask("document.querySelector('nav, .filter').checkVisibility()")
        assert browser.print_pages().startswith(b"%PDF")
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")
