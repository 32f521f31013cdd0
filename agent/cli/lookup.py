"""What an operator has in hand -> runbooks and pages: an alert's name, an issue's key, a line of a log. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_SAMPLE = re.compile(r"^- `(.+)`$", re.MULTILINE)
_SHORTEST = 12  # letters of a message that a person gives: fewer are in too many


def section_about(sections: Mapping[str, str], asked: str) -> str | None:
    """Find the section about an exception, by its name with or without a package, or about a line of a log.

    `asked`: a name, a line, or a part of one. Gives the section; None = none is about it.
    """
    words = {word.lower() for word in re.findall(r"\w+", asked, re.ASCII)}
    said = _plain(asked)
    by_message = (text for text in sections.values() if any(_is_it(x, said) for x in _SAMPLE.findall(text)))
    by_name = (text for name, text in sections.items() if _plain(name) == said or name.lower() in words)
    exception = asked.rpartition(".")[2]
    mentioned = (text for text in sections.values() if re.search(rf"\b{re.escape(exception)}\b", text))
    rest = mentioned if exception.endswith("Exception") else iter(())
    return next(by_message, None) or next(by_name, None) or next(rest, None)


def exceptions_of(sections: Iterable[str]) -> list[str]:
    """List the exceptions among the headings of sections."""
    return [name for name in sections if " " not in name]


def _is_it(sample: str, said: str) -> bool:
    """Whether a line has the parts of a message in their order, or is a part of it."""
    parts = [re.escape(x) for x in map(_plain, sample.split("...")) if x]
    return re.search(".*".join(parts), said) is not None or (
        len(said) >= _SHORTEST and said in _plain(sample)
    )


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


_ALERT = re.compile(r"Statewarden(Fleet)?([A-Z]\w*?)(?:Suspected|Exposed)?", re.ASCII)
_ISSUE = re.compile(r"(?:KAFKA|KIP)-\d+", re.ASCII | re.IGNORECASE)
_HUMP = re.compile(r"(?<!^)(?=[A-Z])")


def of_alert(asked: str) -> str | None:
    """Give the runbook of an alert, as `detectors/ID` or `rules/ID`; None = it is no alert's name.

    `StatewardenSkippedEosWipeSuspected` is `detectors/skipped-eos-wipe`.
    """
    found = _ALERT.fullmatch(asked)
    if found is None:
        return None
    return f"{'rules' if found[1] else 'detectors'}/{_HUMP.sub('-', found[2]).lower()}"


def is_issue(asked: str) -> bool:
    """Return whether it is the key of an issue, `KAFKA-20685` or `KIP-1035`."""
    return _ISSUE.fullmatch(asked) is not None


def slug_of(asked: str) -> str:
    """Give the bare word, as detectors and rules are called: of `StatewardenRollupStale` that is `rollup-stale`."""
    word = (of_alert(asked) or asked).removeprefix("detectors/").lower()
    return word.removeprefix("statewarden")
