"""The page of the application's log lines: which section is about an exception, or about a line of a log. Pure."""

from __future__ import annotations

import re

_SAMPLE = re.compile(r"^- `(.+)`$", re.MULTILINE)
_SHORTEST = 12
"""Letters of a message that a person gives: fewer are in too many."""


def section_about(page: str, asked: str) -> str | None:
    """Find the section about an exception, by its name with or without a package, or about a line of a log.

    `asked`: a name, a line, or a part of one. Gives the section, with a heading of a page; None = none is about it.
    """
    sections = {x.partition("\n")[0]: f"# {x.rstrip()}\n" for x in page.split("\n## ")[1:]}
    words = {word.lower() for word in re.findall(r"\w+", asked, re.ASCII)}
    said = _plain(asked)
    by_message = (text for text in sections.values() if any(_is_it(x, said) for x in _SAMPLE.findall(text)))
    by_name = (text for name, text in sections.items() if _plain(name) == said or name.lower() in words)
    exception = asked.rpartition(".")[2]
    mentioned = (text for text in sections.values() if re.search(rf"\b{re.escape(exception)}\b", text))
    rest = mentioned if exception.endswith("Exception") else iter(())
    return next(by_message, None) or next(by_name, None) or next(rest, None)


def names_of(page: str) -> list[str]:
    """List the exceptions that have a section."""
    names = (section.partition("\n")[0] for section in page.split("\n## ")[1:])
    return [name for name in names if " " not in name]


def _is_it(sample: str, said: str) -> bool:
    """Whether a line has the parts of a message in their order, or is a part of it."""
    parts = [re.escape(x) for x in map(_plain, sample.split("...")) if x]
    return re.search(".*".join(parts), said) is not None or (
        len(said) >= _SHORTEST and said in _plain(sample)
    )


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
