"""Store and topic names -> hashes, in everything that leaves the pod. Pure; on only where the operator asks for it.

The same name has the same hash as long as the key is the same, so that readers can still join on it. What stays as
it is: application ids, task ids, pods, file names, RocksDB identities, numbers. Sentences are searched for the names
that are known by then, so a store that is called like a common word takes that word with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from agent.contract.events import Record
from agent.layout.names import CHANGELOG_SUFFIX

HASH_CHARS = 12
PREFIX = "h-"
_NAMED = frozenset({"store", "topic"})
"""Fields that hold a name and nothing else, wherever they are."""

_KEPT = frozenset(
    {
        "application_id", "task_id", "process_id", "detector", "severity", "confidence", "status", "level", "change",
        "source", "identity", "identity_before", "finding_id", "affected", "shape", "at", "key", "value", "origin",
        "cause", "upstream", "missing_facts", "applications", "reason", "release_low", "release_high", "dropped_kind",
        "phase", "finding_level", "time", "logger", "kind", "state", "packed", "open_ids",
    }
)  # fmt: skip
"""Fields without names of stores and topics: a store that is called like a word of ours must not change them."""


class Pseudonyms:
    """Knows names and replaces them."""

    def __init__(self, key: bytes, names: Callable[[str], Iterable[str]] = lambda application: ()) -> None:
        """Start with what is asked for.

        Args:
            key: The same for all pods whose events meet; may be empty.
            names: Application id -> names of its stores and topics that are known now; asked before sentences are
                searched.
        """
        # here and not above: OpenSSL takes 3.7 MiB in every pod, and few ask for pseudonyms
        import hashlib
        import hmac

        self._sign = partial(hmac.new, key, digestmod=hashlib.sha256)
        self._names = names
        self._known: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    def hashed(self, name: str) -> str:
        """Replace one name."""
        digest = self._sign(name.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{PREFIX}{digest[:HASH_CHARS]}"

    def learn(self, names: Iterable[str]) -> None:
        """Remember names, so that sentences and paths are searched for them."""
        for name in names:
            if name and name not in self._known:
                self._known[name] = self.hashed(name)
                self._pattern = None

    def text(self, text: str) -> str:
        """Replace every known name in a sentence or path, where it is a word by itself."""
        if not self._known:
            return text
        if self._pattern is None:
            longest_first = sorted(self._known, key=lambda name: (-len(name), name))
            alternatives = "|".join(map(re.escape, longest_first))
            self._pattern = re.compile(rf"(?<![A-Za-z0-9_])(?:{alternatives})(?![A-Za-z0-9_])")
        return self._pattern.sub(lambda found: self._known[found[0]], text)

    def record(self, record: Record) -> Record:
        """Replace the names in a record's body."""
        application = str(record.body.get("application_id") or "")
        self.learn(self._names(application))
        self._learn_from(record.body, application)
        return replace(record, body={name: self._value(name, value) for name, value in record.body.items()})

    def fields(self, fields: Mapping[str, object]) -> dict[str, object]:
        """Replace the names in the fields of a log line."""
        return {name: self._value(name, value) for name, value in fields.items()}

    def _learn_from(self, value: object, application: str) -> None:
        if isinstance(value, Mapping):
            for name, inner in value.items():
                if name in _NAMED and isinstance(inner, str):
                    self.learn(names_in(inner, application))
                else:
                    self._learn_from(inner, application)
        elif isinstance(value, (list, tuple)):
            for inner in value:
                self._learn_from(inner, application)

    def _value(self, name: str, value: object) -> object:
        if isinstance(value, Mapping):
            return {inner: self._value(str(inner), x) for inner, x in value.items()}
        if name in _KEPT:
            return value
        if isinstance(value, str):
            return self.hashed(value) if name in _NAMED else self.text(value)
        if isinstance(value, (list, tuple)):
            return [self._value(name, x) for x in value]
        return value


def names_in(name: str, application: str) -> tuple[str, ...]:
    """Return which names a store or topic name gives away: a changelog's topic holds its store's."""
    if name.startswith(f"{application}-") and name.endswith(CHANGELOG_SUFFIX):
        return name, name[len(application) + 1 : -len(CHANGELOG_SUFFIX)]
    return (name,)
