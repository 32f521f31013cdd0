"""Check a built version of the site: links and anchors, nothing from elsewhere, the addresses that alerts carry."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

_ID = re.compile(r'\sid="([^"]+)"')
_LINK = re.compile(r'<a\s[^>]*?href="([^"]*)"')
_LOADED = re.compile(r'<(?:script|img|iframe|source)\s[^>]*?src="([^"]*)"|<link\s[^>]*?href="([^"]*)"')
_ADDRESS = re.compile(r"^ *runbook_url: *\"?([^\s\"]+)", re.MULTILINE)


def problems(site: Path) -> list[str]:
    """List what is wrong with the pages of one version: links that lead nowhere, and what another host would give."""
    pages = {path: path.read_text("utf-8") for path in sorted(site.rglob("*.html"))}
    anchors = {path: set(_ID.findall(text)) for path, text in pages.items()}
    found = []
    for path, text in pages.items():
        name = path.relative_to(site)
        links = {x: _dead(path, html.unescape(x), anchors) for x in set(_LINK.findall(text))}
        found += [f"{name}: link to {x}: {why}" for x, why in sorted(links.items()) if why]
        loaded = {one or other for one, other in _LOADED.findall(text)}
        found += [f"{name}: loads {x} from elsewhere" for x in sorted(loaded) if urlsplit(x).netloc]
    return found


def runbooks(rules: Path) -> Iterator[str]:
    """Give the address of each alert's runbook, as the rule files have it."""
    for path in sorted(rules.glob("*.rules.yaml")):
        yield from _ADDRESS.findall(path.read_text("utf-8"))


def without_page(addresses: Iterable[str], base: str, docs: Path) -> list[str]:
    """List the addresses of runbooks (as alerts carry them, below `base`) that are no page of the site."""
    missing = []
    for address in sorted(set(addresses)):
        page, _, anchor = address.removeprefix(f"{base}/").partition("#")
        file = docs / page
        if not address.startswith(f"{base}/") or not file.is_file():
            missing.append(f"{address}: no such page")
        elif anchor and anchor not in _ID.findall(file.read_text("utf-8")):
            missing.append(f"{address}: no such anchor on that page")
    return missing


def _dead(page: Path, address: str, anchors: dict[Path, set[str]]) -> str:
    """Say why a link leads nowhere; empty = it does not, or it leads to another site."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return ""
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not target.is_file():
        return "no such file"
    if parts.fragment and target in anchors and unquote(parts.fragment) not in anchors[target]:
        return "no such anchor"
    return ""
