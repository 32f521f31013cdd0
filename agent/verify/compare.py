"""Compare a store with its folded changelog, key by key in order; each database by its own offset.

Of a versioned store every version counts. A record that was older than the retention when it came may be in it or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent.contract.changelog import Logged
from agent.verify.kinds import Content, Kind, content_of, is_index, record_key, shorten
from agent.verify.rule import KnownKeys, Word, judge
from agent.verify.scratch import Rows, Scratch, pair
from agent.verify.stores import Database
from agent.verify.versions import read_versions, split_key


@dataclass(frozen=True, slots=True)
class Example:
    """One key of which something is said."""

    word: Word
    key: bytes
    offset: int | None  # of the record that the store should have at least; None = there is none
    have: Content | None  # what the store holds; None = nothing
    segment: int | None = None  # start of its segment; None for a store of one database


@dataclass(slots=True)
class Tally:
    """Words of keys, counted, with some examples of those that are not right."""

    most: int = 0  # how many examples of each word
    counts: Counter[Word] = field(default_factory=Counter)
    examples: list[Example] = field(default_factory=list)

    def add(self, example: Example) -> None:
        """Count one key."""
        self.counts[example.word] += 1
        if example.word in SHOWN and self.counts[example.word] <= self.most:
            self.examples.append(example)

    def join(self, other: Tally) -> None:
        """Add what another one counted; of its examples as many as there is room for."""
        self.counts += other.counts
        held = Counter(x.word for x in self.examples)
        for example in other.examples:
            if held[example.word] < self.most:
                self.examples.append(example)
                held[example.word] += 1

    def soften(self, known: KnownKeys, last: int) -> None:
        """Call `ahead` what an application that is open, or was killed, may have written and never sent.

        A kill takes the producer's buffer. Such values come after everything in the changelog: the database has all of
        that, and its offset is not that of the last record, as it is after an orderly close. They may be deletions.
        Of a compacted changelog it is `undecidable`: what is unknown may be older as well.
        """
        waiting = self.counts[Word.BEHIND] + self.counts[Word.PENDING]
        unknown = [Word.EXTRA, Word.DIFFERENT] + ([] if known.start else [Word.UNDECIDABLE])
        is_closed = known.offset is not None and known.offset >= last
        if is_closed or waiting or not any(self.counts[word] for word in unknown):
            return
        # where records were compacted away, a value that none has may as well be an older one
        said = Word.UNDECIDABLE if known.is_compacted else Word.AHEAD
        for word in {*unknown, Word.MISSING} - {said}:
            self.counts[said] += self.counts.pop(word, 0)
            self.examples = [replace(x, word=said) if x.word is word else x for x in self.examples]


SHOWN = frozenset({Word.MISSING, Word.EXTRA, Word.DIFFERENT, Word.UNDECIDABLE, Word.AHEAD})


def compare(
    database: Database | None,
    rows: Rows,
    kind: Kind,
    known: KnownKeys,
    tally: Tally,
    segment: int | None = None,
) -> None:
    """Compare one database (None = it is not there) with the records of its keys, which come in order.

    Raises `LayoutError`: an entry is not of this kind. Raises `UsageError`: the database is damaged.
    """
    for key, have, records in pair(contents(database, kind), rows):
        word, offset = judge(have, records or (), known)
        if word in SHOWN:
            tally.add(Example(word, record_key(kind, key), offset, have, segment))
        else:
            tally.counts[word] += 1


def contents(database: Database | None, kind: Kind) -> Iterator[tuple[bytes, Content]]:
    """Give key, as the store writes it, and content of every entry, in the order of keys; an index has no content."""
    for key, family, value in database.entries() if database else ():
        if not is_index(kind, key):
            yield key, content_of(kind, family, value)


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
