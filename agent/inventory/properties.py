"""Facts from an application's own `.properties` file: under which names a setting counts, and when its value is a fact.

Pure. What an application sets in its code is not in its file, so a key that is missing says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from agent.inventory.settings import KEYS, SettingKey
from agent.layout.java_properties import rows

APPLICATION_ID = "application.id"

_ROOTS = (
    "spring.cloud.stream.kafka.streams.binder.configuration.", "spring.kafka.streams.properties.",
    "spring.kafka.properties.", "kafka-streams.", "ksql.streams.",
)  # fmt: skip
"""Before Kafka's own name.

Source:
    Spring Boot, KafkaProperties (buildStreamsProperties: the common ones, over them those of streams); Spring Cloud
    Stream, "Kafka Streams Binder Properties"; Quarkus, "Kafka Streams" (the namespace `kafka-streams` is handed on as
    it is); ksqlDB, KsqlConfig.KSQL_STREAMS_PREFIX.
"""
_NAMES_OF_APPLICATION = ("springkafkastreamsapplicationid", "quarkuskafkastreamsapplicationid")
"""Where a framework has a setting of its own for it; squeezed, because Spring Boot takes it in any spelling."""

_ENVIRONMENT = re.compile(r"(KSQL|SPRING)_[A-Z0-9_]+", re.ASCII)
"""A variable that ksqlDB's image (without the `KSQL_`) or Spring Boot reads as the name with dots."""

_BRACKETS = re.compile(r"\.?\[([^\[\]]*)\]")
"""Spring Boot: `properties.[commit.interval.ms]`."""

_SOME = re.compile(r"%[^.]+\.|(?<=^spring\.cloud\.stream\.kafka\.streams\.binder\.)functions\.[^.]+\.")
"""Quarkus: `%dev.kafka-streams.commit.interval.ms`; Spring Cloud Stream: each function is an application of its own."""

_DOCUMENT = re.compile(r"^[#!]---[ \t]*$", re.MULTILINE)
_CONDITION = re.compile(r"spring\.config\.activate\..+|spring\.profiles(\[\d+\])?")
"""Spring Boot: a document of the file, and what makes it hold in some surroundings only."""

_PLACEHOLDER = re.compile(r"[$#%]\{|\{\{|@[\w.]+@", re.ASCII)
_MAX_KEY = 100
_MAX_SHOWN = 60
_MARKS = ("\ufeff", "\u00ef\u00bb\u00bf")
"""A byte order mark of UTF-8, as it is read in that encoding and in Latin-1."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a file says."""

    application_id: str | None = None  # whom it is about; None = it does not say
    values: Mapping[str, str] = field(default_factory=dict)  # name of a setting -> its value, checked
    notes: tuple[str, ...] = ()  # what could not be used, and why; one sentence each


@dataclass(frozen=True, slots=True)
class _Line:
    """One key: as it is in the file, as Kafka calls it, its value, and whether it holds for some only."""

    key: str
    name: str
    value: str
    is_conditional: bool

    def __str__(self) -> str:
        """Write it as in the file."""
        return f"{self.key[:_MAX_KEY]}={self.value[:_MAX_SHOWN]}"


def facts_of(text: str) -> Given:
    """Take the facts out of a file; keys that are none are ignored, and what cannot be used is noted."""
    lines, notes = [*_lines(text)], []
    if text.startswith(_MARKS):
        notes.append(
            "it begins with a byte order mark, which Java reads as part of the first key: that key is not used"
        )
    values: dict[str, str] = {}
    for key in KEYS:
        if "." not in key.kafka_name:  # no setting of Kafka's: the release is that of a library
            continue
        tiers = ([x for x in lines if x.name == name] for name in key.kafka_names)
        found = next(filter(None, tiers), [])
        problem = _unread(key, lines) if not found else _problem_of(found) or _refusal_of(key, found[0])
        if problem is not None:
            notes.append(problem)
        elif found:
            values[key.name] = found[0].value
    named = [x for x in lines if x.name == APPLICATION_ID and x.value]
    problem = _problem_of(named) if named else None
    if problem is not None:
        notes.append(f"{problem}, so the file counts for all applications here")
    return Given(named[0].value if named and problem is None else None, values, tuple(notes))


def _lines(text: str) -> Iterator[_Line]:
    for document in _DOCUMENT.split(text):
        pairs = [*rows(document)]
        is_conditional = any(_CONDITION.fullmatch(key) for key, _ in pairs)
        for key, value in pairs:
            some = _SOME.search(key)
            bare = key.replace(some[0], "", 1) if some else key
            yield _Line(key, _kafka_name(bare), value.strip(), is_conditional or bare != key)


def _kafka_name(key: str) -> str:
    """Give the name that the application hands on to Kafka Streams; else the key as it is."""
    if _squeezed(key) in _NAMES_OF_APPLICATION:
        return APPLICATION_ID
    plain = _BRACKETS.sub(r".\1", key)
    if _ENVIRONMENT.fullmatch(plain):
        plain = plain.lower().replace("_", ".").removeprefix("ksql.")
    root = next((x for x in _ROOTS if plain.startswith(x)), "")
    return plain.removeprefix(root)


def _problem_of(found: list[_Line]) -> str | None:
    """Say why what a file has of one setting is no fact; None = it is one."""
    first = found[0]
    other = next((x for x in found if x.value != first.value), None)
    if other is not None:
        return f"{first} and {other}: of two values none is used"
    if all(x.is_conditional for x in found):
        return f"{first} is not used: it holds for one profile or function only"
    if _PLACEHOLDER.search(first.value):
        return f"{first} is not used: it has a placeholder, whose value only the application knows"
    return None


def _refusal_of(key: SettingKey, line: _Line) -> str | None:
    try:
        key.check(line.value)
    except ValueError as error:
        return f"{line} is not used: {error}"
    return None


def _unread(key: SettingKey, lines: list[_Line]) -> str | None:
    """Name a line that is about a setting, in a form that is not read; None = there is none."""
    word = _squeezed(key.kafka_name)
    line = next((x for x in lines if word in _squeezed(x.key + x.value)), None)
    if line is None:
        return None
    return f"{line} is not read as {key.kafka_name}: if it is that, give --set {key.kafka_names[0]}=VALUE"


def _squeezed(text: str) -> str:
    """Take away how a name is spelt; `auto.commit.interval.ms` is another one."""
    return "".join(x for x in text.lower() if x.isalnum()).replace("autocommit", "")
