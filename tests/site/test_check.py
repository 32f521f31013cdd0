"""What is wrong with a built site is found: dead links and anchors, files of other hosts, missing runbooks."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.contract.runbooks import BY_PAGE
from tools.alerts.model import RUNBOOKS
from tools.site.check import problems, runbooks, without_page

PAGE = '<html><body><h1 id="top">Page</h1><a class="x" href="{}">there</a>{}</body></html>'


def site(folder: Path, link: str, more: str = "") -> Path:
    """Write a site of two pages, the first with a link."""
    (folder / "docs").mkdir()
    (folder / "docs/a.html").write_text(PAGE.format(link, more), "utf-8")
    (folder / "b c.html").write_text(PAGE.format("#top", ""), "utf-8")
    return folder


@pytest.mark.parametrize(
    "link", ["../b%20c.html", "../b%20c.html#top", "#top", "a.html?q=1#top", "https://example.org/#no"]
)
def test_links_that_lead_somewhere(tmp_path: Path, link: str) -> None:
    """Files, anchors of this page and of others; other sites are not asked."""
    assert problems(site(tmp_path, link)) == []


@pytest.mark.parametrize(
    ("link", "why"),
    [
        ("c.html", "no such file"),
        ("../docs", "no such file"),
        ("#gone", "no such anchor"),
        ("../b%20c.html#gone", "no such anchor"),
    ],
)
def test_links_that_lead_nowhere(tmp_path: Path, link: str, why: str) -> None:
    """Each is named with its page."""
    assert problems(site(tmp_path, link)) == [f"docs/a.html: link to {link}: {why}"]


@pytest.mark.parametrize(
    "tag",
    [
        '<script defer src="//example.org/x"></script>',
        '<img alt="" src="//example.org/x">',
        '<link rel="x" href="//example.org/x">',
    ],
)
def test_nothing_is_loaded_from_elsewhere(tmp_path: Path, tag: str) -> None:
    """A reader without a network sees the same, and no one else learns who reads."""
    assert problems(site(tmp_path, "#top", tag)) == ["docs/a.html: loads //example.org/x from elsewhere"]


def test_what_is_loaded_from_the_site_is_fine(tmp_path: Path) -> None:
    """Scripts and styles beside the pages."""
    assert problems(site(tmp_path, "#top", '<script src="../x.js"></script><link href="y.css">')) == []


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("a.html", ""),
        ("a.html#top", ""),
        ("b.html", "no such page"),
        ("a.html#gone", "no such anchor on that page"),
    ],
)
def test_runbooks_of_alerts(tmp_path: Path, address: str, why: str) -> None:
    """The page, and its anchor if the address has one."""
    found = without_page([f"{RUNBOOKS}/{address}"], RUNBOOKS, site(tmp_path, "#top") / "docs")
    assert found == ([f"{RUNBOOKS}/{address}: {why}"] if why else [])


def test_a_runbook_elsewhere_is_no_page_of_the_site(tmp_path: Path) -> None:
    """Whatever is there."""
    assert without_page(["https://example.org/a.html"], RUNBOOKS, site(tmp_path, "#top") / "docs") != []


def test_every_alert_leads_to_a_page(repository: Path) -> None:
    """What the site is asked for are the pages that it is made of, with the ending that pages get there."""
    addresses = set(runbooks(repository / "deploy/alerts"))
    pages = {x.removeprefix(f"{RUNBOOKS}/").partition("#")[0] for x in addresses}
    assert len(pages) == len(BY_PAGE)
    missing = [x for x in pages if not (repository / "docs" / x).with_suffix(".md").is_file()]
    assert missing == []
