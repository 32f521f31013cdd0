"""The page in a real browser: it fits a phone, obeys the keyboard, loads nothing, runs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.cli.catalogue import runbook
from agent.publish.http import Answers, HttpServer
from agent.publish.page import render
from agent.publish.page_data import PageData
from tests.agent.publish.page.page_data import hostile_page, replayed_page
from tests.support.chromium import Browser

pytestmark = [pytest.mark.packages, pytest.mark.e2e]
TAB, ENTER = ("Tab", 9), ("Enter", 13)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as running:
        yield running


@pytest.fixture(scope="module")
def shown() -> list[PageData]:
    return [replayed_page("kafka-20685-4.1.2")]


@pytest.fixture(scope="module")
def url(shown: list[PageData]) -> Iterator[str]:
    """Serve the page as the agent does, guards included."""
    answers = Answers(
        lambda *_: ((), b""), lambda: None, lambda: None, lambda: render(shown[0]), runbook=runbook
    )
    with HttpServer(answers, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.port}/"


@pytest.mark.parametrize(("width", "dark"), [(1100, False), (1100, True), (360, False), (360, True)])
def test_it_fits_and_is_legible(browser: Browser, url: str, tmp_path: Path, width: int, dark: bool) -> None:
    """At no width does anything stick out sideways, and text stands off its background in light and dark."""
    browser.open(url, width, 800, dark=dark)
    assert browser.ask("document.documentElement.scrollWidth") <= width
    assert browser.ask("document.querySelector('h1').innerText") == "1 critical incident"
    background = browser.ask("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(20, 23, 27)" if dark else "rgb(247, 246, 243)")
    lowest = browser.lowest_contrast()
    assert lowest >= 4.5, f"contrast {lowest:.2f} is below what WCAG asks of text"
    assert browser.photograph(tmp_path / "page.png").startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["detectors/skipped-eos-wipe", "rules/unaudited", "kubernetes", "journeys"])
def test_a_runbook_fits_a_phone(browser: Browser, url: str, name: str) -> None:
    """An alert's link leads there: it wraps, it can be read without zooming, in the dark, and it loads nothing."""
    address = f"{url}runbooks/{name}"
    browser.open(address, 360, 800, dark=True)
    assert browser.ask("document.documentElement.scrollWidth") <= 360
    assert browser.ask("getComputedStyle(document.querySelector('main p')).fontSize") == "16px"
    assert browser.lowest_contrast() >= 4.5
    assert browser.requests[-1:] == [address]


def test_it_loads_nothing_else(browser: Browser, url: str) -> None:
    """One request, the page itself."""
    browser.open(url)
    assert browser.requests == [url]


def test_evidence_opens_by_keyboard(browser: Browser, url: str, shown: list[PageData]) -> None:
    """Tab reaches skip link, links and the evidence in the order of the page; Enter opens the chain."""
    findings = [finding for _, finding in shown[0].incidents[0].findings]
    steps = sum(len(finding.evidence) for finding in findings)
    browser.open(url)
    reached: list[str] = []
    for _ in range(8):
        browser.press(*TAB)
        reached.append(browser.ask("document.activeElement.innerText"))
    assert reached == ["Skip to the incidents", "Incidents", "Tasks", "Blind intervals", "Metrics",
                       "Reload", "statewarden explain skipped-eos-wipe",
                       f"Evidence: {len(findings)} findings"]  # fmt: skip
    assert browser.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert not browser.ask("document.activeElement.parentElement.open")
    browser.press(*ENTER)
    assert browser.ask("document.activeElement.parentElement.open")
    assert browser.ask("document.querySelectorAll('details[open] li').length") == steps


def test_hostile_names_do_nothing(browser: Browser, url: str, shown: list[PageData]) -> None:
    """Names that would be markup are shown as they are; nothing runs, nothing is fetched."""
    evil = '</style><script>document.title="owned"</script><img src=x onerror=document.title="owned">'
    shown.insert(0, hostile_page(evil))
    try:
        browser.open(url, 360, 800)
        assert browser.ask("document.querySelector('article h3 ~ p bdi').innerText") == evil
        assert browser.ask("document.title") != "owned"
        assert browser.requests == [url]
        assert browser.ask("document.documentElement.scrollWidth") <= 360
    finally:
        shown.pop(0)
