"""Compare a versioned store with its changelog: the latest version of each key, and older ones that are kept.

Every version counts. A record that was older than the retention when it came may be in the store or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent.contract.changelog import Logged
from agent.verify.compare import Example, Tally
from agent.verify.kinds import Content, shorten
from agent.verify.rule import KnownKeys, Word, judge
from agent.verify.scratch import Rows, Scratch, pair
from agent.verify.stores import Database
from agent.verify.versions import read_versions, split_key

LATEST_PREFIX, OLDER_PREFIX = b"latest/", b"older/"


def gather(database: Database | None, scratch: Scratch) -> int:
    """Bring the store's versions into the order of keys.

    Gives the highest time of a version, ms; -1 = there is none. Raises `LayoutError`: an entry is not of a versioned
    store. Raises `UsageError`: the database is damaged.
    """
    highest_ms = -1
    for key, _, value in database.entries() if database else ():
        is_latest, name = split_key(key)
        for version in read_versions(key, value):
            if version.value is not None:
                content = Content(version.at_ms, None, shorten(version.value))
                prefix = LATEST_PREFIX if is_latest else OLDER_PREFIX
                scratch.put(prefix + name, Logged(version.at_ms, content), is_later=True)
            highest_ms = max(highest_ms, version.at_ms)
    return highest_ms


def compare_versions(scratch: Scratch, rows: Rows, known: KnownKeys, live_ms: int, tally: Tally) -> None:
    """Compare every version with its records; those before `live_ms` are expired."""
    held = pair(_versions(scratch, LATEST_PREFIX), _versions(scratch, OLDER_PREFIX))
    flat = ((key, (latest or [], older or [])) for key, latest, older in held)
    for key, have, records in pair(flat, rows):
        latest, older = have or ([], [])
        by_time = {x.at_ms: x for x in (*older, *latest[-1:])}
        history = _History(key, latest[-1] if latest else None, by_time, list(records or ()), known)
        for example in history.judge(live_ms):
            tally.add(example)


def _versions(scratch: Scratch, prefix: bytes) -> Iterator[tuple[bytes, list[Content]]]:
    for key, versions in scratch.keys(prefix):
        # an entry keeps no headers
        yield key, [Content(x.content.at_ms, None, x.content.value) for x in versions if x.content]


@dataclass(frozen=True, slots=True)
class _History:
    """All versions of one key."""

    key: bytes
    latest: Content | None
    held: Mapping[int | None, Content]
    records: Sequence[Logged[Content]]
    known: KnownKeys

    def judge(self, live_ms: int) -> Iterator[Example]:
        states = list(self._states())
        word, offset = judge(self.latest, states, self.known)
        if word is Word.DIFFERENT and self.known.has_gaps and self._is_beyond(states):
            word = Word.UNDECIDABLE  # a newer version came before an older one, and compaction took it
        counted = {x.at_ms for x in states[-1:]} | {x.at_ms for x in states if x.offset == offset}
        if states or self.latest is not None:
            yield Example(word, self.key, offset, self.latest)
        by_time: dict[int, list[Logged[Content]]] = {}
        for record in self.records:
            by_time.setdefault(record.at_ms, []).append(record)
        for at_ms, same in by_time.items():
            if at_ms not in counted and at_ms >= live_ms:
                yield from self._older(at_ms, same)
        for held_ms, content in self.held.items():
            if held_ms not in by_time and content is not self.latest:
                yield Example(self._unlogged(held_ms, live_ms), self.key, None, content)

    def _states(self) -> Iterator[Logged[Content]]:
        """Latest versions one after the other: a record that is older than the latest one changes nothing."""
        latest_ms = -1
        for record in self.records:
            if record.at_ms >= latest_ms:
                yield record
                latest_ms = record.at_ms if record.is_committed else latest_ms

    def _is_beyond(self, states: list[Logged[Content]]) -> bool:
        newest_ms = max((x.at_ms for x in states), default=-1)
        return self.latest is not None and (self.latest.at_ms or 0) > newest_ms

    def _older(self, at_ms: int, same: list[Logged[Content]]) -> Iterator[Example]:
        """Judge one older version by the records of its time."""
        if not any(x.content is not None for x in same):
            return  # a tombstone shows in the versions before it
        have = self.held.get(at_ms)
        word, offset = judge(have, same, self.known)
        yield Example(word, self.key, offset, have)

    def _unlogged(self, at_ms: int | None, live_ms: int) -> Word:
        if at_ms is not None and at_ms < live_ms:
            return Word.EXPIRED
        return Word.UNDECIDABLE if self.known.has_gaps or self.known.start else Word.EXTRA
