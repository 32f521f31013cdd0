"""The report in a real browser: it fits phone and paper, obeys the keyboard, loads nothing, copes with thousands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_rollup.report.page import PageData, render
from tests.spark_rollup.report.page.page_rows import finding, lane, page
from tests.support.chromium import Browser

pytestmark = [pytest.mark.packages, pytest.mark.e2e]
TAB, ENTER = ("Tab", 9), ("Enter", 13)
MANY = 5000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give one browser to all tests of the module."""
    with Browser() as running:
        yield running


def usual() -> PageData:
    """Make a page with a bit of everything."""
    local = {
        "finding_id": "local-1", "detector": "resurrected-checkpoint", "severity": "warning", "confidence": "suspected",
        "status": "open", "namespace": "shop", "application_id": "orders", "task_id": "0_0", "store": "s",
        "pod": "pod-a", "opened_at_us": 1, "summary": "Task 0_0: store s looks odd",
    }  # fmt: skip
    rows = [
        finding(),
        finding(id="f2", task_id="0_1", severity="warning", missing_facts=["kafka_streams_version"]),
    ]
    releases = [{"namespace": "shop", "application_id": "orders", "release": "2.2.1"}]
    return page(findings=rows, releases=releases, local=[local], quarantine={"not-json": 3})


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
    assert browser.ask("document.querySelector('h1').innerText").startswith("1 task with state")
    assert browser.ask("getComputedStyle(document.body).backgroundColor") == (
        "rgb(20, 23, 27)" if dark else "rgb(247, 246, 243)"
    )
    assert browser.lowest_contrast() >= 4.5
    tables = (
        "[...document.querySelectorAll('table')].every(x => x.scrollWidth <= x.parentElement.clientWidth)"
    )
    assert browser.ask(tables), "a table is cut off"


def test_it_loads_nothing_else(browser: Browser, report: Path) -> None:
    """One request, the page itself."""
    browser.open(report.as_uri())
    assert browser.requests == [report.as_uri()]


def test_everything_is_reached_by_keyboard(browser: Browser, report: Path) -> None:
    """Tab goes through skip link, sections, first step and findings; Enter opens a finding."""
    browser.open(report.as_uri())
    reached: list[str] = []
    for _ in range(9):
        browser.press(*TAB)
        reached.append(str(browser.ask("document.activeElement.innerText")).split("\n")[0])
    assert reached[:7] == ["Skip to the findings", "By release", "Findings", "Task timelines", "Pods",
                           "What the agents said", "why"]  # fmt: skip
    assert browser.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert browser.ask("document.activeElement.tagName") == "A"  # inside the unfolded finding: its timeline
    browser.press(*TAB)
    assert not browser.ask("document.activeElement.parentElement.open")
    browser.press(*ENTER)
    assert browser.ask("document.activeElement.parentElement.open")


def test_a_link_unfolds_what_it_leads_to(browser: Browser, tmp_path: Path) -> None:
    """From the drawing of the last of thousands of tasks one click opens its evidence, and the page stays short."""
    rows = [
        finding(id=f"f{n}", application_id=f"app-{n // 100}", task_id=f"0_{n % 100}", pod=f"pod-{n % 250}")
        for n in range(MANY)
    ]
    last = rows[-1]
    timelines = [lane("holder", 10, 60, application_id=last["application_id"], task_id=last["task_id"])]
    browser.open(written(page(findings=rows, timelines=timelines), tmp_path).as_uri(), 1024, 800)
    assert browser.ask("document.documentElement.scrollHeight") < 20_000
    assert browser.ask("document.querySelectorAll('details.finding').length") == MANY
    body = f"document.getElementById('f-f{MANY - 1}')"
    assert not browser.ask(f"{body}.checkVisibility()")
    browser.ask("document.querySelector('figcaption a').click()")
    browser.ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert browser.ask(f"{body}.checkVisibility()")
    top = browser.ask(f"{body}.getBoundingClientRect().top")
    assert 0 <= top < 400


def test_paper_has_the_evidence(browser: Browser, report: Path) -> None:
    """On paper every shown finding is unfolded, and nothing is cut off at the right."""
    browser.open(report.as_uri(), 700, 900)
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.ask("[...document.querySelectorAll('ol.chain')].every(x => x.checkVisibility())")
        assert browser.ask("document.documentElement.scrollWidth") <= 700
        assert not browser.ask("document.querySelector('nav').checkVisibility()")
        assert browser.print_pages().startswith(b"%PDF")
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")
