"""The built site in a real browser, opened as files: it fits, is legible, loads nothing else, finds."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.chromium import Browser

pytestmark = pytest.mark.packages
SHOWN = ("docs/README.html", "docs/runbooks/uncommitted-data.html", "docs/tables.html", "docs/affected.html")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give one browser to all tests of the module."""
    with Browser() as running:
        yield running


@pytest.fixture(scope="module")
def site(repository: Path) -> Path:
    """Give the version that `make site` built of this checkout, which `make check` does before."""
    version = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    built = repository / "build/site" / version
    if not built.is_dir():
        pytest.skip("no built site: make site")
    return built


@pytest.mark.parametrize("page", SHOWN)
@pytest.mark.parametrize(("width", "dark"), [(1400, False), (420, True)])
def test_it_fits_and_is_legible(browser: Browser, site: Path, page: str, width: int, dark: bool) -> None:
    """Wide tables scroll in their place; text is legible in light and dark; nothing comes from another host."""
    browser.open((site / page).as_uri(), width, 900, dark=dark)
    assert browser.ask("document.documentElement.scrollWidth") <= width
    assert browser.lowest_contrast() >= 4.5
    assert {urlsplit(x).scheme for x in browser.requests} <= {"file", "data"}


def test_search_finds_a_runbook(browser: Browser, site: Path, eventually: Callable[..., object]) -> None:
    """It needs no server."""
    browser.open(f"{(site / 'search.html').as_uri()}?q=skipped-eos-wipe")
    found = "[...document.querySelectorAll('#search-results li a')].map(x => x.getAttribute('href'))"
    eventually(lambda: any("docs/runbooks/uncommitted-data.html" in x for x in browser.ask(found)))
