"""Facts from an application's own `.properties` file: the syntax of java.util.Properties, and what the keys mean. Pure.

What an application sets in its code is not in its file, so a key that is missing says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from agent.inventory.settings import KEYS

APPLICATION_ID = "application.id"

_PREFIXES: Mapping[str, tuple[str, ...]] = {
    "session.timeout.ms": ("main.consumer.", "consumer.", ""),
    "delete.retention.ms": ("topic.",),
}
"""Under which prefixes a setting counts, the strongest first. Of others: under its bare name.

Source:
    StreamsConfig.getMainConsumerConfigs (a bare name holds for every client, `consumer.` over it, `main.consumer.` over
    both) and StreamsConfig.TOPIC_PREFIX (a bare topic setting is ignored).
"""

_PLACEHOLDER = re.compile(r"[$#%]\{|\{\{|@[\w.]+@", re.ASCII)
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_UNICODE = re.compile(r"[0-9a-fA-F]{4}", re.ASCII)
_BLANKS = " \t\f"
_MAX_SHOWN = 60
_MARKS = ("\ufeff", "\u00ef\u00bb\u00bf")
"""A byte order mark of UTF-8, as it is read in that encoding and in Latin-1."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a file says.

    Args of the dataclass:
        application_id: Whom it is about; None = it does not say.
        values: Name of a setting -> its value, checked.
        notes: What could not be used, and why; one sentence each.
    """

    application_id: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def facts_of(text: str) -> Given:
    """Take the facts out of a file; keys that are none are ignored, and what cannot be used is noted.

    Args:
        text: Content of the file.
    """
    given, notes = parse(text), []
    if text.startswith(_MARKS):
        notes.append(
            "it begins with a byte order mark, which Java reads as part of the first key: that key is not used"
        )
    values: dict[str, str] = {}
    for key in KEYS:
        if "." not in key.kafka_name:  # no setting of Kafka's: the release is that of a library
            continue
        names = (prefix + key.kafka_name for prefix in _PREFIXES.get(key.kafka_name, ("",)))
        name = next((x for x in names if x in given), None)
        if name is None:
            continue
        value = given[name].strip()
        problem = _problem_of(value)
        if problem is None:
            try:
                key.check(value)
            except ValueError as error:
                problem = str(error)
        if problem is None:
            values[key.name] = value
        else:
            notes.append(f"{name}={value[:_MAX_SHOWN]} is not used: {problem}")
    application = given.get(APPLICATION_ID, "").strip() or None
    problem = _problem_of(application or "")
    if problem is not None:
        notes.append(
            f"{APPLICATION_ID}={str(application)[:_MAX_SHOWN]}: {problem}, so the file counts for all applications here"
        )
        application = None
    return Given(application, values, tuple(notes))


def _problem_of(value: str) -> str | None:
    return (
        "it has a placeholder, whose value only the application knows" if _PLACEHOLDER.search(value) else None
    )


def parse(text: str) -> dict[str, str]:
    """Read the syntax of java.util.Properties; of a key that comes twice the last one holds.

    Source:
        java.util.Properties.load (Java SE): logical lines, comments, the separators `=`, `:` and blanks, escapes.
    """
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        key, value = _divided(line)
        found[_unescaped(key)] = _unescaped(value)
    return found


def _logical_lines(text: str) -> Iterator[str]:
    """Join lines that end in an odd number of backslashes; a comment cannot be continued."""
    held: str | None = None
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(_BLANKS)
        if held is None and (not line or line[0] in "#!"):
            continue
        line = (held or "") + line
        if (len(line) - len(line.rstrip("\\"))) % 2:
            held = line[:-1]
            continue
        held = None
        if line:
            yield line
    if held:
        yield held


def _divided(line: str) -> tuple[str, str]:
    """Find the first separator that is not escaped: blanks, and among them at most one `=` or `:`."""
    end = 0
    while end < len(line) and line[end] not in f"=:{_BLANKS}":
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return line[:end], rest


def _unescaped(text: str) -> str:
    parts, at = [], 0
    while at < len(text):
        if text[at] != "\\":
            parts.append(text[at])
            at += 1
            continue
        code = text[at + 1 : at + 2]
        digits = _UNICODE.match(text, at + 2) if code == "u" else None
        parts.append(chr(int(digits[0], 16)) if digits else _ESCAPES.get(code, code))
        at += 6 if digits else 2
    return "".join(parts)
