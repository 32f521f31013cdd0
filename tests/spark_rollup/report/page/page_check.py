"""What tests of the page ask of its HTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser

HOSTILE = '"><script>alert(1)</script>\u202e\x1b[31m\udcff&amp;\n\x00'


class Balance(HTMLParser):
    """Checks that every element is closed, and collects what could reach outside."""

    VOID = frozenset({"meta", "br", "hr", "img", "input", "link"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take an element's start."""
        self.tags.append(tag)
        self.links += [str(value) for name, value in attrs if name in {"href", "src", "action"}]
        self.ids += [str(value) for name, value in attrs if name == "id"]
        self.attributes |= {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take an element that closes itself."""
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Take an element's end."""
        assert self.open.pop() == tag


def whole(text: str) -> Balance:
    """Check that a page is well formed, that ids are unique and links have their targets."""
    found = Balance(text)
    assert found.open == []
    assert len(found.ids) == len(set(found.ids))
    assert all(link.startswith("#") for link in found.links)
    assert {link[1:] for link in found.links} <= set(found.ids)
    assert not {"img", "link", "iframe", "object"} & set(found.tags)
    assert found.tags.count("script") == 1
    return found


def headline(text: str) -> str:
    """Take the first line, without markup."""
    return re.sub(r"<[^>]+>", "", only_match(r"<h1>.*?</h1>", text))


def section(text: str, name: str) -> str:
    """Take one section of a page."""
    start = text.rindex("<section", 0, text.index(f'id="{name}"'))
    return text[start : text.index("</section>", start)]


def only_match(pattern: str, text: str) -> str:
    """Take what matches first."""
    found = re.search(pattern, text, flags=re.DOTALL)
    assert found is not None, pattern
    return found.group()


def words(html: str) -> str:
    """Take the text, without markup, with single spaces."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html)).strip()
