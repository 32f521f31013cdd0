"""Compare a versioned store with its changelog: the latest version of each key, and older ones that are kept.

Every version counts. A record that was older than the retention when it came may be in the store or not.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent.verify.compare import Example, Tally
from agent.verify.kinds import Content, shorten
from agent.verify.rule import KnownKeys, Logged, Word, judge
from agent.verify.scratch import Rows, Scratch, pair
from agent.verify.stores import Database
from agent.verify.versions import read_versions, split_key

LATEST_PREFIX, OLDER_PREFIX = b"latest/", b"older/"


def gather(database: Database | None, scratch: Scratch) -> int:
    """Bring the store's versions into the order of keys.

    Returns:
        The highest time of a version, ms; -1 = there is none.

    Raises:
        LayoutError: an entry is not of a versioned store.
        UsageError: the database is damaged.
    """
    highest_ms = -1
    for key, _, value in database.entries() if database else ():
        is_latest, name = split_key(key)
        for version in read_versions(key, value):
            if version.value is not None:
                content = Content(version.at_ms, None, shorten(version.value))
                prefix = LATEST_PREFIX if is_latest else OLDER_PREFIX
                scratch.put_later(prefix + name, Logged(version.at_ms, content))
            highest_ms = max(highest_ms, version.at_ms)
    return highest_ms


def compare_versions(scratch: Scratch, rows: Rows, known: KnownKeys, live_ms: int, tally: Tally) -> None:
    """Compare every version with its records; those before `live_ms` are expired."""
    held = pair(_versions(scratch, LATEST_PREFIX), _versions(scratch, OLDER_PREFIX))
    flat = ((key, (latest or [], older or [])) for key, latest, older in held)
    logged = ((key, list(records)) for key, records in rows)
    for key, have, records in pair(flat, logged):
        latest, older = have or ([], [])
        history = _History(key, latest[-1] if latest else None, older, records or [], known)
        for example in history.judge(live_ms):
            tally.add(example)


def _versions(scratch: Scratch, prefix: bytes) -> Iterator[tuple[bytes, list[Content]]]:
    for key, versions in scratch.keys(prefix):
        # an entry keeps no headers
        yield key, [Content(x.content.at_ms, None, x.content.value) for x in versions if x.content]


class _History:
    """All versions of one key."""

    def __init__(
        self,
        key: bytes,
        latest: Content | None,
        older: list[Content],
        records: list[Logged],
        known: KnownKeys,
    ) -> None:
        self._key = key
        self._latest = latest
        self._held: dict[int | None, Content] = {}
        for version in (*older, latest):
            if version is not None:
                self._held[version.at_ms] = version
        self._records = records
        self._known = known

    def judge(self, live_ms: int) -> Iterator[Example]:
        states = list(self._states())
        word, offset = judge(self._latest, states, self._known)
        if word is Word.DIFFERENT and self._known.has_gaps and self._is_beyond(states):
            word = Word.UNDECIDABLE  # a newer version came before an older one, and compaction took it
        counted = {x.at_ms for x in states[-1:]} | {x.at_ms for x in states if x.offset == offset}
        if states or self._latest is not None:
            yield Example(word, self._key, offset, self._latest)
        for at_ms, same in self._by_time().items():
            if at_ms not in counted and at_ms >= live_ms:
                yield from self._older(at_ms, same)
        logged = {x.at_ms for x in self._records}
        for held_ms, content in self._held.items():
            if held_ms not in logged and content is not self._latest:
                yield Example(self._unlogged(held_ms, live_ms), self._key, None, content)

    def _states(self) -> Iterator[Logged]:
        """Latest versions one after the other: a record that is older than the latest one changes nothing."""
        latest_ms = -1
        for record in self._records:
            if record.at_ms >= latest_ms:
                yield record
                latest_ms = record.at_ms if record.is_committed else latest_ms

    def _is_beyond(self, states: list[Logged]) -> bool:
        newest_ms = max((x.at_ms for x in states), default=-1)
        return self._latest is not None and (self._latest.at_ms or 0) > newest_ms

    def _by_time(self) -> dict[int, list[Logged]]:
        found: dict[int, list[Logged]] = {}
        for record in self._records:
            found.setdefault(record.at_ms, []).append(record)
        return found

    def _older(self, at_ms: int, same: list[Logged]) -> Iterator[Example]:
        """Judge one older version by the records of its time."""
        if not any(x.content is not None for x in same):
            return  # a tombstone shows in the versions before it
        have = self._held.get(at_ms)
        word, offset = judge(have, same, self._known)
        yield Example(word, self._key, offset, have)

    def _unlogged(self, at_ms: int | None, live_ms: int) -> Word:
        if at_ms is not None and at_ms < live_ms:
            return Word.EXPIRED
        return Word.UNDECIDABLE if self._known.has_gaps or self._known.start else Word.EXTRA
